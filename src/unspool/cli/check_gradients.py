"""`unspool check-gradients`: hand formulas, finite differences and PyTorch, side by side."""

import json as jsonlib
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from unspool import checkpoint
from unspool.check_gradients import EXACT, HAND, Compared, check_gradients
from unspool.cli.options import Flag
from unspool.config import ModelConfig
from unspool.model import Model


def check_command(
    run: Annotated[Path | None, Parameter(negative="")] = None,
    /,
    *,
    cell: Literal["elman", "gru", "lstm"] = "elman",
    hidden: int = 16,
    layers: int = 1,
    pattern: str = "10.3",
    activation: Literal["tanh", "relu", "sigmoid", "identity"] = "tanh",
    bidirectional: Flag = False,
    vocabulary: int = 12,
    steps: int = 12,
    rows: int = 3,
    values: int = 24,
    seed: int = 0,
    json: Flag = False,
) -> None:
    """Prove the gradients of a trained or a fresh model; the exit code is 0 only if all ways agree.

    Parameters
    ----------
    run
        The folder of a run; without one, a fresh model of the sizes below.
    cell
        elman, gru or lstm.
    hidden
        Units of a layer.
    layers
        How many layers.
    pattern
        10.3 (hidden), 10.4 (output) or 10.5 (last).
    activation
        The Elman cell's.
    bidirectional
        Both directions.
    vocabulary
        How many tokens.
    steps
        Steps of the random window.
    rows
        Rows of the random window.
    values
        How many values of each parameter are nudged for the differences.
    seed
        Where the fresh model, the window and the choice of values come from.
    json
        Print JSON.
    """
    if run is not None:
        model = checkpoint.load_model(run / checkpoint.MODEL)[0]
    else:
        model = Model.fresh(
            ModelConfig(
                inputs=vocabulary, outputs=vocabulary, cell=cell, hidden=hidden, layers=layers,
                pattern=pattern, activation=activation, bidirectional=bidirectional,  # type: ignore[arg-type]
            ),
            seed,
        )  # fmt: skip
    console = Console(highlight=False, quiet=json)
    with console.status("comparing …") as status:
        found = check_gradients(
            model, tau=steps, B=rows, nudged=values, seed=seed, told=lambda name: status.update(f"{name} …")
        )
    good = all(each.agrees for each in found)
    if json:
        print(
            jsonlib.dumps(
                {"agree": good, "parameters": [asdict(each) | {"agrees": each.agrees} for each in found]}
            )
        )
    else:
        console.print(_table(found))
        console.print(_verdict(found, good), soft_wrap=True)
    if not good:
        sys.exit(1)


def _table(found: list[Compared]) -> Table:
    table = Table(box=None, pad_edge=False, title_justify="left")
    table.add_column("parameter", no_wrap=True)
    table.add_column("shape", justify="right")
    table.add_column("nudged", justify="right")
    for name in ("hand ~ differences", "hand ~ PyTorch", "twins ~ differences", "twins ~ PyTorch"):
        table.add_column(name, justify="right")
    for each in found:
        errors = (
            (each.hand_and_differences, HAND), (each.hand_and_torch, HAND),
            (each.twins_and_differences, EXACT), (each.twins_and_torch, EXACT),
        )  # fmt: skip
        shape = " ".join(map(str, each.shape))
        table.add_row(each.name, shape, str(each.nudged), *(_cell(error, limit) for error, limit in errors))
    return table


def _cell(error: float | None, limit: float) -> Text:
    if error is None:
        return Text("–", "dim")
    return Text(f"{error:.1e}", "green" if error <= limit else "bold red")


def _verdict(found: list[Compared], good: bool) -> str:
    torch = "" if found and found[0].hand_and_torch is not None else "; PyTorch is not installed"
    limits = f"worst relative error at most {HAND:g} in float32 and {EXACT:g} in float64"
    if good:
        return f"all {len(found)} parameters agree ({limits}{torch})"
    wrong = ", ".join(each.name for each in found if not each.agrees)
    return f"NOT all agree: {wrong} ({limits}{torch})"
