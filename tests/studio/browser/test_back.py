"""Back in time: the shown numbers are the API's, by keyboard; the gradient flows back when asked to."""

import numpy as np
import pytest

TEXT = "the time traveller spoke of rhyme and space, and space and rhyme listened"
KINDS = [
    "truncated:4",
    "truncated:8",
    "truncated:16",
    "truncated:4,16",
    "random:0.5",
    "random:0.75",
    "random:0.9",
]


@pytest.fixture
def back(open_page, finished, tools):
    """The view with a text, its cursor at step 31."""
    page = open_page(finished, view="back", more=f"&t=31&text={TEXT.replace(' ', '+')}")
    tools.wait(page, "state['back.truncations'] && state['back.lags'] && state['back.flow']")
    return page


def two(x):
    """Two figures, as the page writes numbers from 0.001 to 10."""
    return f"{x:.{max(0, 1 - int(np.floor(np.log10(x))))}f}"


def test_shown_numbers_are_those_of_the_api(back, finished, tools):
    answer = finished.post("/api/back", text=TEXT, tau=48, kinds=KINDS, draws=16)
    h, s = (answer["matrix"][name] for name in "hs")
    back.get_by_role("button", name="Table: The gradient of one loss").click()
    rows = [row.inner_text().split("\t") for row in back.locator(".flow .twin tbody tr").all()]
    assert len(rows) == 31
    for lag, (step, token, shown_lag, norm, _, cell) in enumerate(rows[:9]):
        k = 30 - lag
        assert (step, token, shown_lag) == (str(k + 1), TEXT[k].replace(" ", "␣"), str(lag))
        for shown, value in ((norm, h[30, k]), (cell, s[30, k])):
            assert number(shown) == pytest.approx(value, rel=0.006, abs=1e-12)
    back.get_by_role("button", name="Table: ∇W by lag").click()
    lags = answer["lags"]["norms"][-1]
    shown = back.locator(".lags .twin tbody tr td:nth-of-type(1)").all_inner_texts()
    np.testing.assert_allclose([number(each) for each in shown], lags, rtol=0.006)
    back.get_by_role("button", name="Table: Full, truncated, random").click()
    assert back.locator(".cuts .twin tbody th").all_inner_texts() == [
        each["kind"] for each in answer["truncations"]
    ]
    biases = back.locator(".cuts .twin tbody td:nth-of-type(1)").all_inner_texts()
    for text, each in zip(biases, answer["truncations"], strict=True):
        assert float(text.rstrip("%").strip()) / 100 == pytest.approx(each["bias"], abs=0.0051)
    assert f"norm {two(h[30, 30])} into" in back.inner_text(".say")


def number(text):
    """A number as the page writes it: 0.021, 2.6·10⁻⁷."""
    value, _, power = text.partition("·10")
    return float(value) * 10.0 ** int(power.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")) or 0)


def test_keys_move_the_loss_the_front_and_the_size_of_w(back, tools):
    assert not tools.state(back, "playing")["playing"]  # less motion was asked for
    back.keyboard.press("ArrowRight")
    tools.wait(back, "state.t === 31 && document.querySelector('.say b')?.textContent === '32'")
    lag = tools.state(back, "back.lag")["back.lag"]
    back.keyboard.press(".")
    back.keyboard.press("+")
    tools.wait(back, f"state['back.lag'] === {lag - 1} && state['back.K'] === 9")
    before = back.inner_text(".radii")
    back.keyboard.press("s")
    tools.wait(back, "state['back.flow'].scale === 1.5")
    tools.wait(back, f"document.querySelector('.radii').textContent !== {before!r}")
    back.locator(".matrix .heat").focus()
    back.keyboard.press("ArrowUp")
    tools.wait(back, "state.t === 30")
    back.keyboard.press("ArrowRight")
    tools.wait(back, "document.querySelector('.matrix .heat').ariaLabel.includes('L(31)')")


def test_space_lets_the_gradient_flow_and_stops_it(back, tools):
    end = tools.state(back, "back.lag")["back.lag"]
    back.keyboard.press(" ")
    tools.wait(back, f"state.playing && state['back.lag'] > 0 && state['back.lag'] < {end}")
    back.keyboard.press(" ")
    tools.wait(back, "!state.playing")
    stopped = tools.state(back, "back.lag")["back.lag"]
    back.wait_for_timeout(120)
    assert tools.state(back, "back.lag")["back.lag"] == stopped < end
    back.keyboard.press(" ")
    tools.wait(back, f"!state.playing && state['back.lag'] === {end}")
