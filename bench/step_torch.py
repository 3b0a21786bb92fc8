"""One training step of PyTorch for `bench/train_step.py`: float32, autocast to bfloat16, or a module in bfloat16."""

from __future__ import annotations

from typing import Any

from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import torch
from step_unspool import window

MODULES = {"elman": torch.nn.RNN, "gru": torch.nn.GRU, "lstm": torch.nn.LSTM}


class Step:
    """A module, a window and what one step does with them."""

    def __init__(self, case: dict[str, Any], precision: str) -> None:
        torch.manual_seed(0)
        H, K = case["H"], case["K"]
        tokens = case["inputs"] == "tokens"
        self.recurrence = MODULES[case["cell"]](H if tokens else case["X"], H)
        self.table = torch.nn.Embedding(K, H) if tokens else None
        self.output = torch.nn.Linear(H, K) if case["part"] == "step" else None
        self.autocast = precision == "autocast"
        used = [each for each in (self.recurrence, self.table, self.output) if each is not None]
        dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
        self.parameters = [p for each in used for p in each.to(dtype).parameters()]
        arrays = window(case)
        self.x, self.y = torch.from_numpy(arrays["x"]), torch.from_numpy(arrays["y"]).long().view(-1)
        self.x = self.x.long() if tokens else self.x.to(dtype)
        self.dh = torch.from_numpy(arrays["dh"])
        self.lengths = None if arrays["lengths"] is None else torch.from_numpy(arrays["lengths"]).long()
        self.optimiser = None
        if self.output is not None and case.get("update", True):
            self.optimiser = torch.optim.Adam(self.parameters, lr=1e-5, fused=True)

    def __call__(self) -> None:
        """Run one step."""
        for p in self.parameters:
            p.grad = None
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.autocast):
            h = self.states()
            o = None if self.output is None else self.output(h)
        if o is None:
            h.backward(self.dh.to(h.dtype))
            return
        torch.nn.functional.cross_entropy(o.view(len(self.y), -1).float(), self.y).backward()
        if self.optimiser is not None:
            self.optimiser.step()

    def states(self) -> torch.Tensor:
        """Return h of all steps; rows of different lengths are packed and padded again."""
        x = self.x if self.table is None else self.table(self.x)
        if self.lengths is None:
            return self.recurrence(x)[0]
        packed = pack_padded_sequence(x, self.lengths, enforce_sorted=False)
        return pad_packed_sequence(self.recurrence(packed)[0], total_length=len(x))[0]
