"""Text and other sequences: text ─▶ tokens ─▶ batches; series; file formats; encoders; splits."""

from typing import TYPE_CHECKING

from unspool.lazy import lazy_names

if TYPE_CHECKING:
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
    from unspool.data.formats.timetable import TimeTable, read_timetable
    from unspool.data.formats.ts import read_ts
    from unspool.data.series.lags import noisy_sine, read_series
    from unspool.data.series.season import guess_season
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
_MODULES = {
    "Batch": "data.batches.text_windows",
    "Columns": "data.formats.numeric",
    "Conditioned": "data.formats.conditioned",
    "Corpus": "data.text.corpus",
    "Labelled": "data.formats.labelled",
    "Measured": "data.formats.numeric",
    "Pairs": "data.formats.pairs",
    "SequenceBatch": "data.batches.examples",
    "Table": "data.formats.table",
    "Tagged": "data.formats.tagged",
    "TextConfig": "data.text.settings",
    "TimeTable": "data.formats.timetable",
    "Tokenizer": "data.tokens.base",
    "Vocab": "data.tokens.vocab",
    "clean_lines": "data.text.clean",
    "encode_text": "data.text.corpus",
    "guess_season": "data.series.season",
    "image_sequences": "data.formats.images",
    "make_tokenizer": "data.tokens.registry",
    "noisy_sine": "data.series.lags",
    "open_corpus": "data.text.corpus",
    "prepare": "data.text.corpus",
    "random_batches": "data.batches.text_windows",
    "read_classes": "data.formats.labelled",
    "read_conditioned": "data.formats.conditioned",
    "read_labelled": "data.formats.labelled",
    "read_measured": "data.formats.numeric",
    "read_pairs": "data.formats.pairs",
    "read_part": "data.text.corpus",
    "read_ragged": "data.formats.npz",
    "read_series": "data.series.lags",
    "read_table": "data.formats.table",
    "read_tagged": "data.formats.tagged",
    "read_text": "data.text.decoding",
    "read_timetable": "data.formats.timetable",
    "read_ts": "data.formats.ts",
    "sequential_batches": "data.batches.text_windows",
    "split_random": "data.split",
    "split_stratified": "data.split",
    "text_source": "data.text.source",
    "write_ragged": "data.formats.npz",
}
"""The module that each public name is imported from at first use."""

if not TYPE_CHECKING:  # a type checker would take any name for one that exists
    __getattr__, __dir__ = lazy_names(__name__, _MODULES)
