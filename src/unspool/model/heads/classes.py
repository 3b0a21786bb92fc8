"""A head that predicts classes: o holds their unnormalised log-probabilities."""

from typing import ClassVar

import numpy as np

from unspool.errors import InputError
from unspool.kernels.arrays import Floats, Ids
from unspool.model.heads.base import Head
from unspool.model.inputs import describe


class Classes(Head):
    """Predict one of K classes or tokens, trained by cross-entropy."""

    name: ClassVar[str] = "classes"
    loss_name: ClassVar[str] = "cross-entropy"
    is_discrete: ClassVar[bool] = True

    def check_targets(self, h: Floats, y: Floats | Ids) -> None:
        """Raise unless y has one class id for each row of h."""
        if not isinstance(y, np.ndarray) or y.shape != h.shape[:-1] or y.dtype.kind not in "iu":
            what = "one target for each row" if h.ndim == 2 else "one target for each step and row"
            raise InputError(f"y is {describe(y)}; expected {h.shape[:-1]} of int32, {what}")
