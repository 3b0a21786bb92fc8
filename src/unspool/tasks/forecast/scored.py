"""What scikit-learn's searches need of a forecaster: a score of the values after the training series, and tags.

GridSearchCV(Forecaster(…), {"window": [12, 24]}, cv=TimeSeriesSplit(3)).fit(y)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unspool.data.series.checks import check_series
from unspool.evaluation.forecast import mase, naive_scale
from unspool.options import Arguments


class ScoredForecaster(Arguments):
    """A forecaster with the methods of scikit-learn's searches."""

    horizon: int
    season_: int
    history_: Any

    def predict(self, steps: int | None = None, history: Any = None, phase: int = 0) -> Any:
        """Forecast the next steps."""
        raise NotImplementedError

    def score(self, y: Any, scored: Any = None) -> float:
        """Return minus the MASE of the values that follow the training series, up to the horizon: higher is better.

        The scale is that of the seasonal naive forecast over the training series.
        """
        truth = check_series(y, "the series")[: self.horizon]
        season = self.season_ if 0 < self.season_ < len(self.history_) else 1
        scale = naive_scale(np.asarray(self.history_), season)
        return -mase(np.asarray(self.predict(len(truth))), truth, scale or 1.0)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            regressor_tags=RegressorTags(),
            input_tags=InputTags(one_d_array=True, two_d_array=False),
        )

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether `fit` was called, for scikit-learn."""
        return hasattr(self, "history_")
