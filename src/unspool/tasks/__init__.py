"""Tasks: what is learned from what. registry (load), estimator, classify, regress, tag, translate, generate_from, language, forecast.

config ─▶ batches ─▶ network (encoder, decoder, attention, head) ─▶ fit ─▶ estimators
"""

from unspool.data.formats.images import image_sequences
from unspool.model.sequence_config import SequenceConfig
from unspool.model.sequence_network import Network
from unspool.tasks.classify import SequenceClassifier
from unspool.tasks.generate_from import SequenceGenerator
from unspool.tasks.regress import SequenceRegressor
from unspool.tasks.tag import SequenceTagger
from unspool.tasks.translate import SequenceTranslator
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
