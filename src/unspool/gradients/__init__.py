"""Gradients through time: backpropagate, truncation; check, decomposition, by_lag, jacobians, linear, per_sample."""

from typing import TYPE_CHECKING

from unspool.lazy import lazy_names

_TABLE = """
gradients.bptt           WindowResult backpropagate bytes_of_model_tape
gradients.by_lag         Arrivals ByLag arrivals gradient_by_lag
gradients.check          Compared check_gradients
gradients.decomposition  GradientDecomposition decompose_gradient
gradients.jacobians      Influence horizon influence radii
gradients.linear         decayed linear_gradients of_radius powers spectral_radius
gradients.per_sample     per_sample_gradients per_sample_norms
gradients.truncation     Truncation
kernels.tape             bytes_of_tape
"""
if not TYPE_CHECKING:  # a type checker would take any name for one that exists
    __getattr__, __dir__ = lazy_names(__name__, _TABLE)
else:
    from unspool.gradients.bptt import WindowResult, backpropagate, bytes_of_model_tape
    from unspool.gradients.by_lag import Arrivals, ByLag, arrivals, gradient_by_lag
    from unspool.gradients.check import Compared, check_gradients
    from unspool.gradients.decomposition import GradientDecomposition, decompose_gradient
    from unspool.gradients.jacobians import Influence, horizon, influence, radii
    from unspool.gradients.linear import decayed, linear_gradients, of_radius, powers, spectral_radius
    from unspool.gradients.per_sample import per_sample_gradients, per_sample_norms
    from unspool.gradients.truncation import Truncation
    from unspool.kernels.tape import bytes_of_tape

__all__ = [
    "Arrivals",
    "ByLag",
    "Compared",
    "GradientDecomposition",
    "Influence",
    "Truncation",
    "WindowResult",
    "arrivals",
    "backpropagate",
    "bytes_of_model_tape",
    "bytes_of_tape",
    "check_gradients",
    "decayed",
    "decompose_gradient",
    "gradient_by_lag",
    "horizon",
    "influence",
    "linear_gradients",
    "of_radius",
    "per_sample_gradients",
    "per_sample_norms",
    "powers",
    "radii",
    "spectral_radius",
]
