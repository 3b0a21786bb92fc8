"""Check the gradients of a model: analytic formulas against finite differences and PyTorch.

The exit code is 0 only if all gradients agree.
"""

import importlib.util
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from unspool.cells import PLAIN, CellName
from unspool.cli.options import ConfigFile, Flag, option_class
from unspool.cli.output import notes, plain_table, print_json, terminal
from unspool.errors import InputError
from unspool.gradients.check import BF16, EXACT, FLOAT32, Compared, check_gradients
from unspool.kernels.arrays import Activation, Precision
from unspool.model import options as network
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.model.values import Feedback
from unspool.options import at_least, build
from unspool.storage import run_folder
from unspool.training import store

MOST = 100_000_000
"""The most weights, and the most values of a window, that a check allocates."""


@option_class
class Options(ConfigFile):
    """What `check-gradients` is given."""

    cell: CellName = PLAIN
    hidden: int = 16
    layers: int = 1
    pattern: str = network.PATTERN.field(
        "10.3",
        help="Recurrence, numbered as the figures in Goodfellow et al., Deep Learning: 10.3, hidden to hidden; 10.4, output to hidden; 10.5, one output at the end.",
    )
    feedback: Feedback = "token"
    activation: Activation = "tanh"
    h0: network.InitialState = "zero"
    precision: Precision | None = network.PRECISION.field(
        None, help=f"{network.PRECISION.help} [default: float32, or as in the run]"
    )
    bidirectional: Flag = network.BIDIRECTIONAL.field(False)
    vocabulary: int = 12
    """Vocabulary size of the untrained model."""
    window: Annotated[int, Parameter(name="--steps")] = 12
    """Steps of the random window."""
    batch_size: Annotated[int, Parameter(name="--rows")] = 3
    """Rows of the random window."""
    values: int = 24
    """Number of values per parameter that are perturbed for the finite differences."""
    seed: int = 0
    json: Flag = False
    """Print JSON."""
    quiet: Flag = False
    """Print only whether all gradients agree."""

    def fresh(self) -> Model:
        """Make a model of these sizes."""
        if self.layers * self.hidden * max(self.hidden, self.vocabulary) > MOST:
            raise InputError(
                f"layers {self.layers:,}, hidden {self.hidden:,} and vocabulary {self.vocabulary:,} are too large to "
                "check; choose smaller sizes"
            )
        K, learned = self.vocabulary, self.h0 == "learned"
        config = build(
            ModelConfig, self, inputs=K, outputs=K, learn_h0=learned, precision=self.precision or "float32"
        )
        return Model.initialise(config, self.seed)


def check_command(
    run: Annotated[Path | None, Parameter(negative="")] = None, /, *, options: Options = Options()
) -> None:
    """Run `unspool check-gradients`.

    Parameters
    ----------
    run
        The folder of a run [default: an untrained model with the sizes that the options give].
    """
    at_least("seed", options.seed, 0)
    model = options.fresh() if run is None else _trained(run)
    if options.precision not in (None, model.config.precision):
        raise InputError(
            f"{run}: a run in {model.config.precision}, and --precision is {options.precision}; leave --precision out"
        )
    if options.window * options.batch_size * model.config.hidden > MOST:
        raise InputError(
            f"steps {options.window:,} and rows {options.batch_size:,} are too many to check; choose fewer"
        )
    console = notes(options)
    with console.status("comparing …") as status:
        found = check_gradients(
            model,
            tau=options.window,
            B=options.batch_size,
            probed=options.values,
            seed=options.seed,
            on_progress=lambda name: status.update(f"{name} …"),
        )
    good = all(each.agrees for each in found)
    if options.json:
        print_json({"agree": good, "parameters": [each.to_json() for each in found]})
    else:
        console.print(_table(found))
        terminal().print(_verdict(found, good))
    if not good:
        sys.exit(1)


def _trained(run: Path) -> Model:
    run_folder.read_config(run, "language")  # refuses a run of another kind
    return store.load_model(run / run_folder.MODEL)[0]


def _table(found: list[Compared]) -> Table:
    bf16 = bool(found) and found[0].precision == "bf16"
    ours = ("bf16 ~ float64, by norm",) if bf16 else ("float32 ~ differences", "float32 ~ PyTorch")
    compared = (*ours, "float64 ~ differences", "float64 ~ PyTorch")
    table = plain_table("parameter", right=("shape", "nudged", *compared), gap=1)
    table.columns[0].no_wrap = True
    for each in found:
        native = ((each.native_and_differences, FLOAT32), (each.native_and_torch, FLOAT32))
        exact = ((each.reference_and_differences, EXACT), (each.reference_and_torch, EXACT))
        errors = (*(((each.distance, BF16),) if bf16 else native), *exact)
        shape = " ".join(map(str, each.shape))
        table.add_row(each.name, shape, str(each.probed), *(_cell(error, limit) for error, limit in errors))
    return table


def _cell(error: float | None, limit: float) -> Text:
    if error is None:
        return Text("–", "dim")
    return Text(f"{error:.1e}", "green" if error <= limit else "bold red")


def _verdict(found: list[Compared], good: bool) -> str:
    torch = ""
    if not found or found[0].reference_and_torch is None:
        installed = importlib.util.find_spec("torch")
        torch = "; PyTorch has no such layer" if installed else "; PyTorch is not installed"
    ours = f"{BF16:g} in bf16" if found and found[0].precision == "bf16" else f"{FLOAT32:g} in float32"
    limits = f"limits of the relative error: {ours}, {EXACT:g} in float64"
    if good:
        return f"all {len(found)} parameters agree ({limits}{torch})"
    wrong = ", ".join(each.name for each in found if not each.agrees)
    return f"NOT all agree: {wrong} ({limits}{torch})"
