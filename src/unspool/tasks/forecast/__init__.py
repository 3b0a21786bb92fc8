"""Forecasts of numbers in time: season, transformation, network, baselines, intervals, backtest."""

from unspool.tasks.forecast.backtest import Backtest, backtest
from unspool.tasks.forecast.forecaster import Forecaster
from unspool.tasks.forecast.store import load, load_forecaster, save

__all__ = ["Backtest", "Forecaster", "backtest", "load", "load_forecaster", "save"]
