"""The linear case in closed form: powers of Wᵀ, and what they do to a gradient.

Without an activation, h(t) = U x(t) + W h(t-1) and o(t) = V h(t), the recursion ∇h(t) = Wᵀ ∇h(t+1) + Vᵀ ∇o(t) is

    ∇h(t) = Σ_{i=t}^{tau} (Wᵀ)^(i-t) Vᵀ ∇o(i)                                           (1)

and ∇W = Σ ∇h(t) h(t-1)ᵀ, ∇U = Σ ∇h(t) x(t)ᵀ. (*Dive into Deep Learning* counts the same sum the other way round:
the power tau - i meets ∇o(tau + t - i). Common lecture notes then print W_qt for V = W_qh.)

Along the direction of W's largest eigenvalue, of modulus ρ, the power k is as long as ρ^k: with ρ < 1 the
gradient dies, with ρ > 1 it explodes, and no learning rate is right for both ends of the sum. Clipping bounds
what an update sees, g ← g min(1, limit / ‖g‖), and leaves the far end as small beside the near one as it was;
weight decay, W ← (1 - ηλ) W, brings ρ itself down, ρ (1 - ηλ)^n after n updates.
"""

from __future__ import annotations

import numpy as np

from unspool.errors import InputError
from unspool.kernels.arrays import Floats
from unspool.options import at_least


def spectral_radius(W: Floats) -> float:
    """Return the largest modulus of the eigenvalues of W (H, H).

    >>> round(spectral_radius(np.array([[0.0, 2.0], [-0.5, 0.0]])), 6)
    1.0
    """
    if W.ndim != 2 or W.shape[0] != W.shape[1]:
        raise InputError(f"W has shape {W.shape}; expected a square matrix")
    return float(np.abs(np.linalg.eigvals(W.astype(np.float64))).max())


def of_radius(W: Floats, radius: float) -> Floats:
    """Return W (H, H), scaled so that its spectral radius is this.

    >>> of_radius(np.diag([2.0, 1.0]), 0.5).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    own = spectral_radius(W)
    if own == 0:
        raise InputError("W is nilpotent: its spectral radius is 0 and cannot be scaled to another")
    scaled: Floats = W.astype(np.float64) * (radius / own)
    return scaled


def powers(W: Floats, v: Floats, count: int) -> Floats:
    """Return ‖(Wᵀ)^k v‖ for k from 0 to `count`: how much of a gradient v (H,) arrives k steps before.

    >>> powers(np.array([[0.5]]), np.array([2.0]), 3).tolist()
    [2.0, 1.0, 0.5, 0.25]
    """
    at_least("count", count, 0)
    v = v.astype(np.float64)
    found = [np.linalg.norm(v)]
    for _ in range(count):
        v = W.T @ v
        found.append(np.linalg.norm(v))
    return np.array(found)


def decayed(W: Floats, *, rate: float, decay: float, updates: int) -> Floats:
    """Return W (H, H) after so many updates of weight decay and nothing else: (1 - rate decay)^updates W.

    >>> decayed(np.array([[1.1]]), rate=0.1, decay=0.1, updates=20).round(4).tolist()
    [[0.8997]]
    """
    shrunk: Floats = W.astype(np.float64) * (1 - rate * decay) ** updates
    return shrunk


def linear_gradients(U: Floats, W: Floats, V: Floats, x: Floats, do: Floats) -> dict[str, Floats]:
    """Return ∇h, ∇W, ∇U and ∇V of one sequence by (1): every power of Wᵀ made by itself, no recursion.

    x is (tau, X), ∇o is (tau, K), h(0) is zero.
    """
    tau = len(x)
    power = [np.linalg.matrix_power(W, k) for k in range(tau)]
    h = np.stack([sum(power[t - i] @ U @ x[i] for i in range(t + 1)) for t in range(tau)])
    dh = np.stack([sum(power[i - t].T @ V.T @ do[i] for i in range(t, tau)) for t in range(tau)])  # 1
    before = np.concatenate([np.zeros((1, len(W))), h[:-1]])
    return {"h": h, "dh": dh, "W": dh.T @ before, "U": dh.T @ x, "V": do.T @ h}
