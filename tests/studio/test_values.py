"""What the page shows is what the library computes: every number, and every chart as CSV."""

import numpy as np
import pytest

from studio_client import TEXT
from unspool.gradients.by_lag import gradient_by_lag
from unspool.gradients.check import by_backend
from unspool.gradients.decomposition import decompose_gradient
from unspool.gradients.estimates import compare_estimates, estimated_gradient
from unspool.gradients.jacobians import radii
from unspool.gradients.truncation import Truncation
from unspool.inspect.components import components
from unspool.inspect.properties import properties_of
from unspool.inspect.reading import read
from unspool.inspect.units import choose_units, find_units
from unspool.kernels import reference
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.studio.payload import array_from
from unspool.tasks.language.text_model import TextModel
from unspool.training.choose_bptt import truncated_gradient

PASSAGE = TEXT[400:560]


@pytest.fixture(scope="module")
def model(ended):
    """The model of the last update, and the ids of the passage."""
    source = TextModel.load(ended.session.run_of("r1").out)
    _, newest = ended.session.model_of(ended.session.run_of("r1"), None)
    return newest.model, source.encode(PASSAGE)


@pytest.fixture(scope="module")
def shown(ended):
    return ended.post("/api/read", text=PASSAGE, states=["layer0.h", "layer0.s", "layer0.f"], run="r1")


def test_a_reading_is_that_of_the_library(shown, model):
    found = read(model[0], model[1], list(PASSAGE), gates=True)
    assert shown["ids"].tolist() == model[1].tolist() and shown["pieces"] == list(PASSAGE)
    assert (shown["surprise"][1:] == found.surprise[1:].astype(np.float32)).all()
    assert (shown["expected"] == found.expected).all()
    assert (shown["shares"] == found.shares.astype(np.float32)).all()
    assert shown["nats"] == found.nats
    for name, values in (found.states | found.gates).items():
        if name in shown["states"]:
            assert (shown["states"][name] == values).all() and shown["scales"][name] == np.abs(values).max()
    path = components(found.last_h)
    assert (shown["path"]["positions"] == path.positions.astype(np.float32)).all()


def test_gates_are_those_of_the_equations(model):
    found, source = read(model[0], model[1], list(PASSAGE), gates=True), model[0]
    p, H = source.parameters, source.config.hidden
    h = np.concatenate([np.zeros((1, H)), found.states["layer0.h"][:-1]])
    a = p["layer0.b"] + h @ p["layer0.W"].T + p["layer0.U"].T[model[1]]
    for i, gate in enumerate("ifgo"):
        block = a[:, i * H : (i + 1) * H]
        expected = np.tanh(block) if gate == "g" else reference.sigmoid(block)
        np.testing.assert_allclose(found.gates[f"layer0.{gate}"], expected, atol=1e-5)


def test_one_step_is_exact_and_its_distribution_gives_the_next_surprise(ended, shown, model):
    found = read(model[0], model[1], list(PASSAGE), gates=True)
    for t in (0, 7, len(PASSAGE) - 1):
        at = ended.post("/api/at", reading=shown["reading"], t=t)
        for name, values in (at["states"] | at["gates"]).items():
            assert (values == (found.states | found.gates)[name][t]).all()
        p = at["next"]
        assert abs(p.sum() - 1) < 1e-5
        if t + 1 < len(PASSAGE):
            assert abs(-np.log(p[model[1][t + 1]]) - found.surprise[t + 1]) < 1e-5
    assert ended.refused("/api/at", reading=shown["reading"], t=len(PASSAGE))[0] == 400


def test_units_are_those_of_inspect(ended, shown, model):
    found = read(model[0], model[1], list(PASSAGE), gates=True)
    properties = properties_of(list(PASSAGE))
    units = ended.post("/api/units", reading=shown["reading"], count=5)["units"]
    assert [(each["name"], each["property"], each["share"], each["means"]) for each in units] == [
        (each.name, each.encodes.name, each.share, each.means)
        for each in choose_units(found.states, properties, 5)
    ]
    one = ended.post("/api/unit", reading=shown["reading"], name="s3", stretches=3)
    (expected,) = find_units(found.states, properties, ["s3"])
    assert (one["activation"] == expected.activation).all()
    assert one["informs"][0] == {
        "property": expected.encodes.name,
        "share": expected.share,
        "chance": expected.chance,
    }
    at = [each["at"] for each in one["stretches"]]
    assert at[0] == np.abs(expected.activation).argmax() and len(set(at)) == 3
    assert one["stretches"][0]["text"] == PASSAGE[one["stretches"][0]["begin"] : one["stretches"][0]["end"]]


def window(ids, tau, begin, model):
    state = model.forward(ids[:begin, None].copy()).state
    return ids[begin : begin + tau, None].copy(), ids[begin + 1 : begin + tau + 1, None].copy(), state


def test_gradients_back_in_time_are_those_of_the_library(ended, model):
    back = ended.post("/api/back", text=PASSAGE, begin=20, tau=24, run="r1", draws=5)
    x, y, state = window(model[1], 24, 20, model[0])
    lags = gradient_by_lag(model[0], x, y, state=state)
    assert back["lags"]["norms"][0].tolist() == np.float32(lags.norms["layer0.W"]).tolist()
    assert back["lags"]["full"] == lags.full and back["lags"]["rest"] < 1e-12
    parts = decompose_gradient(model[0], x, y, state)
    flow = np.linalg.norm(parts.dh()[:, 0], axis=1)
    np.testing.assert_allclose(back["flow"]["h"], flow, rtol=1e-6)
    assert back["radii"] == radii(model[0]) and back["pieces"] == list(PASSAGE[20:45])
    matrix = back["matrix"]["h"]
    for t in (0, 9, 23):  # the loss of one step alone, by the decomposition
        alone = np.where(np.arange(24)[:, None] == t, y, -1).astype(np.int32)
        expected = np.linalg.norm(decompose_gradient(model[0], x, alone, state).dh()[:, 0], axis=1)
        np.testing.assert_allclose(matrix[t, : t + 1], expected[: t + 1], rtol=1e-5)
        assert (matrix[t, t + 1 :] == 0).all()
    assert (back["matrix"]["s"].diagonal() == 0).all()


def test_estimates_are_those_of_training(ended, model):
    x, y, _ = window(model[1], 24, 0, model[0])
    full = truncated_gradient(model[0], x, y, 24)
    back = ended.post(
        "/api/back",
        text=PASSAGE,
        tau=24,
        run="r1",
        parts=["truncations"],
        draws=40,
        kinds=["truncated:8", "truncated:24", "random:0.9"],
    )
    by_kind = {each["kind"]: each for each in back["truncations"]}
    missing = np.linalg.norm(truncated_gradient(model[0], x, y, 8) - full) / np.linalg.norm(full)
    np.testing.assert_allclose(by_kind["truncated:8"]["bias"], missing, rtol=1e-5)
    assert by_kind["truncated:24"]["bias"] == by_kind["full"]["bias"] == 0
    drawn = by_kind["random:0.9"]
    g = np.stack(
        [estimated_gradient(model[0], x, y, Truncation.parse("random:0.9"), step=i) for i in range(40)]
    )
    np.testing.assert_allclose(
        drawn["bias"], np.linalg.norm(g.mean(0) - full) / np.linalg.norm(full), rtol=1e-4
    )
    spread = np.sqrt(g.var(axis=0, ddof=1).sum()) / np.linalg.norm(full)
    np.testing.assert_allclose(drawn["spread"], spread, rtol=1e-4)
    assert drawn["error"] == drawn["spread"] / 40**0.5 and drawn["draws"].shape == (40,)


def test_a_random_estimate_has_no_bias_in_the_mean_of_many_draws():
    small = Model.initialise(ModelConfig(cell="elman", inputs=4, outputs=4, hidden=6), seed=0)
    ids = np.arange(13, dtype=np.int32)[:, None] % 4
    _, fixed, drawn = compare_estimates(
        small, ids[:-1], ids[1:], [Truncation.parse("truncated:2"), Truncation.parse("random:0.8")], draws=400
    )
    assert drawn.bias < 3 * drawn.error < fixed.bias


def test_a_truncation_that_looks_back_further_than_it_updates_is_estimated(model):
    x, y, state = window(model[1], 24, 8, model[0])
    found = compare_estimates(
        model[0],
        x,
        y,
        [Truncation.parse(kind) for kind in ("truncated:8", "truncated:8,24", "truncated:1,24")],
        state=state,
    )
    assert found[1].bias > found[2].bias and found[3].bias < 1e-5


def test_W_is_scaled_to_a_spectral_radius(ended, model):
    own = max(radii(model[0]).values())
    for given, scale in (({"radius": 0.5}, 0.5 / own), ({"scale": 2.0}, 2.0)):
        back = ended.post("/api/back", text=PASSAGE, tau=8, run="r1", parts=["lags"], **given)
        assert back["scale"] == pytest.approx(scale)
        assert max(back["radii"].values()) == pytest.approx(scale * own, rel=1e-5)
    assert ended.sha256(run="r1") == model[0].parameters.sha256


GRAPHS = [
    {"of": "run", "run": "r1"}, {"of": "demo"}, {"of": "demo", "cell": "gru"}, {"of": "demo", "cell": "lstm"},
    {"of": "demo", "pattern": "10.4"}, {"of": "demo", "pattern": "10.4", "feedback": "token"}, {"of": "demo", "pattern": "10.5"},
]  # fmt: skip


@pytest.mark.parametrize("asks", GRAPHS, ids=str)
def test_every_weight_of_an_unfolded_graph_agrees_in_three_ways(ended, asks):
    graph = ended.post("/api/unfold", text="time and space", tau=5, **asks)
    assert "<svg" in graph["svg"] and all(
        f'data-node="{node["id"]}"' in graph["svg"] for node in graph["nodes"]
    )
    for each in graph["parameters"]:
        gradient = each["gradient"]
        index = [int(i) for i in np.unravel_index(np.abs(gradient).argmax(), gradient.shape)]
        weight = ended.post("/api/weight", unfolding=graph["unfolding"], name=each["name"], index=index)
        assert weight["value"] == each["value"][tuple(index)]
        for name in ("formula", "engine"):
            assert weight[name] == pytest.approx(weight["difference"], rel=2e-4, abs=1e-6), each["name"]
        assert weight["engine"] == pytest.approx(float(gradient[tuple(index)]), rel=1e-4, abs=1e-6)
        if weight["steps"] is not None:
            assert weight["steps"].sum() == pytest.approx(weight["formula"])


def test_the_nodes_have_the_numbers_of_the_book(ended):
    graph = ended.post("/api/unfold", text="time", of="demo", tau=3)
    numbers = {node["id"]: (node["number"], node["gradient_number"]) for node in graph["nodes"]}
    assert numbers["layer0.a(2)"][0] == "10.8" and numbers["layer0.h(2)"] == ("10.9", "10.21")
    assert (
        numbers["o(3)"] == ("10.10", "10.18")
        and numbers["layer0.h(3)"][1] == "10.19"
        and numbers["x(1)"] == (None, None)
    )
    assert {each["symbol"]: each["number"] for each in graph["parameters"]} == {
        "U": "10.28", "W": "10.26", "b": "10.23", "V": "10.24", "c": "10.22",
    }  # fmt: skip


def test_the_engine_of_a_weight_is_the_native_kernels(ended, model):
    graph = ended.post("/api/unfold", text=PASSAGE, of="run", run="r1", tau=5)
    x, y = model[1][:5, None].copy(), model[1][1:6, None].copy()
    whole = by_backend(model[0], x, y, model[0].backend)["layer0.W"] * 5
    weight = ended.post("/api/weight", unfolding=graph["unfolding"], name="layer0.W", index=[2, 3])
    assert weight["engine"] == whole[2, 3]


CHARTS = {
    "/api/read": ({"text": PASSAGE}, ["surprise", "next", "states", "path"]),
    "/api/back": ({"text": PASSAGE, "tau": 6, "draws": 2}, ["flow", "matrix", "matrix_s", "lags", "truncations"]),
    "/api/unfold": ({"text": "time", "of": "demo"}, ["nodes", "parameters"]),
    "/api/at": ({"t": 3}, ["next", "states"]), "/api/units": ({}, ["units"]),
    "/api/unit": ({"name": "h2"}, ["activation", "stretches", "off"]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("route", "chart"), [(route, chart) for route, (_, charts) in CHARTS.items() for chart in charts]
)
def test_every_chart_is_a_table(ended, shown, route, chart):
    body = CHARTS[route][0] | (
        {"reading": shown["reading"]}
        if "text" not in CHARTS[route][0]
        else {"run": "r1"}
        if "of" not in CHARTS[route][0]
        else {}
    )
    rows = ended.csv(f"{route}?csv={chart}", **body)
    assert (
        len(rows) > 1
        and all(rows[0])
        and (
            chart
            in ("next", "surprise", "stretches", "activation", "states", "path", "flow", "matrix", "matrix_s")
            or {len(row) for row in rows} == {len(rows[0])}
        )
    )
    assert "expected one of" in ended.refused(f"{route}?csv=none", **body)[1]


def test_the_curves_are_tables_with_the_values_of_the_log(ended, hashes):
    learn = ended.get("/api/learn?run=r1")
    status, body = ended.raw("GET", "/api/learn?run=r1&csv=curve")
    rows = [line.split(",") for line in body.decode().splitlines()]
    assert status == 200 and rows[0] == ["update", "loss", "train", "norm", "seconds"]
    assert [[float(v) for v in row] for row in rows[1:]] == array_from(learn["curve"]).tolist()
    assert array_from(learn["curve"])[:, 0].tolist() == list(range(1, len(hashes)))
    assert [each["name"] for each in learn["baselines"]] == ["uniform", *(f"{n}-grams" for n in range(1, 7))]
