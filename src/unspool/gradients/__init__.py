"""Gradients through time: backpropagate, truncation; check, decomposition, by_lag, jacobians, linear, per_sample."""

from typing import TYPE_CHECKING

from unspool.lazy import lazy_names

if TYPE_CHECKING:
    from unspool.gradients.bptt import WindowResult, backpropagate, bytes_of_model_tape
    from unspool.gradients.by_lag import ByLag, gradient_by_lag
    from unspool.gradients.check import Compared, check_gradients
    from unspool.gradients.decomposition import GradientDecomposition, decompose_gradient
    from unspool.gradients.jacobians import Influence, horizon, influence, radii
    from unspool.gradients.linear import decayed, linear_gradients, of_radius, powers, spectral_radius
    from unspool.gradients.per_sample import per_sample_gradients, per_sample_norms
    from unspool.gradients.truncation import Truncation
    from unspool.kernels.tape import bytes_of_tape

__all__ = [
    "ByLag",
    "Compared",
    "GradientDecomposition",
    "Influence",
    "Truncation",
    "WindowResult",
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
_MODULES = {
    "ByLag": "gradients.by_lag",
    "Compared": "gradients.check",
    "GradientDecomposition": "gradients.decomposition",
    "Influence": "gradients.jacobians",
    "Truncation": "gradients.truncation",
    "WindowResult": "gradients.bptt",
    "backpropagate": "gradients.bptt",
    "bytes_of_model_tape": "gradients.bptt",
    "bytes_of_tape": "kernels.tape",
    "check_gradients": "gradients.check",
    "decayed": "gradients.linear",
    "decompose_gradient": "gradients.decomposition",
    "gradient_by_lag": "gradients.by_lag",
    "horizon": "gradients.jacobians",
    "influence": "gradients.jacobians",
    "linear_gradients": "gradients.linear",
    "of_radius": "gradients.linear",
    "per_sample_gradients": "gradients.per_sample",
    "per_sample_norms": "gradients.per_sample",
    "powers": "gradients.linear",
    "radii": "gradients.jacobians",
    "spectral_radius": "gradients.linear",
}
"""The module that each public name is imported from at first use."""

if not TYPE_CHECKING:  # a type checker would take any name for one that exists
    __getattr__, __dir__ = lazy_names(__name__, _MODULES)
