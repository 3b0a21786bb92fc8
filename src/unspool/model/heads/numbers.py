"""A head that predicts numbers: o is the prediction."""

from typing import ClassVar

from unspool.model.heads.base import Head


class Numbers(Head):
    """Predict one value per output, trained by squared error."""

    name: ClassVar[str] = "numbers"
    loss_name: ClassVar[str] = "squared-error"
