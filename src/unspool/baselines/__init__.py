"""Baselines: n-gram models, Markov chains, autoregression, naive forecasts, ridge regression; statistics of a text."""

from typing import TYPE_CHECKING

from unspool.lazy import lazy_names

if TYPE_CHECKING:
    from unspool.baselines.autoregression import Autoregression, fit_autoregression
    from unspool.baselines.kneser_ney_smoothing import estimate_discount, kneser_ney
    from unspool.baselines.laplace_smoothing import laplace, maximum_likelihood
    from unspool.baselines.markov import MarkovChain, estimate
    from unspool.baselines.multi_step import error_by_steps, predict_ahead
    from unspool.baselines.ngram_counts import NgramCounts, count_ngrams
    from unspool.baselines.ngram_model import NgramModel, generate
    from unspool.baselines.reverse import both_directions
    from unspool.baselines.window_network import train_on_numbers, train_on_tokens
    from unspool.baselines.zipf import ZipfFit, fit_zipf, frequencies

__all__ = [
    "Autoregression",
    "MarkovChain",
    "NgramCounts",
    "NgramModel",
    "ZipfFit",
    "both_directions",
    "count_ngrams",
    "error_by_steps",
    "estimate",
    "estimate_discount",
    "fit_autoregression",
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
_MODULES = {
    "Autoregression": "baselines.autoregression",
    "MarkovChain": "baselines.markov",
    "NgramCounts": "baselines.ngram_counts",
    "NgramModel": "baselines.ngram_model",
    "ZipfFit": "baselines.zipf",
    "both_directions": "baselines.reverse",
    "count_ngrams": "baselines.ngram_counts",
    "error_by_steps": "baselines.multi_step",
    "estimate": "baselines.markov",
    "estimate_discount": "baselines.kneser_ney_smoothing",
    "fit_autoregression": "baselines.autoregression",
    "fit_zipf": "baselines.zipf",
    "frequencies": "baselines.zipf",
    "generate": "baselines.ngram_model",
    "kneser_ney": "baselines.kneser_ney_smoothing",
    "laplace": "baselines.laplace_smoothing",
    "maximum_likelihood": "baselines.laplace_smoothing",
    "predict_ahead": "baselines.multi_step",
    "train_on_numbers": "baselines.window_network",
    "train_on_tokens": "baselines.window_network",
}
"""The module that each public name is imported from at first use."""

if not TYPE_CHECKING:  # a type checker would take any name for one that exists
    __getattr__, __dir__ = lazy_names(__name__, _MODULES)
