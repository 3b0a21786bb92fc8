"""Recurrent networks, unspooled: train small sequence models on a CPU, measure them, look inside."""

from unspool.lazy import lazy_names

TYPE_CHECKING = False
_TABLE = """
cells                      cell_named
cli.main                   main
data.formats.images        image_sequences
errors                     CutWarning Diverged EmptyInput FileError InputError MissingExtra UnknownArgument UnspoolError
evaluation.language        NetworkScorer evaluate log_prob
evaluation.metrics         Metrics measure
gradients.per_sample       per_sample_gradients per_sample_norms
kernels.machine            choose_isa kernel_info set_threads
model.config               ModelConfig
model.generate             Sampling sample
model.network              Model
model.sequence_config      SequenceConfig
model.sequence_network     Network
model.stream               Stream
optimisers.adam            Adam
optimisers.rmsprop         RMSprop
optimisers.sgd             SGD
plots.forecast             draw_ahead
plots.inspection           draw_gradients
plots.per_step             draw_per_step
storage.html_page          HtmlPage
storage.log                read_log
tasks.classify             SequenceClassifier
tasks.estimator            NotFitted
tasks.forecast.backtest    Backtest backtest
tasks.forecast.forecaster  Forecaster
tasks.generate_from        SequenceGenerator
tasks.language.estimator   LanguageModel
tasks.language.generator   TextGenerator
tasks.language.run         resume run
tasks.language.text_model  TextModel
tasks.registry             load
tasks.regress              SequenceRegressor
tasks.tag                  SequenceTagger
tasks.translate            SequenceTranslator
training.checkpoint        CheckpointPolicy
training.choose_learning   LearningChoice choose_learning
training.dynamic           Learning LearningReader LearningScorer
training.events            Evaluated RunConfig StepDone TrainingPlanned
training.loop              train
training.recipe            FitConfig
"""
if not TYPE_CHECKING:  # a type checker would take any name for one that exists
    __getattr__, __dir__ = lazy_names(__name__, _TABLE)
else:
    from unspool.cells import cell_named
    from unspool.cli.main import main
    from unspool.data.formats.images import image_sequences
    from unspool.errors import (
        CutWarning,
        Diverged,
        EmptyInput,
        FileError,
        InputError,
        MissingExtra,
        UnknownArgument,
        UnspoolError,
    )
    from unspool.evaluation.language import NetworkScorer, evaluate, log_prob
    from unspool.evaluation.metrics import Metrics, measure
    from unspool.gradients.per_sample import per_sample_gradients, per_sample_norms
    from unspool.kernels.machine import choose_isa, kernel_info, set_threads
    from unspool.model.config import ModelConfig
    from unspool.model.generate import Sampling, sample
    from unspool.model.network import Model
    from unspool.model.sequence_config import SequenceConfig
    from unspool.model.sequence_network import Network
    from unspool.model.stream import Stream
    from unspool.optimisers.adam import Adam
    from unspool.optimisers.rmsprop import RMSprop
    from unspool.optimisers.sgd import SGD
    from unspool.plots.forecast import draw_ahead
    from unspool.plots.inspection import draw_gradients
    from unspool.plots.per_step import draw_per_step
    from unspool.storage.html_page import HtmlPage
    from unspool.storage.log import read_log
    from unspool.tasks.classify import SequenceClassifier
    from unspool.tasks.estimator import NotFitted
    from unspool.tasks.forecast.backtest import Backtest, backtest
    from unspool.tasks.forecast.forecaster import Forecaster
    from unspool.tasks.generate_from import SequenceGenerator
    from unspool.tasks.language.estimator import LanguageModel
    from unspool.tasks.language.generator import TextGenerator
    from unspool.tasks.language.run import resume, run
    from unspool.tasks.language.text_model import TextModel
    from unspool.tasks.registry import load
    from unspool.tasks.regress import SequenceRegressor
    from unspool.tasks.tag import SequenceTagger
    from unspool.tasks.translate import SequenceTranslator
    from unspool.training.checkpoint import CheckpointPolicy
    from unspool.training.choose_learning import LearningChoice, choose_learning
    from unspool.training.dynamic import Learning, LearningReader, LearningScorer
    from unspool.training.events import Evaluated, RunConfig, StepDone, TrainingPlanned
    from unspool.training.loop import train
    from unspool.training.recipe import FitConfig

__version__ = "0.1.0"
__all__ = [
    "SGD",
    "Adam",
    "Backtest",
    "CheckpointPolicy",
    "CutWarning",
    "Diverged",
    "EmptyInput",
    "Evaluated",
    "FileError",
    "FitConfig",
    "Forecaster",
    "HtmlPage",
    "InputError",
    "LanguageModel",
    "Learning",
    "LearningChoice",
    "LearningReader",
    "LearningScorer",
    "Metrics",
    "MissingExtra",
    "Model",
    "ModelConfig",
    "Network",
    "NetworkScorer",
    "NotFitted",
    "RMSprop",
    "RunConfig",
    "Sampling",
    "SequenceClassifier",
    "SequenceConfig",
    "SequenceGenerator",
    "SequenceRegressor",
    "SequenceTagger",
    "SequenceTranslator",
    "StepDone",
    "Stream",
    "TextGenerator",
    "TextModel",
    "TrainingPlanned",
    "UnknownArgument",
    "UnspoolError",
    "backtest",
    "cell_named",
    "choose_isa",
    "choose_learning",
    "draw_ahead",
    "draw_gradients",
    "draw_per_step",
    "evaluate",
    "image_sequences",
    "kernel_info",
    "load",
    "log_prob",
    "main",
    "measure",
    "per_sample_gradients",
    "per_sample_norms",
    "read_log",
    "resume",
    "run",
    "sample",
    "set_threads",
    "train",
]
