"""Benchmark forecasts with rolling origins against the automatic models of statsforecast.

    python bench/forecast.py --wheels WHEELS [--peers PYTHON] [--seeds 3] [--half A|B] [--only airline …] [--threads 1]

WHEELS holds the wheels that `bench/forecast_series.py` names; the series are read out of them. PYTHON is the interpreter of an
environment with statsforecast: its models are fitted in the same run. All models are fitted once, before the first origin; then
they read the new values. Settings were chosen on half A. Figures are means over seeds; the tables go to standard output,
the numbers to bench/results/forecast.json.
"""

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from forecast_series import CALENDAR, Real, Task, load_tasks
from table import save, show
from unspool import set_threads
from unspool.evaluation.forecast import coverage, mase, naive_scale
from unspool.tasks.forecast.answer import mean_of, name_of
from unspool.tasks.forecast.forecaster import Forecaster

MODELS = ("network", "autoregression", "smoothing", "theta", "naive")
JUDGED = 50
"""Fewest origins from which the coverage of a single step is judged."""


def origins_of(task: Task) -> Any:
    """Return the origins of a task."""
    return np.arange(len(task.y) - task.test, len(task.y) - task.horizon + 1, task.stride)


def ours(task: Task, seed: int) -> dict[str, Any]:
    """Return the figures of one fit."""
    origins, H = origins_of(task), task.horizon
    train, begin = task.y[: origins[0]], time.perf_counter()
    model = Forecaster(horizon=H, calendar=CALENDAR[task.step], seed=1000 * seed).fit(train)
    seconds = time.perf_counter() - begin
    truth, scale = task.y[origins[:, None] + np.arange(H)], naive_scale(train, task.season)
    forecasts = model.forecasts_at(task.y, origins)
    found = {name: mase(forecasts[name], truth, scale) for name in MODELS}
    found["answer"] = mase(mean_of(forecasts, model.answer_), truth, scale)
    low, high = model.interval_at(task.y, origins)
    inside = ((low <= truth) & (truth <= high)).mean(axis=0)
    return {
        "mase": found, "coverage": coverage(low, high, truth), "least": float(inside.min()), "origins": len(origins),
        "answer": name_of(model.answer_), "season": model.season_, "seconds": seconds,
    }  # fmt: skip


def of_peers(tasks: list[Task], python: str) -> dict[str, dict[str, float]]:
    """Return the MASE of the peers' models, by model and series."""
    with tempfile.TemporaryDirectory() as folder:
        asked, told = Path(folder) / "tasks.json", Path(folder) / "forecasts.json"
        content = {
            task.name: {"y": task.y.tolist(), "season": task.season, "horizon": task.horizon, "origins": origins_of(task).tolist()}
            for task in tasks
        }  # fmt: skip
        asked.write_text(json.dumps(content))
        script = Path(__file__).with_name("forecast_peers.py")
        subprocess.run([python, str(script), str(asked), str(told)], check=True)
        answers = json.loads(told.read_text())
    return {
        model: {task.name: _mase(task, each[task.name]) for task in tasks} for model, each in answers.items()
    }


def _mase(task: Task, forecasts: Any) -> float:
    origins = origins_of(task)
    truth: Real = task.y[origins[:, None] + np.arange(task.horizon)]
    if forecasts is None:
        return float("nan")
    return mase(np.array(forecasts), truth, naive_scale(task.y[: origins[0]], task.season))


def table(
    half: str, tasks: list[Task], found: dict[str, list[dict[str, Any]]], peers: dict[str, dict[str, float]]
) -> None:
    """Print one half: MASE of all models by series, their means, coverage."""
    rows, columns = [], ["answer", *MODELS, *peers]
    means: dict[str, list[float]] = {name: [] for name in columns}
    for task in tasks:
        each = found[task.name]
        figures = {name: float(np.mean([one["mase"][name] for one in each])) for name in ("answer", *MODELS)}
        figures |= {model: values[task.name] for model, values in peers.items()}
        for name, value in figures.items():
            means[name].append(value)
        held, least = np.mean([one["coverage"] for one in each]), min(one["least"] for one in each)
        judged = f"{least:.2f}" if each[0]["origins"] >= JUDGED else "–"
        rows.append([task.name, *(f"{figures[name]:.3f}" for name in columns), f"{held:.1%}", judged])
    held = np.mean([one["coverage"] for task in tasks for one in found[task.name]])
    rows.append(["mean", *(f"{np.mean(means[name]):.3f}" for name in columns), f"{held:.1%}", ""])
    print(f"\nhalf {half}")
    show(["", *columns, "80% coverage", "least step"], rows)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--wheels", type=Path, required=True)
    parser.add_argument("--peers")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--half", choices=["A", "B"])
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--threads", type=int)
    given = parser.parse_args()
    if given.threads:
        set_threads(given.threads)
    tasks = [
        t
        for t in load_tasks(given.wheels)
        if given.half in (None, t.half) and (not given.only or t.name in given.only)
    ]
    found = {}
    for task in tasks:
        found[task.name] = [ours(task, seed) for seed in range(given.seeds)]
        first = found[task.name][0]
        print(
            f"{task.name}: {first['mase']['answer']:.3f}, {first['answer']}, {first['seconds']:.0f} s",
            flush=True,
        )
    peers = of_peers(tasks, given.peers) if given.peers else {}
    for half in sorted({task.half for task in tasks}):
        table(half, [task for task in tasks if task.half == half], found, peers)
    if not given.only and given.half is None:
        save("forecast", {"series": found, "peers": peers, "half": {task.name: task.half for task in tasks}})


if __name__ == "__main__":
    main()
