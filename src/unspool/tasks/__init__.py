"""Sequences that are not language models: every shape of input and output, in one interface.

config ─▶ batches ─▶ network (encoder, decoder, attention, head) ─▶ fit ─▶ estimators
"""

from unspool.data.formats.images import image_sequences
from unspool.model.sequence_config import SequenceConfig
from unspool.model.sequence_network import Network
from unspool.tasks.predictors import SequenceClassifier, SequenceRegressor, SequenceTagger
from unspool.tasks.writers import SequenceGenerator, SequenceTranslator
from unspool.training.recipe import FitConfig

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
