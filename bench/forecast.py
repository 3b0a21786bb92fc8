"""Benchmark forecasts with a rolling origin against last value, seasonal naive, autoregression and the window MLP.

    python bench/forecast.py --series FOLDER [--seeds 3] [--only airline …] [--threads 1]

FOLDER holds Airline.csv, sunspots.csv, hourly_electricity.csv and co2.csv. Season, logarithm, differences,
windows and sizes are chosen by the rules of `unspool.tasks.forecast`; only horizon and test split are set here. Models are
fitted once, before the first origin. Figures are means over seeds; the table goes to standard output, the numbers to
bench/results/forecast.json.
"""

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from table import save, show
from unspool import set_threads
from unspool.data.formats.timetable import read_timetable
from unspool.tasks.forecast.backtest import Backtest, backtest
from unspool.tasks.forecast.forecaster import Forecaster


class Task(NamedTuple):
    """A series and how it is forecast."""

    file: str
    horizon: int
    test: int
    stride: int
    said: str
    missing: str = "refuse"


TASKS = {
    "airline": Task("Airline.csv", 12, 24, 1, "monthly passengers, a year ahead, the last 24 months"),
    "sunspots": Task("sunspots.csv", 4, 66, 1, "yearly sunspots, four years ahead, the last 66 years"),
    "electricity": Task("hourly_electricity.csv", 24, 56 * 24, 24, "hourly, a day ahead, the last 8 weeks"),
    "sunspots-cycle": Task("sunspots.csv", 11, 66, 1, "yearly sunspots, a whole cycle ahead"),
    "co2": Task("co2.csv", 26, 260, 4, "weekly CO2, half a year ahead, the last 5 years", "mask"),
}


def judged(task: Task, folder: Path, seed: int) -> tuple[Backtest, Forecaster]:
    table = read_timetable(folder / task.file, missing=task.missing)
    values = next(iter(table.columns.values()))
    model = Forecaster(horizon=task.horizon, seed=1000 * seed)
    return backtest(model, values.y, task.test, task.stride, scored=values.known), model


def measured(name: str, task: Task, folder: Path, seeds: int) -> dict[str, Any]:
    begin = time.perf_counter()
    found = [judged(task, folder, seed) for seed in range(seeds)]
    seconds = (time.perf_counter() - begin) / seeds
    first, model = found[0]
    figures: dict[str, Any] = {"what": task.said, "origins": len(first.origins), "horizon": task.horizon}
    figures |= {
        "season": model.season_,
        "change": str(model.change_),
        "seconds_a_seed": seconds,
        "models": {},
    }
    for row in first.rows:
        each = [result.row(row.name) for result, _ in found]
        figures["models"][row.name] = {
            "mase": float(np.mean([one.mase for one in each])),
            "mase_by_seed": [one.mase for one in each],
            "rmse": float(np.mean([one.rmse for one in each])),
            "of_naive": float(np.mean([one.relative for one in each])),
            "coverage": None if row.coverage is None else float(np.mean([one.coverage for one in each])),
        }
    print(f"\n{name}: {task.said}; season {model.season_}, {seconds:.0f} s a seed, {seeds} seeds")
    rows = [
        [
            model_name,
            f"{m['mase']:.4f}",
            f"{m['rmse']:.4g}",
            f"{m['of_naive']:.3f}",
            f"{m['coverage']:.1%}" if m["coverage"] else "",
        ]
        for model_name, m in figures["models"].items()
    ]
    show(["", "MASE", "RMSE", "of naive", "80% coverage"], rows)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--series", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--threads", type=int)
    given = parser.parse_args()
    if given.threads:
        set_threads(given.threads)
    figures = {name: measured(name, TASKS[name], given.series, given.seeds) for name in given.only}
    save("forecast" if len(given.only) == len(TASKS) else f"forecast-{'-'.join(given.only)}", figures)


if __name__ == "__main__":
    main()
