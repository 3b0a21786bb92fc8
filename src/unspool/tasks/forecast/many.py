"""Fit the forecasters of many series at the same time, one series per job (`unspool.training.workers`).

    series ─▶ job: train its networks, measure their errors, score them ─▶ the run

A job gets the series, the arguments of its forecaster and the networks that are trained already. It returns parameters and
errors, the same bits as `ForecastFit.column`. The process that started the jobs writes them into the run.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import closing
from typing import Any, NamedTuple

from unspool.data.series.time_table import Values
from unspool.errors import Diverged, InputError
from unspool.kernels.arrays import Floats, Real
from unspool.tasks.forecast.backtest import Backtest, Known, holdout_backtest
from unspool.tasks.forecast.ensemble import fit_member
from unspool.tasks.forecast.forecaster import Forecaster
from unspool.tasks.forecast.run import ForecastFit
from unspool.training.workers import Workers


class SeriesJob(NamedTuple):
    """One series to learn."""

    arguments: Mapping[str, Any]
    y: Real
    known: Known
    trained: Mapping[int, Floats]
    """The parameters of networks that are trained already."""


class SeriesFit(NamedTuple):
    """What was learned from one series."""

    name: str
    networks: list[Floats]
    """The parameters of all networks of the ensemble."""
    calibrated: Mapping[str, Any]
    """The attributes of the forecaster that `calibrate` sets: its errors, its other models, …"""
    scores: Backtest | None
    fault: str | None = None
    """Why it cannot be learned."""


def fit_series(job: SeriesJob) -> SeriesFit:
    """Fit the forecaster of one series and score it on its held-out values."""
    model = Forecaster(**job.arguments)
    try:
        ensemble = model.begin(job.y, job.known)
        for k, member in enumerate(ensemble.members):
            if k in job.trained:
                member.network.parameters.flat[:] = job.trained[k]
                continue
            for _ in fit_member(ensemble, k, ensemble.state(k)):
                pass
        before = dict(vars(model))
        model.calibrate(ensemble)
        calibrated = {name: value for name, value in vars(model).items() if before.get(name) is not value}
        found = holdout_backtest(model, job.y, job.known)
    except (InputError, Diverged) as error:
        return SeriesFit("", [], {}, None, str(error))
    flats = [member.network.parameters.flat for member in ensemble.members]
    return SeriesFit("", flats, calibrated, found)


def fit_many(work: ForecastFit, series: Mapping[str, Values], workers: Workers) -> Generator[SeriesFit]:
    """Fit all series of a run, and yield each one when it is ready; those that are trained already are scored again."""
    names = list(series)
    jobs = [
        SeriesJob(work.run.forecasters[name].get_params(), each.y, each.known, work.trained(name))
        for name, each in series.items()
    ]
    with closing(workers.run(fit_series, jobs)) as results:
        for i, found in results:
            if found.fault is None:
                work.take(names[i], found.networks, found.calibrated)
            yield found._replace(name=names[i])
