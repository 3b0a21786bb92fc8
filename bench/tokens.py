"""Compare kinds of tokens in bits per character at equal CPU time: characters, words, sub-words.

    python bench/tokens.py TEXT … [--tokens char word subword:1000 subword:4000] [--seconds 40] [--bytes N] [--hidden 192] [--seed 0]

Of every text, its first N bytes, the last tenth is scored, with carried state, and nothing else is done with it; the rest is
trained on, by one thread, with the default recipe for so many hidden units. The number of updates is chosen so that each kind of tokens gets the
same CPU time, measured over a few updates of a model that is discarded. Learning the sub-words and counting n-grams are not counted.

A word outside the vocabulary is scored as <unk>, which costs less than its letters. "spelled" adds what the network of characters pays for
these letters where they stand in the text, so it needs `char` as the first kind.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from table import save, show
from unspool import LanguageModel
from unspool.data.tokens.characters import code_points
from unspool.data.tokens.words import SpaceTokenizer
from unspool.evaluation.language import log_prob
from unspool.kernels.native import set_threads
from unspool.training.recipe import Recipe

PILOT = 12
"""Updates that are timed."""


def cut(path: Path, size: int) -> tuple[str, str]:
    """Return the part of a text to train on, and its last tenth."""
    text = path.read_bytes()[: size or None].decode("utf-8", "ignore")
    at = text.rfind("\n", 0, len(text) * 9 // 10) + 1 or len(text) * 9 // 10
    return text[:at], text[at:]


def cpu_per_update(text: str, kind: str, hidden: int, seed: int) -> float:
    """Return the CPU seconds of one update."""
    marks: list[float] = []
    recipe = Recipe()
    short = text[: 40 * PILOT * recipe.batch_size * recipe.window]
    LanguageModel(tokens=kind, hidden=hidden, steps=PILOT, seed=seed, order=1, validations=1,
                  show=lambda event: marks.append(time.process_time()) if hasattr(event, "report") else None).fit(short)  # fmt: skip
    spans = sorted(b - a for a, b in itertools.pairwise(marks))
    return spans[len(spans) // 2]


def train(text: str, kind: str, seconds: float, hidden: int, seed: int) -> tuple[LanguageModel, float]:
    """Train for about so many CPU seconds; return the model and the seconds."""
    steps = max(10, round(seconds / cpu_per_update(text, kind, hidden, seed)))
    begin = time.process_time()
    model = LanguageModel(tokens=kind, hidden=hidden, steps=steps, seed=seed, validations=6)
    return model.fit(text), time.process_time() - begin


def figures(model: LanguageModel, text: str, held_out: str) -> dict[str, Any]:
    """Return the figures on the held-out text."""
    found, source, fixed = model.text_model_.measure(held_out), model.text_model_, model.config_.fixed
    tokens = len(source.encode(text))
    return {"tokens": model.tokens, "K": len(source.vocab), "updates": fixed.steps, "tokens_in_text": tokens,
            "epochs": fixed.steps * fixed.batch_size * fixed.window / tokens, "characters": found.characters,
            "mixture": source.measure(held_out, mixture=True).bits_per_character, "bits": found.bits_per_character, "nats": found.nats, "perplexity": found.perplexity}  # fmt: skip


def bits_of_letters(model: LanguageModel, text: str) -> Any:
    """Return the bits of every character of a text, by a network of characters."""
    source = model.text_model_
    return np.append(0.0, -log_prob(source.model, source.encode(text)) / math.log(2))


def unknown_letters(model: LanguageModel, text: str) -> Any:
    """Return whether each character of a text belongs to a word that the vocabulary does not have."""
    found, vocab = np.zeros(len(text), bool), model.text_model_.vocab
    tokenizer = model.text_model_.tokenizer
    if isinstance(tokenizer, SpaceTokenizer):
        for start, end in zip(*tokenizer.spans(code_points(text)), strict=True):
            found[start:end] = text[start:end] not in vocab
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", nargs="+", type=Path)
    parser.add_argument("--tokens", nargs="+", default=["char", "word", "subword:1000", "subword:4000"])
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--bytes", type=int, default=0, help="bytes of each text; 0 for all")
    parser.add_argument("--hidden", type=int, default=192)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    os.environ |= {"TOKENIZERS_PARALLELISM": "false"}
    set_threads(1)
    found: list[dict[str, Any]] = []
    for path in args.texts:
        text, held_out = cut(path, args.bytes)
        letters = np.zeros(len(held_out))
        for kind in args.tokens:
            model, spent = train(text, kind, args.seconds, args.hidden, args.seed)
            if kind == "char":
                letters = bits_of_letters(model, held_out)
            row = {"text": path.name, "train_characters": len(text), "seconds": spent}
            found.append(row | figures(model, text, held_out))
            unknown = unknown_letters(model, held_out)
            more = float(letters[unknown].sum()) / found[-1]["characters"]
            found[-1] |= {"unknown_letters": int(unknown.sum()), "spelled": found[-1]["bits"] + more}
            print(found[-1], flush=True)
    show(
        ["text", "tokens", "K", "updates", "epochs", "CPU s", "bits/char", "spelled", "mixture"],
        [[f"{each['text']}, {each['train_characters']:,}", each["tokens"], each["K"], each["updates"],
          f"{each['epochs']:.1f}", f"{each['seconds']:.0f}", f"{each['bits']:.4f}", f"{each['spelled']:.4f}", f"{each['mixture']:.4f}"]
         for each in found],
    )  # fmt: skip
    save("tokens", found)


if __name__ == "__main__":
    main()
