"""The hyper-parameters of forecasts that other tasks do not have."""

from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias

from unspool.model import options as network
from unspool.optimisers import options as optimisers
from unspool.options import FRACTION, INSIDE_UNIT, MOST_STEPS, Option, number, whole
from unspool.training import options as training

Power = Literal["guess", "none", "root", "log"]
Differences: TypeAlias = tuple[int, int] | str
_data: Any = partial(Option, group="Data")

ModelName = Literal["best", "mean", "network", "autoregression", "smoothing", "theta", "naive"]
MODEL: Option[ModelName] = _data(
    "model",
    "Model that answers: best is the mean of the models, weighted by their errors on values held aside; mean is the plain mean of all "
    "but naive, which repeats the last season.",
    choices=("best", "mean", "network", "autoregression", "smoothing", "theta", "naive"),
)
CALENDAR: Option[Any] = _data("calendar", "Candidates for the season besides that of the autocorrelation.")
HORIZON: Option[int] = _data("horizon", "Number of steps to forecast.", whole(1))
SEASON: Option[Any] = _data("season", "Steps per season; 1: no season; guess: from the autocorrelation.")
POWER: Option[Power] = _data(
    "power", "Transform of the values: none, root or log; guess: from how the standard deviation grows with the mean.",
    choices=("guess", "none", "root", "log"),
)  # fmt: skip
DIFFERENCES: Option[Any] = _data(
    "differences", "d,D: ordinary and seasonal differences, each 0 or 1; guess: from the autocorrelations."
)
WINDOW = replace(
    training.WINDOW, help="Number of past values that a network reads; 0: three seasons; if the series also has a longer season (168 hours besides 24), one of each; without a season, 24 values.",
    check=whole(0), group="Network",
)  # fmt: skip
HIDDEN = replace(
    network.HIDDEN, help="H, the hidden units; 0: 16, 32 or 48, by the number of windows.", check=whole(0)
)
STEPS = replace(
    training.STEPS,
    help="Updates of each network; besides the members, there are half as many networks that measure the errors behind the "
    "prediction intervals. 0: six passes over the windows, at least 400 and at most 2,400 updates.",
    check=whole(0, MOST_STEPS),
)  # fmt: skip
OPTIMISER = replace(
    optimisers.OPTIMISER, help="Optimiser, with weight decay 0.05 on matrices; sgd has momentum 0.9."
)
MEMBERS: Option[int] = Option(
    "members",
    "Number of networks to average; 0 chooses 4, or 2 for 5,000 or more windows.",
    whole(0, 1000),
    group="Network",
)
NOISE: Option[float] = Option(
    "noise", "Standard deviation of the noise on the input in training; below 0: chosen by the length.",
    number("a finite number", lambda value: abs(value) < float("inf")),
)  # fmt: skip
CALIBRATION: Option[float] = Option(
    "calibration",
    "Fraction at the end of the series that calibrates the intervals; 0: no intervals.",
    FRACTION,
)
LEVEL: Option[float] = Option(
    "level", "Nominal coverage of the prediction interval.", INSIDE_UNIT, group="Output"
)
