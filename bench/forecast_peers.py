"""Forecast series with statsforecast's automatic models, for `bench/forecast.py`; runs in an environment that has statsforecast.

    python bench/forecast_peers.py TASKS.json FORECASTS.json [--models AutoETS …]

TASKS.json maps names to y, season, horizon and origins. Each model is fitted once, on the values before the first origin, and
carried to the later origins with the same parameters (`forward`), as all models of the benchmark are.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from statsforecast import models

NAMES = ("SeasonalNaive", "AutoETS", "AutoTheta", "DynamicOptimizedTheta", "AutoCES", "AutoARIMA")


def made(name: str, season: int):
    if name == "AutoARIMA" and season >= 24:
        return models.AutoARIMA(season_length=season, approximation=True, max_order=5, nmodels=30)
    return getattr(models, name)(season_length=season)


def forecasts(name: str, task: dict) -> np.ndarray:
    y, H = np.array(task["y"]), task["horizon"]
    origins = task["origins"]
    model = made(name, task["season"]).fit(y[: origins[0]])
    return np.stack([
        y[origin - task["season"] + np.arange(H) % task["season"]] if name == "SeasonalNaive"
        else model.forward(y=y[:origin], h=H)["mean"]
        for origin in origins
    ])  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", type=Path)
    parser.add_argument("forecasts", type=Path)
    parser.add_argument("--models", nargs="+", default=NAMES)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    tasks = json.loads(given.tasks.read_text())
    found = json.loads(given.forecasts.read_text()) if given.forecasts.exists() else {}
    for model in given.models:
        for name, task in tasks.items():
            if name in found.get(model, {}):
                continue
            begin = time.perf_counter()
            try:
                answer = forecasts(model, task).tolist()
            except Exception as error:
                answer = None
                print(f"{model}, {name}: {error}", flush=True)
            found.setdefault(model, {})[name] = answer
            given.forecasts.write_text(json.dumps(found))
            print(f"{model}, {name}: {time.perf_counter() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main()
