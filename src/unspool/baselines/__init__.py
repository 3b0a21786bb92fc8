"""Baselines: n-gram models, Markov chains, autoregression, naive forecasts, ridge regression; statistics of a text."""
