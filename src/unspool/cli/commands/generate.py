"""Generate text from a prompt and print it token by token."""

import secrets
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from cyclopts import Parameter

from unspool.cli.learning import PromptLearning, learned_json, read_prompt
from unspool.cli.options import FileOrDash, Flag, Replacing
from unspool.cli.output import print_json
from unspool.cli.output_files import as_output, check_outputs, is_standard_output, output
from unspool.cli.sources import RunFolder
from unspool.data.text.decoding import read_file
from unspool.errors import EmptyInput, InputError
from unspool.kernels.memory import require_memory
from unspool.kernels.native import set_threads
from unspool.model.generate import TEMPERATURE, Sampling
from unspool.options import MOST_STEPS, at_least
from unspool.tasks.language.generator import TextGenerator
from unspool.tasks.language.stop import StopFilter
from unspool.tasks.language.text_model import TextModel

BYTES = 120
"""About how much memory a token takes that is not printed at once."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Options:
    """What `generate` is given."""

    prompt: Annotated[str, Parameter(allow_leading_hyphen=True)] = ""
    """Text to continue. Tokens outside the vocabulary are read as <unk>, and a warning lists them."""
    prompt_file: FileOrDash = None
    """A file with the text to continue; - for standard input."""
    length: Annotated[int, Parameter(name=["--length", "--max-new-tokens"])] = 400
    """Number of tokens to generate."""
    temperature: float = TEMPERATURE
    """Divides the logits: 1 samples from the model's distribution, below 1 is less random, above 1 more; 0 is greedy."""
    top_k: int = 0
    """Sample only from the K most probable tokens; 0 keeps all."""
    top_p: float = 1.0
    """Sample only from the smallest set of tokens whose probabilities sum to at least P; 1 keeps all."""
    min_p: float = 0.0
    """Sample only from tokens with at least P times the probability of the most probable token; 0 keeps all."""
    repetition_penalty: float = 1.0
    """Divides the positive logits of tokens seen before and multiplies the negative ones, as in CTRL; 1 is no penalty, 1.2 a usual one."""
    repetition_window: int = 0
    """Number of last tokens that count as seen before, those of the prompt included, at most 4,096; 0 counts all."""
    stop: Annotated[tuple[str, ...], Parameter(allow_leading_hyphen=True, negative="")] = ()
    """End the text before this text appears in it; may be given several times."""
    model: Literal["network", "mixture"] = "network"
    """What generates: the network, or its mixture with the n-grams of the training text."""
    greedy: Flag = False
    """Always take the most probable token."""
    seed: int | None = None
    """Seed of the random numbers: the same seed gives the same text on every machine [default: a random seed]."""
    samples: Annotated[int, Parameter(name=["--samples", "--num-return-sequences"])] = 1
    """Number of texts to generate from the prompt, with the seeds SEED, SEED + 1, …"""
    state: Path | None = None
    """Start from a saved state instead of the initial state; the prompt, if given, is read after it."""
    save_state: FileOrDash = None
    """Save the final state to this file, for a later --state; with --force, it may be the file of --state itself."""
    threads: int | None = None
    """Number of threads; the results do not depend on it [default: UNSPOOL_THREADS, else OMP_NUM_THREADS, else the CPUs that the process may use]."""
    json: Flag = False
    """Print JSON."""

    def check_files(self, *, force: bool) -> None:
        """Raise where the files cannot be what they are given for, and for an empty stop text."""
        StopFilter(self.stop)
        if self.save_state is not None and is_standard_output(as_output(self.save_state)):
            raise InputError(
                f"--save-state is {self.save_state}: the text goes to standard output; give a file"
            )
        inputs = [file for file in [self.prompt_file] if str(file) != "-"]
        check_outputs(self.save_state, force=force, inputs=inputs)

    def sampling(self) -> Sampling:
        """Give how tokens are drawn; refuse what cannot be asked for."""
        for name, value, least in (("length", self.length, 0), ("samples", self.samples, 1)):
            at_least(name, value, least, MOST_STEPS)
        if self.save_state is not None and self.samples > 1:
            raise InputError("--save-state keeps one state; use it with one sample")
        temperature = 0.0 if self.greedy else self.temperature
        penalty, window = self.repetition_penalty, self.repetition_window
        return Sampling(temperature, self.top_k, self.top_p, self.min_p, penalty, window)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ReplacingState(Replacing):
    """Whether `generate` replaces files."""

    force: Flag = False
    """Replace output files that exist. Runs, files in a run and files that the command reads are never replaced, except the file of --state by --save-state."""


def generate(
    run: RunFolder,
    /,
    *,
    options: Options = Options(),
    learning: PromptLearning = PromptLearning(),
    replacing: ReplacingState = ReplacingState(),
) -> None:
    """Run `unspool generate`."""
    if options.threads is not None:
        set_threads(options.threads)
    sampling, learn = options.sampling(), learning.learning()
    options.check_files(force=replacing.force)
    mixture, prompt = options.model == "mixture", _prompt(options.prompt, options.prompt_file)
    if learn is not None and not prompt:
        raise InputError("--learn needs a text to learn from; give --prompt or --prompt-file")
    reader = TextGenerator(TextModel.load(run, mixture=mixture), learn, mixture=mixture)
    if options.json or reader.model.backward:  # else every token is printed and forgotten
        what = f"holding {options.samples:,} texts of {options.length:,} tokens"
        require_memory(BYTES * options.length * options.samples, what, "choose fewer or shorter texts")
    _say_unknown(reader.model, prompt)
    if options.state is not None:
        reader.load(options.state)
        learning.check_state(reader.learning)
    seed = _seed(options.seed, reader)
    read_prompt(reader, prompt, quiet=options.json)
    if reader.pending is None:
        reader.read_start()
    written = list(_samples(reader, prompt, seed, sampling, options))
    drawn, seconds = sum(each.drawn for each in written), sum(each.seconds for each in written)
    speed = drawn / max(seconds, 1e-9)
    if options.save_state is not None:
        with output(options.save_state, force=replacing.force) as path:
            reader.save(path, seed)
    if options.json:
        content = {"run": str(run), "model": options.model, "prompt": prompt, "seed": seed}
        content |= {"length": options.length, "texts": [each.text for each in written]}
        content |= {"stopped": [each.stopped for each in written], "tokens_per_second": speed}
        print_json(content | learned_json(reader))
    elif sys.stderr.isatty() and options.length:
        print(f"unspool: {drawn:,} tokens, {speed:,.0f} tokens/s", file=sys.stderr)


class Sample(NamedTuple):
    """A generated text."""

    text: str
    """Only with --json: else it is printed and forgotten."""
    stopped: str | None
    """The stop text that ended it."""
    drawn: int
    """Its tokens, those of the stop text included."""
    seconds: float
    """The time to draw and show them."""


def _samples(
    reader: TextGenerator, prompt: str, seed: int, sampling: Sampling, options: Options
) -> Iterator[Sample]:
    """Generate every sample from the same state; print it, or with --json return it."""
    begun = reader.copy_state()
    for number in range(options.samples):
        if number:
            reader.restore(begun)
            reader.drawn = 0
        first, stop = reader.drawn, StopFilter(reader.model.stops(options.stop))
        if options.samples > 1 and not options.json:
            print("\n" * (number > 0) + f"--- sample {number + 1}, seed {seed + number}")
        tokens = islice(reader.write(seed + number, sampling), options.length)
        text, seconds = _show(reader, prompt, tokens, stop, quiet=options.json)
        yield Sample(text, stop.found, reader.drawn - first, seconds)


def _prompt(prompt: str, file: Path | None) -> str:
    if file is None:
        # What the shell gave that is no UTF-8 is read as U+FFFD.
        return prompt.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if prompt:
        raise InputError("give --prompt or --prompt-file, not both")
    try:
        return read_file(file)
    except EmptyInput:
        return ""


def _say_unknown(model: TextModel, prompt: str) -> None:
    unknown = model.unknown(prompt)
    if unknown:
        shown = " ".join(map(repr, unknown[:8])) + (" …" if len(unknown) > 8 else "")
        print(f"unspool: not in the vocabulary, read as <unk>: {shown}", file=sys.stderr)


def _seed(seed: int | None, reader: TextGenerator) -> int:
    """Take the seed that is given, or the one that the saved state was drawn with, or a new one."""
    if seed is not None and seed < 0:
        raise InputError(f"seed is {seed}; expected a whole number of 0 or more")
    if seed is not None:
        if reader.seed is not None and seed != reader.seed:
            reader.drawn = 0
        return seed
    return reader.seed if reader.seed is not None else secrets.randbelow(2**32)


def _show(
    reader: TextGenerator, prompt: str, tokens: Iterator[int], stop: StopFilter, *, quiet: bool
) -> tuple[str, float]:
    """Print a text piece by piece, up to a stop text; with `quiet`, return it instead. Return the seconds of its tokens too."""
    model = reader.model
    if model.backward:  # the beginning comes last
        start = time.perf_counter()
        text = model.decode_backward(tokens, reader.before, stop)
        seconds = time.perf_counter() - start
        if not quiet:
            print(text + prompt)
        return text, seconds
    # The blank before a word may stand at the end of the prompt already.
    shown = prompt if model.tokenizer.lossless else prompt.rstrip(" ")
    kept = list[str]()
    if not quiet:
        sys.stdout.write(shown)
    pieces = stop.pieces(model.decode_stream(tokens, reader.before))  # reads the prompt
    start = time.perf_counter()
    for piece in pieces:
        if quiet:
            kept.append(piece)
        else:
            sys.stdout.write(piece)
            sys.stdout.flush()
    seconds = time.perf_counter() - start
    if not quiet:
        print()
    return "".join(kept), seconds
