"""Train a published PyTorch architecture with and without `unspool.torch.accelerate`: seconds to the same loss.

    python bench/word_language_model.py [--text NAME_OR_FILE] [--updates 300] [--hidden 200] [--rounds 2]

The model is the word-language-model example of PyTorch, rewritten from its description: an embedding with dropout, an LSTM of two layers
of 200 units with dropout between them, dropout again, a linear layer to the vocabulary; windows of 35 words of 20 rows, the
state carried and detached, plain SGD at a learning rate of 20 with the norm of the gradient clipped at 0.25. Both runs have
the same seed, and each is a process of its own; they alternate. The losses of a run differ by rounding only; the loss to
reach is the higher of the two at the end, smoothed over 20 updates.
"""

from __future__ import annotations

import argparse
import math
import time
from typing import Any

from table import Peer, save, serve, show

WAYS = ("PyTorch", "accelerated")
SMOOTHED = 20
"""Updates of the mean that must reach the loss."""


def tokens(name: str, vocabulary: int) -> list[int]:
    """Return the words of a text as ids; the rarest share the last id."""
    from collections import Counter

    from unspool.data import read_text

    words = read_text(name).split()
    ids = {word: i for i, (word, _) in enumerate(Counter(words).most_common(vocabulary - 1))}
    return [ids.get(word, vocabulary - 1) for word in words]


def losses(case: dict[str, Any], accelerated: bool) -> list[tuple[float, float]]:
    """Train for a number of updates; return the seconds and the loss after each."""
    import torch
    import unspool.torch
    from torch import nn

    torch.manual_seed(1)
    K, H, B, tau = case["vocabulary"], case["hidden"], 20, 35

    class WordModel(nn.Module):
        """The architecture of the example."""

        def __init__(self) -> None:
            super().__init__()
            self.drop = nn.Dropout(0.2)
            self.encoder = nn.Embedding(K, H)
            self.rnn = nn.LSTM(H, H, 2, dropout=0.2)
            self.decoder = nn.Linear(H, K)
            for weight in (self.encoder.weight, self.decoder.weight):
                nn.init.uniform_(weight, -0.1, 0.1)
            nn.init.zeros_(self.decoder.bias)

        def forward(self, x: Any, state: Any) -> Any:
            """Return the logits and the state."""
            y, state = self.rnn(self.drop(self.encoder(x)), state)
            return self.decoder(self.drop(y)), state

    model = WordModel()
    if accelerated:
        unspool.torch.accelerate(model)
    ids = torch.tensor(tokens(case["text"], K))
    rows = ids[: len(ids) // B * B].view(B, -1).t().contiguous()
    state, found, begin = None, [], time.perf_counter()
    for update in range(case["updates"]):
        at = update * tau % (len(rows) - tau - 1)
        x, y = rows[at : at + tau], rows[at + 1 : at + 1 + tau]
        state = None if state is None or at == 0 else tuple(part.detach() for part in state)
        model.zero_grad()
        o, state = model(x, state)
        loss = nn.functional.cross_entropy(o.view(-1, K), y.reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(parameter.grad, alpha=-20)
        found.append((time.perf_counter() - begin, float(loss.detach())))
    return found


def smoothed(run: list[tuple[float, float]]) -> list[float]:
    """Return the mean loss of the last 20 updates, after each."""
    return [
        sum(loss for _, loss in run[max(0, i + 1 - SMOOTHED) : i + 1]) / min(i + 1, SMOOTHED)
        for i in range(len(run))
    ]


def seconds_to(run: list[tuple[float, float]], goal: float) -> float:
    """Return the seconds after which the smoothed loss stays at the goal or below it for the first time."""
    return next(
        (run[i][0] for i, loss in enumerate(smoothed(run)) if i >= SMOOTHED and loss <= goal), math.inf
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer")
    parser.add_argument("--text", default="builtin:python-docs")
    parser.add_argument("--vocabulary", type=int, default=5000)
    parser.add_argument("--hidden", type=int, default=200)
    parser.add_argument("--updates", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    if args.peer:
        serve({"name": args.peer}, lambda case: losses(case, args.peer == WAYS[1]))
        return
    case = {name: getattr(args, name) for name in ("text", "vocabulary", "hidden", "updates")}
    best: dict[str, float] = dict.fromkeys(WAYS, math.inf)
    runs: dict[str, list[tuple[float, float]]] = {}
    for turn in range(args.rounds):
        for way in WAYS[:: 1 if turn % 2 == 0 else -1]:
            peer = Peer(__file__, way)
            run = peer.measure(case)
            peer.close()
            if run[-1][0] < best[way]:
                best[way], runs[way] = run[-1][0], run
    goal = max(smoothed(run)[-1] for run in runs.values())
    rows = [[way, seconds_to(runs[way], goal), smoothed(runs[way])[-1], best[way]] for way in WAYS]
    show(["", f"seconds to {goal:.3f} nats", "last loss", "seconds"], rows)
    print(f"{rows[0][1] / rows[1][1]:.2f} times faster to the same loss")
    save("word_language_model", {"case": case, "goal": goal, "runs": runs})


if __name__ == "__main__":
    main()
