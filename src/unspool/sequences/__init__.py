"""Sequences that are not language models: every shape of input and output, in one interface.

config ─▶ batches ─▶ network (encoder, decoder, attention, head) ─▶ fit ─▶ estimators
"""

from unspool.data.images import image_sequences
from unspool.sequences.config import FitConfig, SequenceConfig
from unspool.sequences.estimators import SequenceClassifier, SequenceRegressor, SequenceTagger
from unspool.sequences.network import Network
from unspool.sequences.writers import SequenceGenerator, SequenceTranslator

__all__ = [
    "FitConfig",
    "Network",
    "SequenceClassifier",
    "SequenceConfig",
    "SequenceGenerator",
    "SequenceRegressor",
    "SequenceTagger",
    "SequenceTranslator",
    "image_sequences",
]
