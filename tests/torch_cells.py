"""The equations of cells that PyTorch has no layer for, in PyTorch: autograd finds their gradients."""

import torch


def lnlstm(p, x, h, s):
    """Return h(t) and s(t) of the LSTM with layer normalisation of its cell state."""
    i, f, g, o = (x @ p["U"].T + h @ p["W"].T + p["b"]).chunk(4, dim=1)
    s = torch.sigmoid(f) * s + torch.sigmoid(i) * torch.tanh(g)
    n = torch.nn.functional.layer_norm(s, s.shape[1:], p["alpha"], p["beta"])
    return torch.sigmoid(o) * torch.tanh(n), s


STEPS = {"lnlstm": lnlstm}
"""By name: functions of a layer's parameters under their letters, x(t), h(t-1) and s(t-1)."""
