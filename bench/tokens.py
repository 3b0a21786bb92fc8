"""Compare kinds of tokens in bits per character at equal CPU time: characters, words, sub-words.

    python bench/tokens.py TEXT … [--tokens char word subword:1000 subword:4000] [--seconds 40] [--bytes N] [--hidden 192] [--seed 0]

Of every text, its first N bytes, the last tenth is scored, with carried state, and nothing else is done with it; the rest is
trained on, by one thread, with the default recipe for so many hidden units. The number of updates is chosen so that each kind of tokens gets the
same CPU time, measured over a few updates of a model that is discarded. Learning the sub-words is not counted.

A word outside the vocabulary is scored as <unk>, which costs less than its letters. "spelled" adds the bits of these letters, each at the mean of the
network of characters, which is little for rare words: a bound that favours words.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from pathlib import Path
from typing import Any

from table import save, show
from unspool import LanguageModel
from unspool.data.tokens.registry import make_tokenizer
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


def score(text: str, held_out: str, kind: str, seconds: float, hidden: int, seed: int) -> dict[str, Any]:
    """Train for about so many CPU seconds; return the figures on the held-out text."""
    steps = max(10, round(seconds / cpu_per_update(text, kind, hidden, seed)))
    begin = time.process_time()
    model = LanguageModel(tokens=kind, hidden=hidden, steps=steps, seed=seed, order=1, validations=6).fit(
        text
    )
    spent, found = time.process_time() - begin, model.text_model_.measure(held_out)
    unknown = model.text_model_.unknown(held_out) if kind in ("word", "space") else []
    fixed, K = model.config_.fixed, len(model.text_model_.vocab)
    read = fixed.steps * fixed.batch_size * fixed.window
    tokens = len(model.text_model_.encode(text))
    return {"tokens": kind, "K": K, "updates": steps, "seconds": spent, "epochs": read / tokens, "tokens_in_text": tokens,
            "bits": found.bits_per_character, "perplexity": found.perplexity, "nats": found.nats, "characters": found.characters,
            "unknown_types": len(unknown), "unknown_characters": _letters(model, held_out) if unknown else 0}  # fmt: skip


def _letters(model: LanguageModel, text: str) -> int:
    """Return the number of characters in the tokens that the vocabulary does not have."""
    vocab = model.text_model_.vocab
    return sum(len(token) for token in make_tokenizer(model.tokens).encode_text(text) if token not in vocab)


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
        for kind in args.tokens:
            row = {"text": path.name, "train_characters": len(text)}
            found.append(row | score(text, held_out, kind, args.seconds, args.hidden, args.seed))
            print(found[-1], flush=True)
    spelling = {each["text"]: each["bits"] for each in found if each["tokens"] == "char"}
    for each in found:
        extra = each["unknown_characters"] * spelling.get(each["text"], 0.0) / each["characters"]
        each["spelled"] = each["bits"] + extra
    show(
        ["text", "tokens", "K", "updates", "epochs", "CPU s", "bits/char", "spelled"],
        [[f"{each['text']}, {each['train_characters']:,}", each["tokens"], each["K"], each["updates"],
          f"{each['epochs']:.1f}", f"{each['seconds']:.0f}", f"{each['bits']:.4f}", f"{each['spelled']:.4f}"]
         for each in found],
    )  # fmt: skip
    save("tokens", found)


if __name__ == "__main__":
    main()
