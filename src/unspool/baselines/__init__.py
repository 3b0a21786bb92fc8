"""Baselines: n-gram models and their mixture with a network, Markov chains, autoregression, naive forecasts, ridge regression; statistics of a text."""

from typing import TYPE_CHECKING

from unspool.lazy import lazy_names

_TABLE = """
baselines.autoregression        Autoregression fit_autoregression
baselines.kneser_ney_smoothing  estimate_discount kneser_ney
baselines.laplace_smoothing     laplace maximum_likelihood
baselines.markov                MarkovChain estimate
baselines.mixture               Mixture MixtureScorer fit_mixture
baselines.mixture_stream        MixtureStream
baselines.multi_step            error_by_steps predict_ahead
baselines.ngram_counts          NgramCounts count_ngrams
baselines.ngram_model           NgramModel generate
baselines.reverse               both_directions
baselines.window_network        train_on_numbers train_on_tokens
baselines.zipf                  ZipfFit fit_zipf frequencies
"""
if not TYPE_CHECKING:  # a type checker would take any name for one that exists
    __getattr__, __dir__ = lazy_names(__name__, _TABLE)
else:
    from unspool.baselines.autoregression import Autoregression, fit_autoregression
    from unspool.baselines.kneser_ney_smoothing import estimate_discount, kneser_ney
    from unspool.baselines.laplace_smoothing import laplace, maximum_likelihood
    from unspool.baselines.markov import MarkovChain, estimate
    from unspool.baselines.mixture import Mixture, MixtureScorer, fit_mixture
    from unspool.baselines.mixture_stream import MixtureStream
    from unspool.baselines.multi_step import error_by_steps, predict_ahead
    from unspool.baselines.ngram_counts import NgramCounts, count_ngrams
    from unspool.baselines.ngram_model import NgramModel, generate
    from unspool.baselines.reverse import both_directions
    from unspool.baselines.window_network import train_on_numbers, train_on_tokens
    from unspool.baselines.zipf import ZipfFit, fit_zipf, frequencies

__all__ = [
    "Autoregression",
    "MarkovChain",
    "Mixture",
    "MixtureScorer",
    "MixtureStream",
    "NgramCounts",
    "NgramModel",
    "ZipfFit",
    "both_directions",
    "count_ngrams",
    "error_by_steps",
    "estimate",
    "estimate_discount",
    "fit_autoregression",
    "fit_mixture",
    "fit_zipf",
    "frequencies",
    "generate",
    "kneser_ney",
    "laplace",
    "maximum_likelihood",
    "predict_ahead",
    "train_on_numbers",
    "train_on_tokens",
]
