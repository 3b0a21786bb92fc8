"""A trained network with its vocabulary and tokenizer: score and generate text.

>>> import tempfile
>>> from unspool.data.tokens.registry import make_tokenizer
>>> from unspool.data.tokens.vocab import Vocab
>>> vocab = Vocab(list("abracadabra"))
>>> model = Model.initialise(ModelConfig(cell="gru", inputs=6, outputs=6, hidden=8), seed=1)
>>> text_model = TextModel(model, vocab, make_tokenizer("char"), TextConfig())
>>> text_model.encode("abc!")
array([1, 2, 4, 0], dtype=int32)
>>> text_model.generate("abra", 5) == text_model.generate("abra", 5)
True
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import numpy as np

from unspool.baselines.mixture import Mixture, MixtureScorer
from unspool.baselines.mixture_stream import MixtureStream
from unspool.data.text.corpus import as_read, decode_id_stream, encode_text, line_end, read_part
from unspool.data.text.lines import END, line_spans
from unspool.data.text.settings import TextConfig
from unspool.data.text.sources import Text, Texts, as_sources, check_prompt
from unspool.data.tokens.registry import Tokenizer, TokenizerFields
from unspool.data.tokens.vocab import Vocab
from unspool.errors import FileError, InputError
from unspool.evaluation.language import NetworkScorer, evaluate, in_reading_order, log_prob
from unspool.evaluation.metrics import Metrics, ScoresText
from unspool.kernels.arrays import Ids
from unspool.lazy import load_name
from unspool.model.config import ModelConfig
from unspool.model.generate import Sampling, generate
from unspool.model.network import Model
from unspool.model.stream import Stream
from unspool.options import at_least
from unspool.storage import run_folder
from unspool.storage.html_page import HtmlPage
from unspool.storage.schema import read_as
from unspool.tasks.language.mixture import load_mixture, save_mixture
from unspool.tasks.language.stop import StopFilter
from unspool.training import store
from unspool.training.dynamic import Learning, LearningReader, LearningScorer
from unspool.training.events import RunConfig


class _Run(TypedDict):
    """The settings of a run that its model is used with."""

    settings: TextConfig
    backward: bool


class TextModelConfig(TypedDict):
    """The fields of a run's config that its model is used with."""

    run: _Run
    model: ModelConfig
    tokenizer: TokenizerFields
    vocab: str


def check_language(config: ModelConfig, vocab: Vocab, run: Path) -> None:
    """Raise unless a network reads and predicts the tokens of a vocabulary, in one direction."""
    if config.dense or config.bidirectional or (config.inputs, config.outputs) != (len(vocab), len(vocab)):
        raise FileError(
            f"{run / run_folder.CONFIG}: damaged or manipulated: the model is not one of the {len(vocab):,} tokens "
            f"in {run_folder.VOCAB}"
        )
    if not all(isinstance(token, str) for token in vocab.idx_to_token):
        raise FileError(f"{run / run_folder.VOCAB}: damaged or manipulated: expected tokens that are strings")


def checked_tokenizer(fields: TokenizerFields, vocab: Vocab, run: Path) -> Tokenizer:
    """Return the tokenizer of a run; raise unless it can decode every token of the vocabulary."""
    try:
        tokenizer = fields.make()
        if tokenizer.byte_level:
            tokenizer.decode(vocab.idx_to_token[1 + len(vocab.reserved_tokens) :])
    except (InputError, KeyError, UnicodeError) as error:
        raise FileError(f"{run / run_folder.CONFIG}: damaged or manipulated: tokenizer: {error}") from error
    except FileError as error:
        raise FileError(f"{run / run_folder.CONFIG}: {error}") from error
    return tokenizer


class LineScore(NamedTuple):
    """How probable one line is."""

    log_prob: float
    """log P of its tokens and of its end, after its beginning."""
    targets: int
    """The number of its tokens, the end included."""

    @property
    def nats(self) -> float:
        """Minus log P per token."""
        return -self.log_prob / self.targets

    @property
    def perplexity(self) -> float:
        """The perplexity of the line."""
        return Metrics(self.targets, self.nats).perplexity


@dataclass(frozen=True)
class TextModel:
    """A model of text, as a run stores it."""

    model: Model
    vocab: Vocab
    tokenizer: Tokenizer
    settings: TextConfig
    backward: bool = False
    """Whether it reads text in reverse time."""
    about: dict[str, Any] | None = None
    """The metadata of its file: the number of updates, the validation loss."""
    mixture: Mixture | None = None
    """Its mixture with n-grams, where it was loaded or made."""

    @staticmethod
    def load(run: str | Path, *, mixture: bool = False) -> "TextModel":
        """Read the best model of a run with its vocabulary, tokenizer and text settings, and if asked for, its mixture."""
        place = Path(run)
        content = read_as(TextModelConfig, run_folder.read_config(run, "language"), place / run_folder.CONFIG)
        vocab = Vocab.load(place / run_folder.VOCAB)
        if vocab.sha256 != content["vocab"]:
            raise FileError(f"{place / run_folder.VOCAB}: the vocabulary of another run")
        model, about = store.load_model(place / run_folder.MODEL)
        check_language(content["model"], vocab, place)
        if model.config != content["model"]:
            raise FileError(f"{place / run_folder.MODEL}: the model of another run")
        tokenizer = checked_tokenizer(content["tokenizer"], vocab, place)
        own = content["run"]
        mixed = load_mixture(place / run_folder.MIXTURE, model) if mixture else None
        return TextModel(model, vocab, tokenizer, own["settings"], own["backward"], about, mixed)

    def save(self, folder: Path, config: RunConfig | None = None) -> None:
        """Write what `load` needs into an existing folder: a run that can be used, but not resumed."""
        self.vocab.save(folder / run_folder.VOCAB)
        used = {"settings": asdict(self.settings), "backward": self.backward}
        content = {
            "run": used if config is None else config.to_json() | used,
            "model": self.model.config.to_json(),
            "tokenizer": self.tokenizer.to_json(),
            "vocab": self.vocab.sha256,
        }
        run_folder.write_config(folder, "language", content)
        store.save_model(folder / run_folder.MODEL, self.model, self.about or {})
        if self.mixture is not None:
            save_mixture(folder / run_folder.MIXTURE, self.mixture, self.model)

    @property
    def end(self) -> int | None:
        """The token that ends a line, where every line is a separate sequence (`--lines`)."""
        return line_end(self.vocab, self.settings)

    def encode(self, text: str) -> Ids:
        """Return the ids of a text, in the order of the text; unknown tokens become <unk>."""
        return encode_text(text, self.vocab, self.tokenizer, self.settings)

    def decode(self, ids: Ids | list[int]) -> str:
        """Return the text of ids."""
        return "".join(self.decode_stream(np.asarray(ids).tolist()))

    def decode_stream(self, tokens: Iterable[int], before: Sequence[int] = ()) -> Iterator[str]:
        """Yield the text of tokens piece by piece, one per token and a last one; `before` are the tokens that they follow."""
        pieces = decode_id_stream(self.vocab, self.tokenizer, chain(before, tokens))
        deque(
            islice(pieces, len(before)), maxlen=0
        )  # now, so that a long prompt does not delay the first token
        return pieces

    def decode_before(self, tokens: Sequence[int], after: Sequence[int]) -> str:
        """Return the text of tokens that stand before others."""
        whole, rest = self.decode([*tokens, *after[:1]]), self.decode([*after[:1]])
        return whole[: len(whole) - len(rest)]

    def unknown(self, text: str) -> list[str]:
        """Return the tokens of a text that the vocabulary does not have, each once, in their order."""
        tokens = self.tokenizer.encode_text(as_read(text, self.tokenizer, self.settings))
        return [token for token in dict.fromkeys(tokens) if token not in self.vocab]

    def measure(self, text: Texts, *, mixture: bool = False, learn: bool | Learning = False) -> Metrics:
        """Score a text by the network or by its mixture: a string is the text itself, a Path a file or folder, a list several of them.

        With `learn`, the network learns from each segment after it was scored; the model itself does not change. The share of a
        mixture's n-grams is the one that was fitted for the network that does not learn.
        """
        part = read_part(as_sources(text, "text"), self.vocab, self.tokenizer, self.settings)
        network: ScoresText = NetworkScorer(self.model, end=self.end)
        if learn:
            self.refuse_lines("learn")
            network = LearningScorer(self.model, Learning() if learn is True else learn)
        scorer = MixtureScorer(network, self.require_mixture()) if mixture else network
        return evaluate(scorer, part, backward=self.backward)

    def score_lines(self, lines: Sequence[str], *, mixture: bool = False) -> list[LineScore]:
        """Return the score of each line by the network or by its mixture: every line by itself, from its beginning to its end.

        The sum of the scores of a model that was trained with `lines` is that of `measure` for the same lines.
        """
        end = self.vocab.token_to_idx.get(END)
        if isinstance(lines, str) or not all(isinstance(line, str) for line in lines):
            raise InputError("lines: expected a list of strings, one per line: text.splitlines() for a text")
        if end is None:
            raise InputError("score_lines: the vocabulary has no line end; train the model with lines=True")
        if mixture and self.end is None:
            raise InputError("mixture: its n-grams reach across lines; train the model with lines=True")
        if not len(lines):
            return []
        ids = [np.array([end], np.int32)]
        for number, line in enumerate(lines, 1):
            if END in as_read(line, self.tokenizer, self.settings):
                raise InputError(f"lines: line {number} holds a line end; expected one line per string")
            ids += [self.encode(line), ids[0]]
        ordered = in_reading_order(np.concatenate(ids), self.backward)
        log_probs = log_prob(self.model, ordered, end=end)
        if mixture:
            log_probs = self.require_mixture().log_prob(ordered, log_probs)
        spans = zip(*line_spans(ordered, end), strict=True)
        found = [LineScore(math.fsum(log_probs[at : at + n]), int(n)) for at, n in spans]
        return found[::-1] if self.backward else found

    def refuse_lines(self, what: str) -> None:
        """Raise where lines are sequences of their own, and so no state is carried through a text."""
        if self.settings.lines:
            raise InputError(
                f"{what}: this model was trained on independent lines, no state is carried; leave it out"
            )

    @property
    def is_final(self) -> bool:
        """Whether the model was trained on all splits of its text (--final)."""
        return bool((self.about or {}).get("final"))

    def require_mixture(self) -> Mixture:
        """Return the mixture with n-grams; raise where there is none."""
        if self.mixture is None:
            raise InputError(
                "mixture: this model has none; train it to the end with this version (in Python, load it with mixture=True)"
            )
        return self.mixture

    def perplexity(self, text: Texts, *, mixture: bool = False, learn: bool | Learning = False) -> float:
        """Return the perplexity of a text or a Path, the state carried from the first token to the last; for `learn` see `measure`."""
        return self.measure(text, mixture=mixture, learn=learn).perplexity

    def reader(self, learning: Learning | None = None) -> LearningReader:
        """Return a reader of ids that learns from them; `encode` gives the ids of a text.

        >>> from unspool.data.tokens.registry import make_tokenizer
        >>> vocab = Vocab(list("abracadabra"))
        >>> model = Model.initialise(ModelConfig(cell="gru", inputs=6, outputs=6, hidden=8), seed=1)
        >>> text_model = TextModel(model, vocab, make_tokenizer("char"), TextConfig())
        >>> reader = text_model.reader(Learning(learn_rate=0.01))
        >>> log_probs = reader.log_prob(text_model.encode("abracadabra" * 100))
        >>> bool(log_probs[:300].mean() < log_probs[-300:].mean()), reader.updates
        (True, 34)
        """
        self.refuse_lines("reader")
        return LearningReader(self.model, learning)

    def start(self, prompt: str) -> list[int]:
        """Return the ids of a prompt, in reading order; an empty prompt is the beginning of a line."""
        ids: list[int] = in_reading_order(self.encode(prompt), self.backward).tolist()
        if self.end is not None:
            if self.end in ids:
                raise InputError(
                    "prompt: this model was trained on independent lines; expected one line without its end"
                )
            return [self.end, *ids]
        return ids or [self.vocab.token_to_idx.get("\n", min(1, len(self.vocab) - 1))]

    def decode_backward(self, tokens: Iterable[int], after: Sequence[int], stop: StopFilter) -> str:
        """Return the text of tokens that come in reverse order, up to a stop text; `after` are the tokens after them."""
        taken = list[int]()
        longest = max((len(text.encode()) for text in stop.stops), default=0) + 1
        for token in tokens:
            taken.append(token)
            following = taken[-longest - 1 : -longest] or after
            if (
                stop.stops
                and stop.after(self.decode_before(taken[: -longest - 1 : -1], following)) is not None
            ):
                break
        text = self.decode_before(taken[::-1], after)
        ended = stop.after(text)
        return text if ended is None else ended

    def inspect(self, text: Text, *, characters: int = 2000, units: Sequence[str] | None = None) -> HtmlPage:
        """Read the first characters of a text (a str is the text itself, a Path a file) and return the studio's views as a page.

        A notebook displays the page as the last value of a cell; `save` writes it. `units` are the units to show, as for
        `unspool inspect --units`; without them, the most informative ones.
        """
        show = load_name("studio.inspection", "inspect_text")
        page: HtmlPage = show(self, text, characters=at_least("characters", characters, 2), units=units)
        return page

    def stream(self, *, mixture: bool = False) -> Stream | MixtureStream:
        """Return the network, or its mixture with n-grams, to read and draw token by token."""
        stream = Stream(self.model)
        return MixtureStream(stream, self.require_mixture()) if mixture else stream

    def generate(
        self,
        prompt: str = "",
        length: int = 200,
        *,
        seed: int = 0,
        sampling: Sampling | None = None,
        stop: str | Sequence[str] = (),
        mixture: bool = False,
    ) -> str:
        """Return generated text that follows the prompt, or precedes it where the model reads backward.

        It has `length` tokens, or ends before the first of the `stop` texts, and with the line where lines are independent.
        """
        length, end = at_least("length", length, 0), StopFilter(self.stops(stop))
        drawn = islice(self.tokens(prompt, seed=seed, sampling=sampling, mixture=mixture), length)
        read = self.encode(prompt).tolist()
        if self.backward:
            return self.decode_backward(drawn, read, end)
        return "".join(end.pieces(self.decode_stream(drawn, read)))

    def stops(self, stop: str | Sequence[str]) -> tuple[str, ...]:
        """Return the texts that end a generated text: where lines are independent, also the line end."""
        found = (stop,) if isinstance(stop, str) else tuple(stop)
        return found if self.end is None else (*found, END)

    def tokens(
        self, prompt: str, *, seed: int = 0, sampling: Sampling | None = None, mixture: bool = False
    ) -> Iterator[int]:
        """Yield sampled tokens without end."""
        check_prompt(prompt)
        return generate(self.stream(mixture=mixture), self.start(prompt), seed=seed, sampling=sampling)
