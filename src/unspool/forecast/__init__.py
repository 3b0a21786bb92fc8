"""Forecasts of numbers in time: season, transformation, network, baselines, intervals, backtest."""
