"""How far back a model looks over a longer window: the influence of a state by lag, and what a truncated gradient misses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unspool.errors import InputError
from unspool.evaluation.language import in_reading_order
from unspool.inspect.memory import MemoryReport, look_back
from unspool.inspect.report import read_with
from unspool.studio.asked import TEXT_TOKENS, OfModel
from unspool.studio.held import Readings
from unspool.studio.models import asked
from unspool.studio.payload import Table
from unspool.studio.reading_view import Answer
from unspool.studio.session import Session
from unspool.studio.worker import Job


@dataclass(frozen=True, kw_only=True)
class Memory(OfModel):
    """Measure the memory of a model in the middle of a text."""

    text: str


def memory_answer(session: Session, readings: Readings, request: Memory, job: Job) -> Answer:
    """Measure the memory of a model."""
    found = asked(session, request, job.check)
    _, reading = read_with(found.source, request.text, most=TEXT_TOKENS)
    back = look_back(found.source.model, in_reading_order(reading.ids, found.source.backward))
    if back is None:
        raise InputError(
            "memory: the text is too short, or the model carries no state; expected 5 tokens or more"
        )
    return {"version": found.version} | memory_numbers(back)


def memory_numbers(back: MemoryReport) -> dict[str, Any]:
    """Return the numbers of a memory report as plain values."""
    return {
        "lags": back.fresh.lags, "influence": [list(each.norm) for each in back.trained], "untrained": list(back.fresh.norm),
        "horizons": back.horizons, "untrained_horizon": back.fresh_horizon, "letter": back.by_lag.letter,
        "parts": back.by_lag.parts, "missed": back.by_lag.bias, "steps": [back.advice[bias] for bias in sorted(back.advice, reverse=True)],
    }  # fmt: skip


def memory_tables(answer: Answer) -> dict[str, Table]:
    """Return the numbers of a memory report as tables."""
    layers = [f"influence_layer{i}" for i in range(len(answer["influence"]))]
    influence = zip(answer["lags"], *answer["influence"], answer["untrained"], strict=True)
    missed = zip(range(len(answer["parts"])), answer["parts"], answer["missed"], strict=False)
    return {
        "influence": (("lag", *layers, "influence_untrained"), influence),
        "missed": (("lag", "norm", "missing_when_looking_back_lag_steps"), missed),
    }
