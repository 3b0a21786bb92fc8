"""Text and other sequences: text ─▶ tokens ─▶ batches; series; file formats; encoders; splits."""

from typing import TYPE_CHECKING

from unspool.lazy import lazy_names

_TABLE = """
data.batches.examples      SequenceBatch
data.batches.text_windows  Batch random_batches sequential_batches
data.formats.conditioned   Conditioned read_conditioned
data.formats.images        image_sequences
data.formats.labelled      Labelled read_classes read_labelled
data.formats.npz           read_ragged write_ragged
data.formats.numeric       Columns Measured read_measured
data.formats.pairs         Pairs read_pairs
data.formats.table         Table read_table
data.formats.tagged        Tagged read_tagged
data.formats.timetable     read_timetable
data.formats.ts            read_ts
data.series.lags           noisy_sine read_series
data.series.season         guess_season
data.series.time_table     TimeTable
data.split                 split_random split_stratified
data.text.clean            clean_lines
data.text.corpus           Corpus encode_text open_corpus prepare read_part
data.text.decoding         read_text
data.text.settings         TextConfig
data.text.source           text_source
data.tokens.base           Tokenizer
data.tokens.registry       make_tokenizer
data.tokens.vocab          Vocab
"""
if not TYPE_CHECKING:  # a type checker would take any name for one that exists
    __getattr__, __dir__ = lazy_names(__name__, _TABLE)
else:
    from unspool.data.batches.examples import SequenceBatch
    from unspool.data.batches.text_windows import Batch, random_batches, sequential_batches
    from unspool.data.formats.conditioned import Conditioned, read_conditioned
    from unspool.data.formats.images import image_sequences
    from unspool.data.formats.labelled import Labelled, read_classes, read_labelled
    from unspool.data.formats.npz import read_ragged, write_ragged
    from unspool.data.formats.numeric import Columns, Measured, read_measured
    from unspool.data.formats.pairs import Pairs, read_pairs
    from unspool.data.formats.table import Table, read_table
    from unspool.data.formats.tagged import Tagged, read_tagged
    from unspool.data.formats.timetable import read_timetable
    from unspool.data.formats.ts import read_ts
    from unspool.data.series.lags import noisy_sine, read_series
    from unspool.data.series.season import guess_season
    from unspool.data.series.time_table import TimeTable
    from unspool.data.split import split_random, split_stratified
    from unspool.data.text.clean import clean_lines
    from unspool.data.text.corpus import Corpus, encode_text, open_corpus, prepare, read_part
    from unspool.data.text.decoding import read_text
    from unspool.data.text.settings import TextConfig
    from unspool.data.text.source import text_source
    from unspool.data.tokens.base import Tokenizer
    from unspool.data.tokens.registry import make_tokenizer
    from unspool.data.tokens.vocab import Vocab

__all__ = [
    "Batch",
    "Columns",
    "Conditioned",
    "Corpus",
    "Labelled",
    "Measured",
    "Pairs",
    "SequenceBatch",
    "Table",
    "Tagged",
    "TextConfig",
    "TimeTable",
    "Tokenizer",
    "Vocab",
    "clean_lines",
    "encode_text",
    "guess_season",
    "image_sequences",
    "make_tokenizer",
    "noisy_sine",
    "open_corpus",
    "prepare",
    "random_batches",
    "read_classes",
    "read_conditioned",
    "read_labelled",
    "read_measured",
    "read_pairs",
    "read_part",
    "read_ragged",
    "read_series",
    "read_table",
    "read_tagged",
    "read_text",
    "read_timetable",
    "read_ts",
    "sequential_batches",
    "split_random",
    "split_stratified",
    "text_source",
    "write_ragged",
]
