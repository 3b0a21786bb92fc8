"""Learning-rate schedules by name: base, cosine, constant. A new schedule is one file and one line here.

>>> make_schedule("constant", steps=100, warmup=10)(4)
0.5
"""

from unspool.optimisers.schedules.base import Plans, Schedule
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


def make_schedule(name: str, steps: int, warmup: int, plans: Plans = ()) -> Schedule:
    """Return a schedule by its name; the warm-up is cut to the updates that were planned at first: a new plan keeps it."""
    check_schedule(name)
    planned = plans[0][1] if plans else steps
    return SCHEDULES[name](steps, max(1, min(warmup, planned)), plans)
