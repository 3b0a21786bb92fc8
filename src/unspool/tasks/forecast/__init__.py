"""Forecasts of numbers in time: season, transformation, network, baselines, intervals, backtest."""

from unspool.tasks.forecast.backtest import Backtest, backtest
from unspool.tasks.forecast.forecaster import Forecaster
from unspool.tasks.forecast.run import ForecastRun

__all__ = ["Backtest", "ForecastRun", "Forecaster", "backtest"]
