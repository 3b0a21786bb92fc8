"""The views Read and Units: a text read by the model, one step of it, its units, what one of them tells and costs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unspool.errors import InputError
from unspool.gradients.jacobians import radii
from unspool.inspect.units import choose_units, informs, strongest
from unspool.model.generate import Sampling
from unspool.studio.asked import (
    AtStep,
    Edit,
    Generate,
    OneUnit,
    Read,
    ShowParameters,
    Units,
    Vocabulary,
    within,
)
from unspool.studio.held import Held, Readings, Short, read_text
from unspool.studio.models import asked, edited
from unspool.studio.payload import Table, array, clean, number
from unspool.studio.session import Session
from unspool.studio.worker import Job

Answer = dict[str, Any]


def read_answer(session: Session, readings: Readings, request: Read, job: Job) -> Answer:
    """Read a text; one of a single token, as while somebody types the first word, has nothing to predict."""
    try:
        held = readings.read(session, request, job)
    except Short:
        return {"short": True}
    reading, model = held.reading, held.model.source.model.config
    begin, names = (0 if request.after is None else reading.begin), list(reading.states)
    wanted = [names[-1 - (len(names) > model.layers)]] if request.states is None else request.states
    columns = reading.states if set(wanted) <= set(names) else held.columns
    if missing := [each for each in wanted if each not in columns]:
        raise InputError(f"states: {clean(missing[0])!r} is not known; expected some of {', '.join(columns)}")
    assert held.plane is not None
    return {
        "reading": readings.add(held), "version": held.model.version,
        "pieces": [clean(piece) for piece in reading.pieces], "known": array(held.known, "u1"), "ids": array(reading.ids, "i4"),
        "nats": number(reading.nats), "perplexity": number(math.exp(min(reading.nats, 700))),
        "surprise": array(reading.surprise), "expected": array(reading.expected, "i4"), "shares": array(reading.shares),
        "state_names": names, "gate_names": list(held.gates_at(0)), "hidden": model.hidden, "from": begin,
        "states": {name: array(columns[name][begin:]) for name in wanted},
        "scales": {name: number(float(np.abs(columns[name]).max())) for name in wanted},
        "path": {"positions": array(held.positions), "shares": list(held.plane.shares)},
        "here": None if request.at is None else _step(held, min(max(request.at, 0), len(reading.ids) - 1)),
    }  # fmt: skip


def at_answer(session: Session, readings: Readings, request: AtStep, job: Job) -> Answer:
    """Return the exact values of one step."""
    held = readings[request.reading]
    within("t", request.t, 0, len(held.reading.ids) - 1)
    return {"version": held.model.version} | _step(held, request.t)


def _step(held: Held, t: int) -> Answer:
    return {
        "t": t, "next": array(held.next_probabilities(t)), "surprise": number(float(held.reading.surprise[t])),
        "states": {name: array(values[t]) for name, values in held.reading.states.items()},
        "gates": {name: array(values) for name, values in held.gates_at(t).items()},
    }  # fmt: skip


def units_answer(session: Session, readings: Readings, request: Units, job: Job) -> Answer:
    """Return the units with most information about the text."""
    held = readings[request.reading]
    within("count", request.count, 1, 64)
    chosen = choose_units(held.reading.states, held.properties, request.count)
    return {
        "version": held.model.version,
        "properties": [each.name for each in held.properties],
        "units": [
            {
                "name": unit.name, "property": unit.encodes.name if unit.encodes else None,
                "share": unit.share, "chance": unit.chance, "means": unit.means,
            }
            for unit in chosen
        ],
    }  # fmt: skip


def unit_answer(session: Session, readings: Readings, request: OneUnit, job: Job) -> Answer:
    """Return one unit or gate along the text: where it is strong, what it tells, what the model loses without it."""
    held = readings[request.reading]
    within("stretches", request.stretches, 0, 64)
    key, index, column = held.column(request.name)
    low, high = np.quantile(column, [0.02, 0.98]).tolist()
    pieces = held.reading.pieces
    return {
        "name": f"{key}{index}", "version": held.model.version, "activation": array(column), "low": low, "high": high,
        "stretches": [
            {
                "begin": each.begin, "end": each.end, "at": each.at, "value": each.value,
                "text": clean("".join(pieces[each.begin : each.end])),
            }
            for each in strongest(column, request.stretches)
        ],
        "informs": [
            {"property": each.name, "share": share, "chance": chance}
            for each, share, chance in informs(column, held.properties)
        ],
        "off": _without(held, f"{key}{index}") if request.off and key in held.reading.states else None,
    }  # fmt: skip


def _without(held: Held, name: str) -> Answer:
    """Read the text again with a unit switched off."""
    source, _, outputs = edited(held.model.source, [Edit("unit", name, 0.0)], {})
    outputs = {**outputs, **held.model.outputs}
    found = held.model._replace(source=source, outputs=outputs)
    _, reading = read_text(found, held.text)
    cost = reading.nats - held.reading.nats
    return {"nats": number(reading.nats), "cost": number(cost), "surprise": array(reading.surprise)}


def parameters_answer(session: Session, readings: Readings, request: ShowParameters, job: Job) -> Answer:
    """Return the hash of all parameters, their sizes and norms, and one matrix."""
    found = asked(session, request, job.check)
    run, model = session.run_of(request.run), found.source.model
    if request.matrix is not None and request.matrix not in model.parameters.shapes:
        raise InputError(
            f"matrix is {clean(request.matrix)!r}; expected one of {', '.join(model.parameters)}"
        )
    names = [
        {"name": name, "shape": list(value.shape), "norm": number(float(np.linalg.norm(value)))}
        for name, value in model.parameters.items()
    ]
    chain = not model.config.feeds_tokens
    return {
        "version": found.version, "sha256": model.parameters.sha256, "count": model.parameters.count, "names": names,
        "radii": radii(model, model.config.layers - 1) if chain else {},
        "matrix": None if request.matrix is None else array(model.parameters[request.matrix]),
        "updates_held": run.history.steps if run.history is not None else [],
    }  # fmt: skip


def generate_answer(session: Session, readings: Readings, request: Generate, job: Job) -> Answer:
    """Generate a text."""
    within("length", request.length, 1, 2000)
    found = asked(session, request, job.check)
    text = found.source.generate(
        request.prompt, request.length, seed=request.seed, sampling=Sampling(request.temperature)
    )
    return {"version": found.version, "text": clean(text)}


def vocabulary_answer(session: Session, readings: Readings, request: Vocabulary, job: Job) -> Answer:
    """Return the tokens of a run in the order of their ids."""
    run = session.run_of(request.run)
    if run.source is None:
        raise InputError(f"{run.name}: there is no model yet ({run.status}); try again in a moment")
    vocab = run.source.vocab
    return {"pieces": [clean(str(token)) for token in vocab.idx_to_token], "sha256": vocab.sha256}


# Tables.


def read_tables(readings: Readings, answer: Answer) -> dict[str, Table]:
    """Return the numbers of Read as tables."""
    if "short" in answer:
        return {}
    held = readings[answer["reading"]]
    reading, vocab = held.reading, held.model.source.vocab
    pieces = answer["pieces"]
    k = reading.expected.shape[1]
    return {
        "surprise": (("t", "piece", "nats"), zip(range(len(pieces)), pieces, reading.surprise, strict=True)),
        "next": (
            ("t", "piece", *(f"{what}{i}" for i in range(1, k + 1) for what in ("token", "share"))),
            (
                (t, piece, *(each for i in range(k) for each in (_token(vocab, reading.expected[t, i]), reading.shares[t, i])))
                for t, piece in enumerate(pieces)
            ),
        ),
        "states": (
            ("t", "piece", *(f"{name}{i}" for name, values in held.columns.items() for i in range(values.shape[1]))),
            ((t, piece, *(v for each in held.columns.values() for v in each[t])) for t, piece in enumerate(pieces)),
        ),
        "path": (
            ("t", "piece", "x", "y"),
            ((t, piece, *at) for t, (piece, at) in enumerate(zip(pieces, held.plane.project(reading.last_h), strict=True))),  # type: ignore[union-attr]
        ),
    }  # fmt: skip


def _token(vocab: Any, index: int) -> str:
    return "" if index < 0 else clean(str(vocab.to_tokens(int(index))))


def at_tables(readings: Readings, answer: Answer, request: AtStep) -> dict[str, Table]:
    """Return the numbers of one step as tables."""
    held = readings[request.reading]
    vocab = held.model.source.vocab.idx_to_token
    values = held.next_probabilities(request.t)
    return {
        "next": (
            ("token", "probability"),
            ((clean(str(token)), p) for token, p in zip(vocab, values, strict=True)),
        ),
        "states": (
            ("unit", "value"),
            ((f"{name}{i}", v) for name, each in held.columns.items() for i, v in enumerate(each[request.t])),
        ),
    }


def unit_tables(readings: Readings, answer: Answer, request: OneUnit) -> dict[str, Table]:
    """Return the numbers of one unit as tables."""
    held = readings[request.reading]
    _, _, column = held.column(request.name)
    pieces = [clean(piece) for piece in held.reading.pieces]
    found: dict[str, Table] = {
        "activation": (("t", "piece", "value"), zip(range(len(pieces)), pieces, column, strict=True)),
        "stretches": (
            ("begin", "end", "at", "value", "text"),
            ([each[name] for name in ("begin", "end", "at", "value", "text")] for each in answer["stretches"]),
        ),
    }  # fmt: skip
    if answer["off"] is not None:
        off = answer["off"]
        found["off"] = (("nats", "nats_without", "cost"), [(held.reading.nats, off["nats"], off["cost"])])
    return found


def units_tables(readings: Readings, answer: Answer, request: Units) -> dict[str, Table]:
    """Return the informative units as a table."""
    names = ("name", "property", "share", "chance")
    return {"units": (names, ([each[name] for name in names] for each in answer["units"]))}
