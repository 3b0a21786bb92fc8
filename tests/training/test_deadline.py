"""A run that changes its number of updates can be repeated: the same rates, the same validations."""

from hypothesis import given
from hypothesis import strategies as st

from unspool.optimisers.schedules import SCHEDULES
from unspool.training.deadline import StepBudget, early_validations


def budget(steps: int, warmup: int, schedule: str, **given: object) -> StepBudget:
    validations = lambda steps: early_validations(steps, 4)  # noqa: E731
    return StepBudget(steps, warmup=warmup, schedule=schedule, validations=validations, **given)  # type: ignore[arg-type]


@given(
    steps=st.integers(1, 300),
    warmup=st.integers(1, 400),
    schedule=st.sampled_from(sorted(SCHEDULES)),
    seconds=st.lists(st.floats(0.01, 30.0), min_size=300, max_size=300),
)
def test_the_plans_of_a_run_repeat_its_rates_and_validations(
    steps: int, warmup: int, schedule: str, seconds: list[float]
) -> None:
    """The run has 100 seconds, and every update takes another time."""
    run, step, clock = budget(steps, warmup, schedule, deadline=100.0), 0, 0.0
    rates, validated = [], set()
    while step < run.steps:
        rates.append(run.schedule(step))
        clock += seconds[step % len(seconds)]
        step += 1
        validated |= {step} & run.validation_steps
        if run.should_replan(clock):
            run.replan(step, clock)
    again = budget(run.steps, warmup, schedule, plans=run.plans)
    assert [again.schedule(step) for step in range(run.steps)] == rates
    assert again.validation_steps == validated
