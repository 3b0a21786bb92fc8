"""The choice of a training's numbers: what is given stays, what is open follows the time, the text and the machine."""

import pytest
from hypothesis import given as any_of
from hypothesis import strategies as st

from unspool.cells import CELLS
from unspool.errors import InputError
from unspool.model.config import ModelConfig
from unspool.training import recipe as plan
from unspool.training.recipe import choose_recipe, weights


def machine(speed=28e9, vocabulary=65, asked=None):
    """A machine that computes at one speed, whatever the size."""

    def measure(recipe):
        if asked is not None:
            asked.append(recipe)
        return speed / (weights(recipe, vocabulary)[1] * recipe.batch_size * recipe.window)

    return measure


def chosen(*, vocabulary=65, tokens=1_000_000, seconds=150.0, speed=28e9, asked=None, **given):
    return choose_recipe(
        vocabulary=vocabulary, tokens=tokens, seconds=seconds,
        measure=machine(speed, vocabulary, asked), given=given, clock=lambda: 0.0,
    )  # fmt: skip


def read(recipe):
    return recipe.steps * recipe.batch_size * recipe.window


def test_the_size_is_the_largest_that_reads_enough_tokens_for_its_weights():
    recipe = chosen()
    assert read(recipe) >= plan.READ * weights(recipe, 65)[0]
    larger = plan.SIZES[plan.SIZES.index(recipe.hidden) + 1]
    next_one = chosen(hidden=larger)
    assert read(next_one) < plan.READ * weights(next_one, 65)[0]


def test_more_time_or_a_faster_machine_never_makes_it_smaller():
    by_time = [chosen(seconds=s).hidden for s in (1, 10, 30, 60, 150, 300, 600, 3600)]
    by_speed = [chosen(speed=s).hidden for s in (1e8, 1e9, 1e10, 1e11, 1e12)]
    assert by_time == sorted(by_time) and by_speed == sorted(by_speed)
    assert by_time[0] < by_time[-1] and by_speed[0] < by_speed[-1]


def test_the_steps_fill_the_seconds_that_the_measurements_leave():
    now = iter([100.0, 104.0])
    measure = machine()
    recipe = choose_recipe(
        vocabulary=65, tokens=10**6, seconds=150, measure=measure, given={}, clock=lambda: next(now)
    )
    assert recipe.steps == round(146 * measure(recipe))


def test_few_sizes_are_measured_and_the_steps_come_from_the_chosen_one():
    for seconds in (0.5, 30, 150, 600, 1e5):
        asked = []
        recipe = chosen(seconds=seconds, asked=asked)
        assert 1 <= len(asked) <= plan.MEASUREMENTS
        assert recipe.hidden in [each.hidden for each in asked]


def test_a_machine_that_is_slower_at_larger_sizes_gets_a_size_that_still_reads_enough():
    def measure(recipe):
        return machine()(recipe) * (1.0 if recipe.hidden <= 256 else 0.4)

    recipe = choose_recipe(
        vocabulary=65, tokens=10**6, seconds=150, measure=measure, given={}, clock=lambda: 0.0
    )
    assert read(recipe) >= plan.READ * weights(recipe, 65)[0]


def test_given_steps_need_no_clock_and_no_measurement():
    def measure(recipe):
        raise AssertionError("nothing is to be measured")

    recipe = choose_recipe(vocabulary=65, tokens=10**6, seconds=1.0, measure=measure, given={"steps": 5000})
    assert recipe.steps == 5000 and recipe.hidden > 256


@pytest.mark.parametrize(
    "given", [{"hiden": 5}, {"hidden": 0}, {"batch_size": 0}, {"steps": 0}, {"cell": "rnn"}]
)
def test_what_no_recipe_can_be_made_of_is_refused(given):
    with pytest.raises(InputError, match=next(iter(given))):
        chosen(**given)


def test_dropout_grows_with_the_epochs_and_stays_below_its_limit():
    rates = [chosen(tokens=n).dropout for n in (10**8, 10**7, 10**6, 10**5)]
    assert rates == sorted(rates) and rates[0] < 0.05 and rates[-1] < plan.DROPOUT


def test_many_tokens_get_a_tied_table_and_few_are_looked_up():
    words = chosen(vocabulary=33_000, tokens=2_000_000)
    assert words.tied and words.embedding == words.hidden
    letters = chosen()
    assert not letters.tied and letters.embedding == 0
    apart = chosen(vocabulary=33_000, tokens=2_000_000, hidden=100, embedding=50)
    assert not apart.tied and apart.embedding == 50


def test_a_recipe_is_repeated_by_its_own_numbers():
    first = chosen()
    carry_after = choose_recipe(
        vocabulary=65, tokens=7, seconds=1, measure=lambda recipe: 1.0, given=dict(vars(first)), clock=lambda: 0.0
    )  # fmt: skip
    assert carry_after == first


@any_of(
    vocabulary=st.integers(2, 100_000),
    tokens=st.integers(2, 10**9),
    seconds=st.floats(0.01, 1e5),
    speed=st.floats(1e6, 1e13),
    given=st.fixed_dictionaries(
        {},
        optional={
            "cell": st.sampled_from(list(CELLS)),
            "hidden": st.integers(1, 2000),
            "layers": st.integers(1, 4),
            "batch_size": st.integers(1, 100),
            "window": st.integers(1, 500),
            "learning_rate": st.floats(1e-4, 1),
            "dropout": st.floats(0, 0.9),
            "steps": st.integers(1, 10**6),
            "tied": st.booleans(),
        },
    ),
)
def test_whatever_is_given_is_kept_and_the_rest_makes_a_model(vocabulary, tokens, seconds, speed, given):
    recipe = chosen(vocabulary=vocabulary, tokens=tokens, seconds=seconds, speed=speed, **given)
    assert {name: getattr(recipe, name) for name in given} == given
    assert recipe.steps >= 1 and recipe.batch_size >= 1 and recipe.window >= 1 and recipe.warmup >= 1
    ModelConfig(
        inputs=vocabulary, outputs=vocabulary, cell=recipe.cell, hidden=recipe.hidden, layers=recipe.layers,
        embedding=recipe.embedding, tied=recipe.tied, dropout=recipe.dropout,
    )  # fmt: skip
    if "batch_size" not in given and "window" not in given:
        assert tokens >= recipe.batch_size * recipe.window + 1
