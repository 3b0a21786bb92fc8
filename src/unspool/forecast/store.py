"""Forecasters on disk: the same folder as any other run, loadable at any moment.

RUN/config.json         arguments, and for every column its change, window and place in time
    model.safetensors   parameters of all networks, units, errors behind the intervals, the series itself
    log.jsonl           what happened
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unspool import checkpoint
from unspool.data.clock import Clock
from unspool.errors import FileError, InputError
from unspool.forecast.change import Change
from unspool.forecast.ensemble import Fitted
from unspool.forecast.forecaster import Forecaster
from unspool.forecast.windows import Layout, Units
from unspool.journal import Journal
from unspool.parameters import Parameters
from unspool.provenance import provenance, sha256_of
from unspool.sequences.config import SequenceConfig
from unspool.sequences.layout import shapes_of_network
from unspool.sequences.network import Network

KIND = "forecast"
ALONE = "value"
"""What the column of a forecaster without a table is called."""


@dataclass(frozen=True)
class Run:
    """Forecasters by column, and the times of their series."""

    forecasters: dict[str, Forecaster]
    time: str | None = None
    """The column of times."""
    clock: Clock | None = None
    begins: dict[str, int] | None = None
    """The number of each column's first value."""


def save(run: Run | Forecaster, path: str | Path, **more: Any) -> None:
    """Write fitted forecasters as a new run; `more` goes into the config as it is."""
    if isinstance(run, Forecaster):
        run = Run({ALONE: run})
    with checkpoint.new_run(path) as folder:
        columns = {name: _described(model) for name, model in run.forecasters.items()}
        content = {
            "time": run.time,
            "clock": None if run.clock is None else asdict(run.clock),
            "begins": run.begins or dict.fromkeys(columns, 0),
            "columns": columns,
            "provenance": _provenance(run),
        }
        checkpoint.write_config(folder, KIND, content | more)
        arrays = {
            f"{i}.{key}": array
            for i, model in enumerate(run.forecasters.values())
            for key, array in _arrays(model).items()
        }
        checkpoint.write_arrays(folder / checkpoint.MODEL, arrays, {"columns": list(columns)})
        with Journal(folder / checkpoint.LOG) as journal:
            journal.add({"event": "saved", "columns": list(columns)})


def load(path: str | Path) -> Run:
    """Read forecasters from a run."""
    content = checkpoint.read_config(path, KIND)
    place = Path(path) / checkpoint.MODEL
    arrays, _ = checkpoint.read_arrays(place)
    found = {}
    for i, (name, described) in enumerate(content["columns"].items()):
        at = f"{i}."
        own = {key.removeprefix(at): array for key, array in arrays.items() if key.startswith(at)}
        found[name] = _restored(described, own, place)
        if "provenance" in content:
            found[name].provenance_ = content["provenance"]
    clock = None if content["clock"] is None else Clock(**content["clock"])
    return Run(found, content["time"], clock, content["begins"])


def load_forecaster(path: str | Path) -> Forecaster:
    """Read the forecaster of a run that has one column."""
    found = load(path).forecasters
    if len(found) != 1:
        raise InputError(f"{path}: a run of {len(found)} columns, {', '.join(found)}; load it with load")
    return next(iter(found.values()))


def _provenance(run: Run) -> dict[str, Any]:
    """Return what the first forecaster was fitted with, and the hash of the values of all series in their order."""
    models = list(run.forecasters.values())
    first = getattr(models[0], "provenance_", None) or provenance(None)
    return first | {"data_sha256": sha256_of(np.asarray(model.history_).tobytes() for model in models)}


def _described(model: Forecaster) -> dict[str, Any]:
    if not hasattr(model, "fitted_"):
        raise InputError("this Forecaster is not fitted yet: there is nothing to save")
    fitted = model.fitted_
    return {
        "arguments": model.get_params(),
        "layout": asdict(fitted.layout),
        "units": {"mean": fitted.units.mean, "spread": fitted.units.spread},
        "network": fitted.networks[0].config.to_json(),
        "members": len(fitted.networks),
    }


def _arrays(model: Forecaster) -> dict[str, Any]:
    fitted = model.fitted_
    arrays: dict[str, Any] = {"history": model.history_, "sizes": fitted.units.sizes}
    if model.errors_ is not None:
        arrays["errors"] = model.errors_
    for i, network in enumerate(fitted.networks):
        arrays |= {f"{i}.{name}": array for name, array in network.parameters.items()}
    return arrays


def _restored(described: dict[str, Any], arrays: Mapping[str, Any], path: Path) -> Forecaster:
    arguments = dict(described["arguments"])
    if isinstance(arguments["differences"], list):
        arguments["differences"] = tuple(arguments["differences"])
    model = Forecaster(**arguments)
    for name in ("history", "sizes"):
        if name not in arrays:
            raise FileError(f"{path}: the array {name} is missing")
    layout = dict(described["layout"])
    change = Change(**layout.pop("change"))
    seasons = tuple(layout.pop("seasons"))
    units = Units(**described["units"], sizes=np.asarray(arrays["sizes"]))
    config = SequenceConfig.from_json(described["network"])
    networks = []
    for i in range(described["members"]):
        parameters = Parameters(shapes_of_network(config))
        own = {key.partition(".")[2]: array for key, array in arrays.items() if key.startswith(f"{i}.")}
        checkpoint.fill(parameters, own, path)
        networks.append(Network(config, parameters))
    model.history_, model.errors_, model.trial_ = np.asarray(arrays["history"]), arrays.get("errors"), None
    model.season_, model.change_ = change.season, change
    model.fitted_ = Fitted(Layout(change=change, seasons=seasons, **layout), units, networks)
    return model
