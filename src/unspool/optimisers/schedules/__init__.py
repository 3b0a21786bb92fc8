"""Learning-rate schedules by name: base, cosine, constant. A new schedule is one file and one line here.

>>> make_schedule("constant", steps=100, warmup=10)(4)
0.5
"""

from typing import Any

from unspool.optimisers.schedules.base import Schedule
from unspool.optimisers.schedules.constant import Constant
from unspool.optimisers.schedules.cosine import Cosine
from unspool.options import check_choice

SCHEDULES: dict[str, type[Schedule]] = {
    "constant": Constant,
    "cosine": Cosine,
}


def check_schedule(name: str) -> None:
    """Raise unless there is a schedule of this name."""
    check_choice("schedule", name, SCHEDULES)


def make_schedule(name: str, steps: int, warmup: int, **settings: Any) -> Schedule:
    """Return a schedule by its name; the warm-up is cut to 1 … steps updates."""
    check_schedule(name)
    return SCHEDULES[name](steps, max(1, min(warmup, steps)), **settings)
