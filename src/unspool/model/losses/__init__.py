"""Loss functions by name: one file and one entry of LOSSES each."""

from unspool.model.losses.base import LossFunction
from unspool.model.losses.cross_entropy import CrossEntropy
from unspool.model.losses.gaussian import GaussianLikelihood
from unspool.model.losses.squared_error import SquaredError

LOSSES: dict[str, type[LossFunction]] = {
    each.name: each for each in (CrossEntropy, SquaredError, GaussianLikelihood)
}
"""All loss functions by name."""
