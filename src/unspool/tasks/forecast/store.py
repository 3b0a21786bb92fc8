"""Write forecasters into a run, and read them.

RUN/config.json           arguments, and for every column its transform, window and position in time
    model.safetensors     parameters of all networks, scales, errors behind the intervals, the series itself
    training.safetensors  the training state, until the fit has ended
    log.jsonl             one line of JSON per entry
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np

from unspool.data.series.time_index import TimeIndex
from unspool.data.series.time_table import LongFormat
from unspool.data.series.windows import WindowScale, WindowSpec
from unspool.errors import FileError, InputError
from unspool.model.network import Model
from unspool.model.sequence_config import SequenceConfig
from unspool.model.sequence_network import Network
from unspool.storage import run_folder, tensors
from unspool.storage.log import RunLog
from unspool.storage.schema import read_as
from unspool.tasks.forecast.answer import NETWORK, StoredModels, restored, stored
from unspool.tasks.forecast.ensemble import FittedMember
from unspool.training.provenance import provenance, sha256_of
from unspool.training.state import TrainingState
from unspool.training.store import RunWriter, network_from

KIND = "forecast"
ALONE = "value"
"""The column of a forecaster without a table."""


def write_forecasters(
    forecasters: Mapping[str, Any],
    path: str | Path,
    more: Mapping[str, Any],
    *,
    time: str | None = None,
    clock: TimeIndex | None = None,
    begins: Mapping[str, int] | None = None,
    long: LongFormat | None = None,
    state: TrainingState[Network] | None = None,
) -> None:
    """Write forecasters, by column, as a new run with the times of their series; `more` goes into the config.

    With the state before the first update, it is a run to fit.
    """
    if state is None and any(model.unfinished_ for model in forecasters.values()):
        raise InputError(
            "the fit of this Forecaster has not ended: resume its run, or fit again; then save it"
        )
    with run_folder.new_run(path) as folder:
        columns = {name: describe_column(model) for name, model in forecasters.items()}
        content = {
            "time": time,
            "clock": None if clock is None else asdict(clock),
            "begins": begins or dict.fromkeys(columns, 0),
            **({} if long is None else {"long": asdict(long)}),
            "columns": columns,
            "provenance": _provenance(list(forecasters.values())),
        }
        run_folder.write_config(folder, KIND, content | dict(more))
        with RunLog(folder / run_folder.LOG) as log:
            writer = ForecastWriter(folder, log, forecasters)
            writer.save_networks()
            writer.add({"event": "saved" if state is None else "begun", "columns": list(columns)})
            if state is not None:
                writer.save_state(state)


@dataclass(frozen=True)
class ForecastWriter(RunWriter):
    """Writes the run of some forecasters, by column."""

    forecasters: Mapping[str, Any] = field(default_factory=dict)

    def save_model(self, model: Model | Network, step: int, valid: float | None = None) -> None:
        """Write all networks as they are now, also those that are not trained yet."""
        self.save_networks()

    def save_networks(self) -> None:
        """Write the networks of all forecasters, with their series."""
        assert self.out is not None
        arrays = {
            f"{i}.{key}": array
            for i, model in enumerate(self.forecasters.values())
            for key, array in _arrays(model).items()
        }
        tensors.write_arrays(self.out / run_folder.MODEL, arrays, {"columns": list(self.forecasters)})


class _Units(TypedDict):
    """The mean and the spread of a column's differences."""

    mean: float
    spread: float


class Column(TypedDict):
    """What a config says about one column."""

    arguments: dict[str, Any]
    layout: WindowSpec
    units: _Units
    network: SequenceConfig
    members: int
    models: NotRequired[StoredModels]
    learned: NotRequired[int]
    """The number of values that were learned; later ones were appended."""


class ForecastConfig(TypedDict):
    """The fields of a forecast run's config."""

    time: str | None
    clock: TimeIndex | None
    begins: dict[str, int]
    columns: dict[str, Column]
    long: NotRequired[LongFormat]
    provenance: NotRequired[dict[str, Any]]


def read_forecasters(
    made: type[Any], path: str | Path
) -> tuple[dict[str, Any], str | None, TimeIndex | None, dict[str, int], LongFormat | None]:
    """Read a run: forecasters of a class by column, the column of times, the times, the columns' first values, the format."""
    where, place = Path(path) / run_folder.CONFIG, Path(path) / run_folder.MODEL
    content = read_as(ForecastConfig, run_folder.read_config(path, KIND), where)
    arrays, _ = tensors.read_arrays(place)
    unfinished = (Path(path) / run_folder.TRAINING).exists()
    begins, names = content["begins"], list(content["columns"])
    if (
        not names
        or sorted(begins) != sorted(names)
        or not all(0 <= begin < 2**53 for begin in begins.values())
    ):
        raise FileError(f"{where}: damaged or manipulated: columns and begins do not belong together")
    found: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    for key, array in arrays.items():
        number, _, rest = key.partition(".")
        parts.setdefault(number, {})[rest] = array
    for i, (name, column) in enumerate(content["columns"].items()):
        own = parts.get(str(i), {})
        model = read_as(made, column["arguments"], where, f"columns.{name}.arguments")
        check_column(column, model.horizon, own, where)
        found[name] = _restored(model, column, own, place)
        found[name].unfinished_ = unfinished
        if (made_with := content.get("provenance")) is not None:
            found[name].provenance_ = made_with
    return found, content["time"], content["clock"], begins, content.get("long")


def check_column(column: Column, horizon: int, arrays: Mapping[str, Any], path: Path) -> None:
    """Raise where the parts of a forecaster do not fit each other: windows, networks, units, arguments."""
    layout, config = column["layout"], column["network"]
    wrong = [
        not 1 <= column["members"] <= len(arrays) and "members",
        not column["units"]["spread"] > 0 and "units.spread",
        layout.horizon != horizon and "arguments.horizon",
        (config.shape, config.head, config.dense) != ("many-to-one", "numbers", True) and "network",
        (config.inputs, config.outputs) != (layout.inputs, layout.horizon) and "network",
    ]
    if name := next((each for each in wrong if each), None):
        raise FileError(f"{path}: damaged or manipulated: {name} does not fit the rest of the run")


def _provenance(models: list[Any]) -> dict[str, Any]:
    """Return what the first forecaster was fitted with, and the hash of the values of all series in their order."""
    first = getattr(models[0], "provenance_", None) or provenance(None)
    return first | {"data_sha256": sha256_of(np.asarray(model.history_).tobytes() for model in models)}


def describe_column(model: Any) -> dict[str, Any]:
    """Return what a config says about the forecaster of a column."""
    if not hasattr(model, "fitted_"):
        raise InputError("this Forecaster is not fitted yet: there is nothing to save")
    fitted = model.fitted_
    return {
        "arguments": model.get_params(),
        "layout": asdict(fitted.layout),
        "units": {"mean": fitted.units.mean, "spread": fitted.units.std},
        "network": fitted.networks[0].config.to_json(),
        "members": len(fitted.networks),
        "learned": model.learned_,
    } | ({"models": stored(model.models_, model.answer_)} if model.models_ else {})


def _arrays(model: Any) -> dict[str, Any]:
    fitted = model.fitted_
    arrays: dict[str, Any] = {"history": model.history_, "sizes": fitted.units.sizes}
    if model.residuals_ is not None:
        arrays |= {"residuals": model.residuals_, "factors": model.factors_}
    elif model.errors_ is not None:
        arrays["errors"] = model.errors_
    for i, network in enumerate(fitted.networks):
        arrays |= {f"{i}.{name}": array for name, array in network.parameters.items()}
    return arrays


def _restored(model: Any, column: Column, arrays: Mapping[str, Any], path: Path) -> Any:
    layout, config = column["layout"], column["network"]
    H = layout.horizon
    history = tensors.check_array(arrays, "history", (None,), path, np.float64)
    sizes = tensors.check_array(arrays, "sizes", (H,), path, np.float64)
    if len(history) < layout.reach or not (sizes > 0).all():
        raise FileError(f"{path}: damaged or manipulated: history or sizes does not fit the rest of the run")
    errors, residuals, factors = None, None, np.ones(layout.change.season, np.float64)
    if "residuals" in arrays:
        residuals = tensors.check_array(arrays, "residuals", (None, H), path, np.float64, finite=False)
        errors = np.abs(residuals)
        factors = tensors.check_array(arrays, "factors", factors.shape, path, np.float64)
    elif "errors" in arrays:  # of an earlier version
        errors = tensors.check_array(arrays, "errors", (None, H), path, np.float64, finite=False)
    learned = column.get("learned", len(history))
    if not 0 < learned <= len(history):
        raise FileError(f"{path}: damaged or manipulated: learned is {learned} of {len(history)} values")
    networks = []
    for i in range(column["members"]):
        own = {key.partition(".")[2]: array for key, array in arrays.items() if key.startswith(f"{i}.")}
        networks.append(network_from(config, own, path))
    model.history_, model.errors_, model.residuals_, model.trial_ = history, errors, residuals, None
    model.learned_, model.factors_ = learned, factors
    model.season_, model.change_ = layout.change.season, layout.change
    model.models_, model.answer_ = {}, {NETWORK: 1.0}
    if (models := column.get("models")) is not None:
        try:
            model.models_, model.answer_ = restored(models)
        except InputError as error:
            raise FileError(f"{path}: damaged or manipulated: {error}") from error
    model.fitted_ = FittedMember(
        layout, WindowScale(column["units"]["mean"], column["units"]["spread"], sizes), networks
    )
    return model


def write_appended(forecasters: Mapping[str, Any], path: str | Path) -> None:
    """Write the series of a run again, after values were appended to them."""
    folder = Path(path)
    with RunLog(folder / run_folder.LOG) as log:
        columns = {name: describe_column(model) for name, model in forecasters.items()}
        run_folder.write_config(folder, KIND, run_folder.read_config(folder, KIND) | {"columns": columns})
        writer = ForecastWriter(folder, log, forecasters)
        writer.save_networks()
        writer.add(
            {
                "event": "appended",
                "values": {name: len(each.history_) - each.learned_ for name, each in forecasters.items()},
            }
        )
