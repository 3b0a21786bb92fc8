"""The model of a request: that of an update, with edits on a copy of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from unspool.cells import cell_named
from unspool.errors import InputError
from unspool.evaluation.read import Edit as EditOutput
from unspool.inspect.reading import set_unit
from unspool.inspect.units import parse_unit
from unspool.model.network import Model
from unspool.model.outputs import output_of
from unspool.model.parameters import prefix
from unspool.model.values import Output
from unspool.studio.asked import Edit, OfModel
from unspool.studio.session import Session, copied
from unspool.tasks.language.text_model import TextModel


class Asked(NamedTuple):
    """What a request computes with."""

    source: TextModel
    version: dict[str, Any]
    outputs: dict[int, EditOutput]
    """The edits of states, by step; -1: at every step."""


def asked(session: Session, request: OfModel, check: Callable[[], None] = lambda: None) -> Asked:
    """Return the model of a request."""
    run = session.run_of(request.run)
    step, source = session.model_of(run, request.update, check)
    version = {"run": run.id, "update": step, "edits": len(request.edits)}
    return Asked(*edited(source, request.edits, version))


def edited(source: TextModel, edits: list[Edit], version: dict[str, Any]) -> tuple[TextModel, Any, Any]:
    """Return a model with edits: weights in a copy of its parameters, units as functions of what steps leave."""
    weights, units = ([each for each in edits if each.kind == kind] for kind in ("weight", "unit"))
    off = [each for each in units if each.t is None]
    if weights or off:
        model, _ = copied(source.model)
        for each in weights:
            _set_weight(model, each)
        source = replace(source, model=model)
    outputs: dict[int, EditOutput] = {}
    for each in units:
        if each.t is None and each.value == 0 and switch_off(source.model, each.name):
            continue
        layer, letter, unit = place_of(source.model, each.name)
        at = -1 if each.t is None else each.t
        earlier = outputs.get(at)
        setting = partial(set_unit, layer=layer, letter=letter, unit=unit, value=each.value)
        outputs[at] = setting if earlier is None else _both(earlier, setting)
    return source, version, outputs


def at_every_step(outputs: Mapping[int, EditOutput], T: int) -> dict[int, EditOutput]:
    """Return edits by step, those of every step included."""
    always = outputs.get(-1)
    found = {t: edit for t, edit in outputs.items() if 0 <= t < T}
    if always is None:
        return found
    return {t: _both(found[t], always) if t in found else always for t in range(T)}


def _both(first: EditOutput, second: EditOutput) -> EditOutput:
    def edit(output: Output) -> Output:
        return second(first(output))

    return edit


def _set_weight(model: Model, edit: Edit) -> None:
    if edit.name not in model.parameters.shapes:
        raise InputError(f"name is {edit.name!r}; expected one of {', '.join(model.parameters)}")
    model.parameters[edit.name][check_index(model.parameters.shapes[edit.name], edit.index)] = np.float32(
        edit.value
    )


def check_index(shape: tuple[int, ...], index: list[int]) -> tuple[int, ...]:
    """Return an index into an array; raise where it is outside."""
    if len(index) != len(shape) or not all(0 <= i < n for i, n in zip(index, shape, strict=True)):
        raise InputError(
            f"index is {index}; expected {len(shape)} numbers below {', '.join(map(str, shape))}"
        )
    return tuple(index)


def place_of(model: Model, name: str) -> tuple[int, str, int]:
    """Return layer, letter and number of a unit: layer0.h17."""
    H, parts = model.config.hidden, "hs"[: cell_named(model.config.cell).parts]
    shapes = {
        f"layer{i}.{part}": np.empty((0, H), np.float32) for i in range(model.config.layers) for part in parts
    }
    key, unit = parse_unit(name, shapes)
    layer, _, letter = key.partition(".")
    return int(layer.removeprefix("layer")), letter, unit


def switch_off(model: Model, name: str) -> bool:
    """Set everything that reads h of a unit to zero, in place: what h = 0 at every step gives. Return whether that is possible.

    With s = 0 at every step, h = o tanh(s) is 0 as well. Where the output shares its weights with the embedding, or feeds them back, the unit must be set step by step.
    """
    layer, _, unit = place_of(model, name)
    config = model.config
    if config.tied or config.pattern == "output":
        return False
    readers = [prefix(layer, False) + "W"]
    if layer + 1 < config.layers:
        readers.append(prefix(layer + 1, False) + "U")
    else:
        readers += [name for name in output_of(config).names(config) if name == "V" or name.endswith(".P")]
    for reader in readers:
        if reader in model.parameters.shapes:
            model.parameters[reader][:, unit] = 0
    return True
