"""The page of `unspool inspect` for a classifier, a tagger or a regressor: how the prediction changes with every step read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unspool.cells import cell_named
from unspool.inspect.steps import StepPredictions, StepsReport, predictions_by_step
from unspool.storage.html_page import HtmlPage
from unspool.studio.frozen import frozen_page
from unspool.studio.payload import array, clean, number
from unspool.tasks.estimator import Estimator

UNITS = 128
"""Units of the heat map: those that move most."""


def steps_page(report: StepsReport) -> HtmlPage:
    """Return the page of a report."""
    config = report.model.network_.config
    title = clean(f"{report.run}: {report.data}")
    content = {
        "whole": True, "title": title, "views": ["steps"], "answers": {}, "parts": {}, "curve": [], "cut": None,
        "state": {"view": "steps", "t": 0, "text": "", "edits": []},
        "steps": {
            "names": [clean(name) for name in report.names], "classes": report.classes, "each": report.per_step,
            "both": config.bidirectional and report.per_step, "halves": config.bidirectional, "kind": report.model.run_kind, "cell": cell_named(config.cell).title,
            "hidden": config.hidden, "layers": config.layers, "parameters": report.model.network_.parameters.count,
            "sequences": [_sequence(each) for each in report.sequences],
        },
    }  # fmt: skip
    return HtmlPage(frozen_page(content, title))


def inspect_sequences(model: Estimator, X: Any, y: Any = None) -> HtmlPage:
    """Return the page of a fitted model that reads sequences."""
    return steps_page(predictions_by_step(model, X, y))


def _sequence(found: StepPredictions) -> dict[str, Any]:
    tau, channels = (len(found.pieces), 0) if found.pieces else found.values.shape
    units = np.sort(np.argsort(-found.states.std(axis=0), kind="stable")[:UNITS])
    truth = found.truth
    return {
        "tau": tau, "pieces": [clean(piece) for piece in found.pieces], "values": array(found.values), "channels": channels,
        "side": _side(tau, channels), "steps": found.steps.tolist(), "predictions": array(found.predictions, "f8"),
        "states": array(found.states[:, units]), "units": units.tolist(),
        "truth": clean(truth) if isinstance(truth, str) else truth if truth is None else
        [number(each) if isinstance(each, float) else clean(each) for each in truth],
    }  # fmt: skip


def _side(tau: int, channels: int) -> int:
    """Return the side of a square image that is read pixel by pixel, or 0.

    >>> _side(784, 1), _side(28, 28), _side(50, 1)
    (28, 0, 0)
    """
    side = math.isqrt(tau)
    return side if channels == 1 and side >= 8 and side * side == tau else 0
