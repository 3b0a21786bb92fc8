"""Units: the shown numbers are the API's, by keyboard; switching a unit off is a what-if that undo takes back."""

import numpy as np
import pytest

TEXT = "the time traveller spoke of rhyme and space, and space and rhyme listened"


@pytest.fixture
def units(open_page, finished, tools):
    """The view with a text."""
    page = open_page(finished, view="units", more=f"&text={TEXT.replace(' ', '+')}")
    tools.wait(page, "state['units.one'] && state['units.all']")
    return page


def test_shown_numbers_are_those_of_the_api(units, finished, tools):
    reading = finished.post("/api/read", text=TEXT)["reading"]
    every = finished.post("/api/units", reading=reading, count=32)["units"]
    one = finished.post("/api/unit", reading=reading, name=every[0]["name"], stretches=6)
    assert tools.state(units, "units.one")["units.one"]["name"] == one["name"]
    assert units.locator(".choices b").all_inner_texts() == [each["name"].split(".")[1] for each in every]
    units.get_by_role("button", name="Table: The text").or_(
        units.locator(".tinted .twins button").first
    ).first.click()
    shown = units.locator(".tinted .twin tbody td:nth-of-type(2)").all_inner_texts()
    values = [f"{abs(x):.3f}" for x in one["activation"]]
    assert [each.lstrip("+−\u2007") for each in shown] == values[: len(shown)]
    units.locator(".off .twins button").first.click()
    shown = units.locator(".off .twin tbody td:nth-of-type(3)").all_inner_texts()
    np.testing.assert_allclose(
        [float(each) for each in shown[1:]],
        one["off"]["surprise"][1 : len(shown)],
        atol=0.00051,
    )
    assert f"{one['off']['nats']:.3f}" in units.inner_text(".say")
    texts = units.locator(".snippet").all_inner_texts()
    assert len(texts) == len(one["stretches"])


def test_a_unit_is_chosen_by_keyboard_and_switched_off(units, tools):
    before = tools.state(units, "units.all")["units.all"]["units"]
    units.keyboard.press("ArrowDown")
    name = before[1]["name"]
    tools.wait(units, f"state['units.one'].name === {name!r}")
    nats = units.evaluate(
        "import('/state.js').then(({ state }) => [state.reading.nats, state['units.one'].off.nats])"
    )
    units.keyboard.press("o")
    tools.wait(units, f"state.edits.length === 1 && Math.abs(state.reading.nats - {nats[1]}) < 1e-9")
    units.keyboard.press("z")
    tools.wait(units, f"state.edits.length === 0 && state.reading.nats === {nats[0]}")


def test_a_gate_is_shown_but_cannot_be_switched_off(units, tools):
    units.select_option(".choose select", "layer0.f")
    units.fill(".choose input[type=number]", "5")
    units.keyboard.press("Tab")
    tools.wait(units, "state['units.one'].name === 'layer0.f5' && state['units.one'].off === null")
    assert units.locator(".off .head button").first.is_disabled()
    units.locator(".tint s").nth(9).click()
    tools.wait(units, "state.t === 9 && document.querySelector('.say').textContent.includes('step 10')")
