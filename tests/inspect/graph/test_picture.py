"""Graphs and small charts as SVG: whole, escaped, with every node that belongs there."""

from xml.etree import ElementTree

import numpy as np
import pytest

from unspool.cli import main as cli
from unspool.errors import InputError
from unspool.inspect.graph.build import fold
from unspool.inspect.graph.export import from_json
from unspool.inspect.graph.picture import CSS, draw_graph
from unspool.inspect.graph.structure import At
from unspool.inspect.graph.systems import driven, plain
from unspool.inspect.graph.trace import trace
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.plots.svg import Canvas

SVG = "{http://www.w3.org/2000/svg}"


def nodes(canvas):
    tree = ElementTree.fromstring(canvas.alone(CSS))
    return [each for each in tree.iter(f"{SVG}g") if each.get("class", "").startswith("node")], tree


@pytest.mark.parametrize("cell", ["elman", "gru", "lstm"])
@pytest.mark.parametrize("more", [{}, {"layers": 2}, {"bidirectional": True, "embedding": 3}])
@pytest.mark.parametrize("tau", [1, 3, 6])
def test_every_node_is_drawn_once_folded_and_once_a_step(cell, more, tau):
    folded = fold(ModelConfig(cell=cell, inputs=5, outputs=5, hidden=4, **more))
    found, tree = nodes(draw_graph(folded, tau=tau))
    assert len(found) == len(folded.nodes) * (tau + 1) + len(folded.unfold(tau).starts)
    squares = [each for each in tree.iter(f"{SVG}rect") if each.get("class") == "square"]
    assert len(squares) == sum(edge.delay != 0 for edge in folded.edges)


@pytest.mark.parametrize(("pattern", "drawn"), [("10.4", 7 * 4 + 1), ("10.5", 7 + 3 * 3 + 4 + 1)])
def test_the_other_figures_of_the_book(pattern, drawn):
    config = ModelConfig(cell="elman", inputs=5, outputs=5, hidden=4, pattern=pattern)
    assert len(nodes(draw_graph(fold(config), tau=3))[0]) == drawn


def inside(tree, x, y):
    _, _, width, height = map(float, tree.get("viewBox").split())
    return 0 <= x <= width and 0 <= y <= height


@pytest.mark.parametrize(
    "graph", [plain(), driven(), fold(ModelConfig(cell="gru", inputs=5, outputs=5, hidden=4))]
)
def test_nothing_leaves_the_sheet_and_no_two_nodes_of_a_step_overlap(graph):
    found, tree = nodes(draw_graph(graph, tau=4))
    positions = []
    for each in found:
        shape = each.find(f"{SVG}circle")
        if shape is not None:
            positions.append((float(shape.get("cx")), float(shape.get("cy"))))
        else:
            box = each.find(f"{SVG}rect")
            positions.append((float(box.get("x")) + 19, float(box.get("y")) + 19))
    assert all(inside(tree, x - 15, y - 15) and inside(tree, x + 15, y + 15) for x, y in positions)
    apart = [np.hypot(x - u, y - v) for i, (x, y) in enumerate(positions) for u, v in positions[:i]]
    assert min(apart) > 30


def test_beyond_six_steps_there_are_dots():
    found, tree = nodes(draw_graph(plain(), tau=50))
    titles = [each.find(f"{SVG}title").text.splitlines()[0] for each in found]
    assert titles == ["s", "s(0)", "s(1)", "s(2)", "s(3)", "s(49)", "s(50)"]
    assert any(each.text == "⋯" for each in tree.iter(f"{SVG}text"))


def test_values_and_gradients_are_in_the_nodes_and_labels_are_escaped():
    model = Model.initialise(ModelConfig(cell="elman", inputs=4, outputs=4, hidden=3), seed=0)
    x = np.array([[1], [2]], np.int32)
    made = trace(model, x, x, gradients=True)
    canvas = draw_graph(made, labels={At("x", 1): "<&>"})
    found, _ = nodes(canvas)
    (h,) = [each for each in found if each.find(f"{SVG}title").text.startswith("h(2)")]
    said = h.find(f"{SVG}title").text
    assert f"{made['layer0.h', 2][0, 0]:.3f}" in said and "∇ norm" in said and "tanh" in said
    assert len([each for each in h.iter(f"{SVG}rect") if each.get("class") == "cell"]) == 6
    assert "&lt;&amp;&gt;" in canvas.alone()


def test_a_picture_is_well_formed_whatever_it_is_called():
    canvas = Canvas(10, 10, "<title> & more")
    canvas.text(1, 1, "a < b & c", class_="soft")
    assert ElementTree.fromstring(canvas.alone()).find(f"{SVG}title").text == "<title> & more"


def graph(*options):
    cli.app(["graph", *map(str, options)], result_action="return_value")


def test_figure_10_4_is_drawn_as_in_the_book_with_teacher_forcing_below(tmp_path, capsys):
    out = tmp_path / "both.svg"
    graph("--pattern", "10.4", "--tau", 2, "--out", out)
    tree = ElementTree.fromstring(out.read_text())
    titles = [each.text for each in tree.iter(f"{SVG}text") if "figure 10.4" in (each.text or "")]
    assert [title.rpartition(", ")[2] for title in titles] == ["output fed back", "target fed back"]
    told = [each.text for each in tree.iter(f"{SVG}title")]
    assert any(each.startswith("o(0)") for each in told) and any(each.startswith("y(0)") for each in told)
    assert capsys.readouterr().err == ""
    for fed, source in {"logits": "o", "token": "y", "argmax": "k", "target": "y"}.items():
        graph("--pattern", "10.4", "--feedback", fed, "--folded", "--out", tmp_path / f"{fed}.json")
        folded = from_json((tmp_path / f"{fed}.json").read_text())
        assert [(edge.source, edge.target) for edge in folded.edges if edge.delay] == [(source, "layer0.a")]
    assert capsys.readouterr().err.splitlines() == [
        "unspool: --feedback token now means teacher forcing, as in train; for the most probable output, use --feedback argmax (this hint ends with 0.2)",
        "unspool: --feedback target is now --feedback token, as in train (this hint ends with 0.2)",
    ]
    with pytest.raises(InputError, match=r"requires --pattern 10\.4"):
        graph("--feedback", "target")
