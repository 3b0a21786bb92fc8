"""The view Back in time: gradients that flow back through a window of a text, and what truncation makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from unspool.errors import InputError
from unspool.evaluation.language import in_reading_order
from unspool.gradients.by_lag import arrivals, gradient_by_lag
from unspool.gradients.decomposition import decompose_gradient
from unspool.gradients.estimates import compare_estimates
from unspool.gradients.jacobians import radii
from unspool.gradients.truncation import Truncation
from unspool.inspect.report import read_with
from unspool.kernels.arrays import Ids
from unspool.model.equivalent import refuse_feedback
from unspool.model.network import Model
from unspool.model.values import State
from unspool.studio.asked import TEXT_TOKENS, Back, within
from unspool.studio.held import Readings
from unspool.studio.models import Asked, asked
from unspool.studio.payload import Table, array, clean, number
from unspool.studio.reading_view import Answer
from unspool.studio.session import Session, copied
from unspool.studio.worker import Job

TAU = 64
"""The longest window."""
DRAWS = 400
KEPT = 16
PARTS = ("flow", "lags", "truncations")


def back_answer(session: Session, readings: Readings, request: Back, job: Job) -> Answer:
    """Return the gradients of a window."""
    if unknown := sorted(set(request.parts) - set(PARTS)):
        raise InputError(f"parts: {clean(unknown[0])!r} is not known; expected some of {', '.join(PARTS)}")
    within("tau", request.tau, 1, TAU)
    within("draws", request.draws, 2, DRAWS)
    within("kinds", len(request.kinds), 0, 12)
    kinds = [Truncation.parse(kind) for kind in request.kinds]
    named = request.reading is not None
    found = readings[str(request.reading)].model if named else asked(session, request, job.check)
    refuse_feedback(found.source.model.config)
    own = spectral_radii(readings, found)
    model, scale = scaled(found.source.model, request, own)
    pieces, x, y, state = window(found.source, model, request)
    layer = model.config.layers - 1
    loss = model.loss(model.forward(x, state), y)
    answer: Answer = {
        "version": found.version, "tau": len(x), "pieces": pieces, "layers": [layer],
        "scale": scale, "radii": {name: scale * radius for name, radius in own.items()}, "loss": number(loss.mean), "cell_state": False,
    }  # fmt: skip
    if "flow" in request.parts:
        arrived = arrivals(model, x, y, state=state)
        job.check()
        whole = np.linalg.norm(decompose_gradient(model, x, y, state).dh(layer)[:, 0], axis=1)
        s = None if arrived.s is None else array(arrived.s)
        answer |= {
            "matrix": {"h": array(arrived.h), "s": s},
            "flow": {"h": array(whole), "s": None},
            "cell_state": s is not None,
        }
    job.check()
    if "lags" in request.parts:
        lags = gradient_by_lag(model, x, y, state=state)
        answer["lags"] = {
            "names": list(lags.norms), "norms": array(list(lags.norms.values())), "bias": array(lags.bias),
            "full": lags.full, "rest": lags.bias[-1],
        }  # fmt: skip
    if "truncations" in request.parts:
        estimates = compare_estimates(
            model, x, y, kinds, state=state, draws=request.draws, seed=request.seed, check=job.check
        )
        answer["truncations"] = [
            {
                "kind": each.kind, "bias": each.bias, "error": each.error, "spread": each.spread, "norm": each.norm,
                "draws": None if each.draws is None else array(each.draws),
            }
            for each in estimates
        ]  # fmt: skip
    return answer


def window(source: Any, model: Model, request: Back) -> tuple[list[str], Ids, Ids, State | None]:
    """Return the pieces, the inputs and targets of a window (tau, 1), and the state before it."""
    _, reading = read_with(source, request.text, most=TEXT_TOKENS)
    ids = np.ascontiguousarray(in_reading_order(reading.ids, source.backward), np.int32)
    pieces = reading.pieces[::-1] if source.backward else reading.pieces
    begin = request.begin
    within("begin", begin, 0, len(ids) - 2)
    tau = min(request.tau, len(ids) - 1 - begin)
    state = model.forward(ids[:begin, None].copy()).state if begin else None
    x, y = (np.ascontiguousarray(ids[at : at + tau, None]) for at in (begin, begin + 1))
    return [clean(piece) for piece in pieces[begin : begin + tau + 1]], x, y, state


def spectral_radii(readings: Readings, found: Asked) -> dict[str, float]:
    """Return the spectral radii of W of the last layer; those of the last few models are kept, since they take the longest here."""
    model, version = found.source.model, found.version
    if version["edits"]:
        return radii(model, model.config.layers - 1)
    key, kept = (version["run"], version["update"]), readings.radii
    if key not in kept:
        kept[key] = radii(model, model.config.layers - 1)
        while len(kept) > KEPT:
            del kept[next(iter(kept))]
    return kept[key]


def scaled(model: Model, request: Back, own: dict[str, float]) -> tuple[Model, float]:
    """Return the model with W of every layer multiplied, and the factor; `own` are its spectral radii."""
    if request.scale == 1 and request.radius is None:
        return model, 1.0
    within("scale", request.scale, 0.0, 16.0)
    scale, names = request.scale, [name for name in model.parameters if name.endswith(".W")]
    if not names:
        raise InputError("scale: this model has no W to scale")
    if request.radius is not None:
        within("radius", request.radius, 0.0, 16.0)
        now = max(own.values())
        if now == 0:
            raise InputError("radius: the spectral radius of W is 0 and cannot be scaled to another")
        scale = request.radius / now
    made, _ = copied(model)
    for name in names:
        made.parameters[name][:] *= np.float32(scale)
    return made, scale


def back_tables(readings: Readings, answer: Answer, request: Back) -> dict[str, Table]:
    """Return the numbers of Back in time as tables."""
    pieces, tau = answer["pieces"], answer["tau"]
    found: dict[str, Table] = {}
    if "matrix" in answer:
        steps = [f"k{k}" for k in range(tau)]
        for name, key in (("matrix", "h"), ("matrix_s", "s")):
            if answer["matrix"][key] is not None:
                rows = answer["matrix"][key]
                found[name] = (("t", "piece", *steps), [(t, pieces[t], *rows[t]) for t in range(tau)])
        flow = answer["flow"]["h"]
        found["flow"] = (("t", "piece", "norm"), [(t, pieces[t], flow[t]) for t in range(tau)])
    if "lags" in answer:
        lags = answer["lags"]
        norms, bias = lags["norms"], lags["bias"]
        found["lags"] = (
            ("lag", *lags["names"], "missing_when_looking_back_lag_steps"),
            [(lag, *norms[:, lag], bias[lag]) for lag in range(tau)],
        )
    if "truncations" in answer:
        names = ("kind", "bias", "error", "spread", "norm")
        found["truncations"] = (names, [[each[name] for name in names] for each in answer["truncations"]])
    return found
