"""What a terminal shows of predicted numbers that are judged: the errors of every target, beside simple models."""

from typing import Any

from rich.console import Console

from unspool.cli.output import plain_table, title
from unspool.evaluation.regression import better_models, models_of

CALLED = {"mean": "mean of the training split", "ridge": "ridge regression"}


def show_regression(console: Console, scores: dict[str, Any], of: str) -> None:
    """Print RMSE, MAE and R² of every target and model, and say where another model is better than the one that answers."""
    console.print(title(of, f": {scores['rows']:,} rows\n"))
    several = len(scores["targets"]) > 1
    table = plain_table(*["target"] * several, "", right=("RMSE", "MAE", "R²"), wide=True)
    for target in scores["targets"]:
        for number, model in enumerate(models_of(target)):
            figures = [_written(target[model][name]) for name in ("rmse", "mae", "r2")]
            first = [target["name"] if number == 0 else ""] if several else []
            table.add_row(*first, CALLED.get(model, model), *figures)
    console.print(table)
    for target in scores["targets"]:
        if better := better_models(target):
            console.print(
                f"\n{target['name']}: the {CALLED.get(better[0], better[0])} has the lower RMSE: use it, or give the network more "
                "examples or another size"
            )


def _written(number: float | None) -> str:
    return "–" if number is None else f"{number:.4g}"
