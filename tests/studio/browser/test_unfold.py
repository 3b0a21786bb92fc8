"""Unfold: nodes and weights hold the API's numbers; the graph is pulled open and walked through by keyboard."""

import numpy as np
import pytest


@pytest.fixture
def unfold(open_page, finished, tools):
    """The view as it opens."""
    page = open_page(finished, view="unfold")
    tools.wait(page, "state['unfold.graph'] && state['unfold.weight']")
    return page


def demo(client, **more):
    return client.post("/api/unfold", of="demo", text="hello there", **({"cell": "elman", "tau": 3} | more))


def test_nodes_and_weights_hold_the_numbers_of_the_api(unfold, finished, tools):
    answer = demo(finished)
    node = next(each for each in answer["nodes"] if each["id"] == "layer0.h(1)")
    assert f"norm {np.linalg.norm(node['gradient']):.2f} (10.21)" in unfold.inner_text(".say")
    unfold.locator(".node.panel .twins button").first.click()
    shown = unfold.locator(".node.panel .twin tbody td").all_inner_texts()
    expected = [value for pair in zip(node["value"], node["gradient"], strict=True) for value in pair]
    np.testing.assert_allclose([float(each.replace("−", "-")) for each in shown], expected, rtol=6e-5)
    weight = finished.post("/api/weight", unfolding=answer["unfolding"], name="layer0.W", index=[0, 1])
    for name, text in zip(
        ("formula", "difference", "engine"), unfold.locator(".three .number").all_inner_texts(), strict=True
    ):
        assert float(text.replace("−", "-")) == pytest.approx(weight[name], rel=1e-6)
    unfold.locator(".unfolded .twins button").first.click()
    assert unfold.locator(".unfolded .twin tbody tr").count() == len(answer["nodes"])


def test_a_delay_is_a_small_square(unfold):
    sizes = unfold.locator(".graph .square").evaluate_all(
        "all => all.map(each => [each.getBBox().width, each.getBBox().height])"
    )
    assert sizes == [[10, 10]]


def test_the_graph_is_pulled_open_and_walked_through_by_keyboard(unfold, tools):
    unfold.keyboard.press("+")
    tools.wait(unfold, "state['unfold.graph'].tau === 4")
    unfold.keyboard.press("ArrowRight")
    tools.wait(
        unfold,
        "state['unfold.node'] === 'layer0.h(2)' && document.querySelector('.graph .chosen').dataset.node === 'layer0.h(2)'",
    )
    unfold.locator(".weights .heat").focus()
    unfold.keyboard.press("ArrowDown")
    tools.wait(unfold, "state['unfold.weight'].index.join() === '1,1'")
    unfold.locator(".graph text.halo", has_text="V").first.click()
    tools.wait(unfold, "state['unfold.weight'].name === 'V'")
    unfold.focus("#unfold-tau")
    unfold.keyboard.press("Home")
    tools.wait(unfold, "state['unfold.tau'] === 0")
    unfold.keyboard.press("End")
    tools.wait(unfold, "state['unfold.graph'].tau === 10")  # a text of 11 letters


GRAPHS = [
    ("gru", "10.5", "GRU, H = 4, figure 10.5"),
    ("lstm", "10.3", "LSTM, H = 4"),
    ("elman", "10.4", "Elman network, H = 4, figure 10.4"),
]


@pytest.mark.parametrize(("cell", "pattern", "title"), GRAPHS)
def test_cells_and_patterns(unfold, tools, cell, pattern, title):
    for value in (cell, pattern):
        unfold.locator(f".choose-graph input[value='{value}']").check(force=True)
    tools.wait(unfold, f"document.querySelector('.graph title').textContent.startsWith({title!r})")
    assert tools.state(unfold, "unfold.problem")["unfold.problem"] == ""


def test_the_graph_of_the_run(unfold, finished, tools):
    unfold.get_by_text("your run").click()
    tools.wait(unfold, "state['unfold.graph'].version?.run")
    assert tools.state(unfold, "unfold.graph")["unfold.graph"]["title"].startswith("LSTM, H = 16")
