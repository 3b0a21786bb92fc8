"""Folded and unfolded: the dynamical systems, the circles that open, the files that come back."""

import json
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unspool.cells import cell_named
from unspool.errors import InputError
from unspool.inspect.graph.build import fold
from unspool.inspect.graph.export import from_json, to_dot, to_json, to_mermaid
from unspool.inspect.graph.structure import MAX_NODES, At, Folded
from unspool.inspect.graph.systems import driven, g, plain
from unspool.inspect.graph.trace import trace
from unspool.model.config import ModelConfig
from unspool.model.network import Model

CONFIGS = st.builds(
    ModelConfig,
    cell=st.sampled_from(["elman", "gru", "lstm"]),
    inputs=st.integers(2, 9),
    outputs=st.integers(2, 9),
    hidden=st.integers(1, 5),
    layers=st.integers(1, 3),
    bidirectional=st.booleans(),
    embedding=st.integers(0, 3),
)


@given(t=st.integers(1, 60), s0=st.floats(0.01, 0.99), theta=st.floats(0.5, 4.0))
def test_g_of_the_plain_system_is_t_applications_of_f_10_1(t, s0, theta):
    def f(s, theta):
        return theta * s * (1 - s)

    s = s0
    for _ in range(t):
        s = f(s, theta)
    assert g(plain(), f, t, s0=s0, theta=theta) == s


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=40), st.floats(-2, 2))
def test_g_of_the_driven_system_is_t_applications_of_f_to_the_whole_past_10_4_to_10_7(x, theta):
    def f(s, x, theta):
        return np.tanh(theta * s + x)

    s = 0.5
    for x_t in x:
        s = f(s, x_t, theta)
    assert g(driven(), f, len(x), s0=0.5, theta=theta, x=x) == s


def test_g_takes_exactly_t_inputs():
    with pytest.raises(InputError, match=r"expected 3, one per step"):
        g(driven(), lambda s, x, theta: s, 3, s0=0, theta=0, x=[1, 2])


@settings(max_examples=30, deadline=None)
@given(CONFIGS, st.integers(1, 6))
def test_unfolding_opens_every_circle_and_shares_every_parameter(config, tau):
    folded = fold(config)
    unfolded = folded.unfold(tau)
    place = {at: i for i, at in enumerate(unfolded.nodes)}
    assert len(place) == tau * len(folded.nodes)
    for source, target, _ in unfolded.links:
        assert source in unfolded.starts or place[source] < place[target]
    uses = unfolded.shared
    for parameter in folded.parameters:
        edges = [edge for edge in folded.edges if edge.parameter == parameter.name]
        biases = [node for node in folded.nodes if parameter.name in node.biases]
        assert len(uses[parameter.name]) == tau * (len(edges) + len(biases)) > 0
    carried = cell_named(config.cell).parts
    assert len(unfolded.starts) == carried * config.layers * config.directions


@settings(max_examples=30, deadline=None)
@given(CONFIGS, st.integers(1, 5))
def test_json_comes_back_as_it_was(config, tau):
    unfolded = fold(config).unfold(tau)
    again = from_json(to_json(unfolded))
    assert again == unfolded
    assert again.nodes == unfolded.nodes and again.links == unfolded.links


def test_json_of_a_trace_carries_values_and_gradients():
    model = Model.initialise(ModelConfig(cell="gru", inputs=4, outputs=4, hidden=3), seed=0)
    x = np.array([[1], [2]], np.int32)
    made = trace(model, x, x, gradients=True)
    content = json.loads(to_json(made))
    (node,) = [each for each in content["nodes"] if each["id"] == "layer0.h(2)"]
    assert np.float32(node["value"]).tolist() == made["layer0.h", 2].tolist()
    assert np.float32(node["gradient"]).tolist() == made.gradients[At("layer0.h", 2)].tolist()
    assert sorted(content["gradients"]) == sorted(made.shared)
    assert from_json(to_json(made)) == made.graph


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c.update(format="other"), "format"),
        (lambda c: c["edges"].pop(), "do not match the folded graph"),
        (lambda c: c["nodes"].reverse(), "do not match the folded graph"),
        (lambda c: c["folded"]["edges"][0].update(source="nobody"), "unknown node"),
        (lambda c: c["folded"]["edges"][0].update(parameter="Q"), "unknown parameter"),
        (lambda c: c["folded"]["edges"][0].update(delay=2), "delay"),
        (lambda c: c["folded"]["nodes"][0].update(colour="red"), "colour"),
        (lambda c: c["folded"].pop("nodes"), "nodes"),
        (lambda c: c.update(tau=0), "tau"),
    ],
)
def test_a_graph_that_was_tampered_with_is_refused(change, said):
    content = json.loads(to_json(fold(ModelConfig(cell="elman", inputs=3, outputs=3, hidden=2)).unfold(2)))
    change(content)
    with pytest.raises(InputError, match=said):
        from_json(json.dumps(content))
    with pytest.raises(InputError, match="not a graph"):
        from_json("{")


def test_a_tau_that_does_not_fit_is_refused_and_the_largest_is_named():
    folded = fold(ModelConfig(cell="elman", inputs=3, outputs=3, hidden=2))
    with pytest.raises(InputError, match=f"at most {MAX_NODES // 7:,}"):
        folded.unfold(10**12)
    with pytest.raises(InputError, match="tau"):
        folded.unfold(0)


@pytest.mark.parametrize("form", [to_dot, to_mermaid])
@pytest.mark.parametrize("cell", ["elman", "gru", "lstm"])
def test_dot_and_mermaid_have_every_node_and_edge(form, cell):
    folded = fold(ModelConfig(cell=cell, inputs=3, outputs=3, hidden=2, bidirectional=True))
    unfolded = folded.unfold(3)
    arrow = "->" if form is to_dot else ">"
    for graph, edges in ((folded, folded.edges), (unfolded, unfolded.links)):
        lines = form(graph).splitlines()
        assert sum(arrow in line for line in lines) == len(edges)
    text = form(unfolded)
    assert all(f'"{folded.node[at.name].symbol}({at.t})"' in text for at in unfolded.nodes)


@pytest.mark.skipif(shutil.which("dot") is None, reason="needs Graphviz")
def test_graphviz_draws_what_is_written():
    text = to_dot(fold(ModelConfig(cell="lstm", inputs=3, outputs=3, hidden=2)).unfold(3))
    drawn = subprocess.run(["dot", "-Tsvg"], input=text, capture_output=True, text=True, check=True)
    assert "<svg" in drawn.stdout and not drawn.stderr


def test_a_folded_graph_alone_comes_back_from_json_too():
    folded = fold(ModelConfig(cell="lstm", inputs=3, outputs=3, hidden=2, layers=2))
    assert from_json(to_json(folded)) == folded
    assert "tau" not in json.loads(to_json(folded))
    assert Folded.from_json(json.loads(json.dumps(folded.to_json()))) == folded
