"""Write the surprise of every token or line of a text as CSV: the outputs of `unspool evaluate --per-token` and `--per-line`."""

import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from cyclopts import Parameter

from unspool.cli.options import FileOrDash, Replacing
from unspool.cli.output_files import as_output, check_outputs, is_standard_output, output
from unspool.data.text.parts import Part
from unspool.errors import InputError
from unspool.evaluation.language import NetworkScorer, in_reading_order
from unspool.evaluation.surprise import DetailedScorer, characters_of, line_surprises
from unspool.kernels.arrays import Real, Whole
from unspool.tasks.language.text_model import TextModel

Row = Iterable[str | float]
TOKEN_COLUMNS = ("position", "token", "nats", "expected_nats", "rank")
LINE_COLUMNS = ("line", "characters", "nats_per_character", "nats", "text")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SurpriseOptions(Replacing):
    """The files that `evaluate` writes."""

    per_token: FileOrDash = None
    """Write one row per token to this CSV file, - for standard output: position, token, nats, expected nats (the entropy of the distribution before it), rank."""
    per_line: FileOrDash = None
    """Write one row per line to this CSV file, - for standard output, the most surprising line first: number, characters, nats per character, nats, text. Nats and characters add up to those of the table: the first token of the text is not predicted and not counted."""

    @property
    def to_standard_output(self) -> bool:
        """Whether a file goes to standard output, so that the table cannot."""
        return any(is_standard_output(path) for path in self._paths())

    def _paths(self) -> list[Path]:
        return [as_output(path) for path in (self.per_token, self.per_line) if path is not None]

    def check(self, inputs: Iterable[str], *, json: bool) -> None:
        """Raise unless the files can be written."""
        standard = [path for path in self._paths() if is_standard_output(path)]
        if len(standard) > 1 or (standard and json):
            other = "--json" if json else "--per-line and --per-token"
            raise InputError(f"{other}: only one output can go to standard output; give the others a file")
        check_outputs(*self._paths(), force=self.force, inputs=inputs)

    def scorer(
        self, model: TextModel, window: int, on_progress: Callable[[int, int], None]
    ) -> NetworkScorer | DetailedScorer:
        """Return the scorer that computes what the files need."""
        if self.per_line is not None:
            _check_line_ends(model)
        kind = NetworkScorer if self.per_token is None else DetailedScorer
        return kind(model.model, window, on_progress, end=model.end)

    def write(
        self, model: TextModel, part: Part, log_probs: Real, scorer: NetworkScorer | DetailedScorer
    ) -> dict[str, str]:
        """Write the files; return their paths, by the names of the options."""
        found = dict[str, str]()
        if self.per_token is not None:
            assert isinstance(scorer, DetailedScorer)
            self._write(self.per_token, TOKEN_COLUMNS, _token_rows(model, part, log_probs, scorer))
            found["per_token"] = str(self.per_token)
        if self.per_line is not None:
            self._write(self.per_line, LINE_COLUMNS, _line_rows(model, part, log_probs))
            found["per_line"] = str(self.per_line)
        return found

    def _write(self, path: Path, columns: Iterable[str], rows: Iterable[Row]) -> None:
        with (
            output(as_output(path), force=self.force) as unfinished,
            open(unfinished, "w", encoding="utf-8", errors="backslashreplace", newline="") as file,
        ):
            file.write(",".join(columns) + "\n")
            csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC).writerows(rows)


def _check_line_ends(model: TextModel) -> None:
    if "\n" not in model.decode(list(range(len(model.vocab)))):
        why = "cleaning joined the lines" if model.settings.clean else "its training text was one line"
        raise InputError(f"--per-line: the vocabulary of this model has no line end ({why}); use --per-token")


def _in_text_order(values: Any, backward: bool, missing: float) -> Any:
    """Return the figures of all targets in the order of the text, with `missing` for the token that has none."""
    values = in_reading_order(values, backward)
    return np.append(values, missing) if backward else np.insert(values, 0, missing)


def _token_rows(model: TextModel, part: Part, log_probs: Real, scorer: DetailedScorer) -> Iterable[Row]:
    figures = [
        _in_text_order(values, model.backward, 0) for values in (-log_probs, scorer.entropy, scorer.rank)
    ]
    unscored = len(part.ids) - 1 if model.backward else 0
    for t, (index, nats, expected, rank) in enumerate(zip(part.ids, *figures, strict=True)):
        token = model.vocab.to_tokens(int(index))
        if t == unscored:  # nothing comes before it
            yield t + 1, token, "", "", ""
        else:
            yield t + 1, token, round(float(nats), 6), round(float(expected), 6), int(rank)


def _line_rows(model: TextModel, part: Part, log_probs: Real) -> Iterable[Row]:
    nats, pieces = _in_text_order(-log_probs, model.backward, 0.0), model.decode_stream(map(int, part.ids))
    lines = list(line_surprises(nats, _characters(model, part), pieces))
    if model.end is not None:  # the line end that the part begins with
        lines = [line._replace(number=line.number - 1) for line in lines[1:]]
    for line in sorted(lines, key=lambda line: (-line.nats_per_character, line.number)):
        text = model.decode(part.ids[line.start : line.stop]).rstrip("\r\n")
        yield line.number, line.characters, round(line.nats_per_character, 6), round(line.nats, 6), text


def _characters(model: TextModel, part: Part) -> Whole:
    """Return the characters that each token of a part stands for, 0 for the one that is not predicted: in all, those that are scored."""
    scored = slice(None, -1) if model.backward else slice(1, None)
    ids, found = part.ids[scored], np.zeros(len(part.ids), np.int64)
    if model.tokenizer.lossless:
        special = 1 + len(model.vocab.reserved_tokens)
        known = [model.tokenizer.width(token)[0] for token in model.vocab.idx_to_token[special:]]
        widths = np.array([0] * special + known, np.int64)[ids]
    else:
        pieces = model.decode_stream(map(int, part.ids))
        widths = np.array([len(piece) for piece, _ in zip(pieces, part.ids, strict=False)], np.int64)[scored]
    found[scored] = characters_of(widths, ids == model.vocab.unk, part.widths_after_first(model.backward)[0])
    return found
