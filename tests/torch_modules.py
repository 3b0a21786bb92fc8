"""Recurrent modules of PyTorch and of `unspool.torch` in pairs: made alike, called alike, compared."""

from contextlib import contextmanager

from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

import torch
import unspool.torch as ut
from torch import nn
from unspool.torch import operator

NAMES = ("RNN", "GRU", "LSTM")


def pair(name, *args, **kwargs):
    """PyTorch's module and ours with the same weights."""
    theirs, ours = getattr(nn, name)(*args, **kwargs), getattr(ut, name)(*args, **kwargs)
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


@contextmanager
def engine_ran(layers, backward=0):
    """Assert how many layers and directions the engine runs inside."""
    before = dict(operator.calls)
    yield
    found = {name: operator.calls[name] - before[name] for name in before}
    assert found == {"forward": layers, "backward": backward}


def state_of(module, rows, dtype=torch.float32):
    """A random initial state for these rows; None: unbatched."""
    shape = [module.num_layers * (1 + module.bidirectional), module.hidden_size]
    if rows is not None:
        shape.insert(1, rows)
    return torch.randn(2, *shape, dtype=dtype)


def run(module, x, state=None, lengths=None, seed=0):
    """The values and all gradients of one call: output, final state, ∇x, ∇state, ∇parameters."""
    x, state = x.clone().requires_grad_(), None if state is None else state.clone().requires_grad_()
    given = (
        x if lengths is None else pack_padded_sequence(x, lengths, module.batch_first, enforce_sorted=False)
    )
    hx = None if state is None else tuple(state) if module.mode == "LSTM" else state[0]
    module.zero_grad()
    torch.manual_seed(seed)
    y, end = module(given, hx)
    y, ends = y.data if isinstance(y, PackedSequence) else y, end if module.mode == "LSTM" else (end,)
    torch.manual_seed(seed + 1)
    sum((part * torch.randn(part.shape).to(part.dtype)).sum() for part in (y, *ends)).backward()
    gradients = [x.grad, *([] if state is None else [state.grad])] + [p.grad for p in module.parameters()]
    return [each.detach() for each in (y, *ends, *gradients)]


def error(found, exact):
    """The greatest normwise error of these tensors, or the errors of each."""
    return [
        ((a.double() - b).norm() / b.norm().clamp(min=1e-30)).item()
        for a, b in zip(found, exact, strict=True)
    ]


class Tagger(nn.Module):
    """An embedding, a recurrent module and an output layer."""

    def __init__(self, kind):
        super().__init__()
        self.embedding, self.output = nn.Embedding(9, 4), nn.Linear(12, 9)
        self.recurrent = kind(4, 6, 2, batch_first=True, bidirectional=True)

    def forward(self, x):
        return self.output(self.recurrent(self.embedding(x))[0])


def train_rank(rank, path, results):
    """Train one rank of two, in a process of its own."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=2)
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(Tagger(ut.GRU))
    x = torch.arange(24).reshape(4, 6)[2 * rank : 2 * rank + 2] % 9
    nn.functional.cross_entropy(model(x).flatten(0, 1), x.flatten()).backward()
    results.put((rank, operator.calls["backward"], [p.grad.numpy() for p in model.parameters()]))
    torch.distributed.destroy_process_group()
