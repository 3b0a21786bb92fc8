"""Forecasts of numbers in time: season, transformation, network, baselines, intervals, backtest."""

from unspool.forecast.backtest import Backtest, backtest
from unspool.forecast.forecaster import Forecaster
from unspool.forecast.store import load, load_forecaster, save

__all__ = ["Backtest", "Forecaster", "backtest", "load", "load_forecaster", "save"]
