"""A head that predicts a normal distribution of each number: o holds the means, then the raw deviations."""

from typing import ClassVar

from unspool.kernels.arrays import Floats, cached_attribute
from unspool.model.heads.base import Head
from unspool.model.losses.gaussian import GaussianLikelihood


class Distribution(Head):
    """Predict mean and standard deviation of each value, trained by negative log-likelihood."""

    name: ClassVar[str] = "distribution"
    loss_name: ClassVar[str] = "gaussian"
    has_std: ClassVar[bool] = True

    @property
    def K(self) -> int:
        """The width of the output o: two values per number."""
        return 2 * self.outputs

    @cached_attribute
    def loss(self) -> GaussianLikelihood:
        """The loss that trains this head."""
        return GaussianLikelihood(self.floor)

    def mean(self, o: Floats) -> Floats:
        """Return the means (…, outputs) in float64."""
        return self.loss.mean_and_std(o)[0]

    def std(self, o: Floats) -> Floats:
        """Return the standard deviations (…, outputs) in float64."""
        return self.loss.mean_and_std(o)[1]
