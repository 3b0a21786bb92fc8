"""What the report says is true: against other computations, and for every kind of model and text."""

import base64
import hashlib
import json
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspect_cases import TEXT, frozen_in, made
from unspool.data.tokens.registry import make_tokenizer
from unspool.errors import InputError
from unspool.evaluation.language import log_prob
from unspool.inspect.components import components
from unspool.inspect.describe import clearest_span
from unspool.inspect.memory import look_back
from unspool.inspect.properties import Property, properties_of
from unspool.inspect.reading import pieces_of, read
from unspool.inspect.report import inspect, numbers
from unspool.inspect.units import choose_units, find_units, normalised_information
from unspool.studio.frozen import frozen_page
from unspool.studio.inspection import text_page
from unspool.studio.payload import array_from


def ids_of(source, text=TEXT):
    return source.encode(text)


def test_surprise_is_what_evaluation_finds_and_candidates_are_the_most_probable(trained):
    ids = ids_of(trained)
    found = read(trained.model, ids, list(TEXT))
    assert np.allclose(found.surprise[1:], -log_prob(trained.model, ids), atol=1e-5)
    assert np.isnan(found.surprise[0]) and (found.expected[0] == -1).all()
    assert (np.diff(found.shares[1:], axis=1) <= 0).all()
    hit = found.expected[1:, 0] == ids[1:]
    assert np.allclose(np.exp(-found.surprise[1:][hit]), found.shares[1:, 0][hit])
    assert found.shares[1:].sum(axis=1).max() <= 1 + 1e-9


def test_a_reading_has_the_same_bits_for_any_window(trained):
    ids = ids_of(trained)[:90]
    one, many = (read(trained.model, ids, list(TEXT[:90]), window=window) for window in (90, 7))
    for name, values in one.states.items():
        assert (values == many.states[name]).all()
    assert (one.expected == many.expected).all()
    output = trained.model.forward(np.ascontiguousarray(ids[:, None]))
    assert (one.last_h == output.h[:, 0]).all()


@pytest.mark.parametrize("kind", ["char", "byte", "word", "space"])
def test_the_pieces_of_all_tokens_are_the_text(kind):
    source = made(kind=kind)
    tokens = source.tokenizer.encode_text(TEXT)
    pieces = pieces_of(source.tokenizer, tokens)
    assert len(pieces) == len(tokens)
    if kind in ("char", "byte"):
        assert "".join(pieces) == TEXT
    else:
        assert "".join(pieces) == source.tokenizer.decode(tokens)


@given(st.binary(max_size=40))
def test_bytes_that_are_no_text_have_a_piece_each_too(raw):
    assert len(pieces_of(make_tokenizer("byte"), list(raw.decode("latin-1")))) == len(raw)


def test_properties_are_what_a_reader_would_count():
    text = 'AB cd "e f" (g)\nHi.\n' * 3
    found = {each.name: each.values for each in properties_of(list(text))}
    assert "".join(c for c, so in zip(text, found["inside quotation marks"], strict=True) if so) == '"e f' * 3
    assert "".join(c for c, so in zip(text, found["inside brackets"], strict=True) if so) == "(g" * 3
    assert "".join(c for c, so in zip(text, found["a capital letter"], strict=True) if so) == "ABH" * 3
    assert "".join(c for c, so in zip(text, found["the word ends here"], strict=True) if so) == "Bdefgi" * 3
    assert "".join(c for c, so in zip(text, found["the line ends here"], strict=True) if so) == ")." * 3
    assert "a Han character" not in found
    assert (np.diff(found["position in the line"][:15]) >= 0).all()


def information(u, p):
    """I(u; p) / H(p) from counts, the long way."""
    T = len(u)
    ranges = np.argsort(np.argsort(u, kind="stable"), kind="stable") * 10 // T
    total = 0.0
    for r in range(10):
        for v in set(p.tolist()):
            joint = np.mean((ranges == r) & (p == v))
            if joint:
                total += joint * math.log(joint / (np.mean(ranges == r) * np.mean(p == v)))
    entropy = -sum(np.mean(p == v) * math.log(np.mean(p == v)) for v in set(p.tolist()))
    return total / entropy


def test_the_share_of_a_property_is_its_mutual_information_less_chance():
    rng = np.random.default_rng(0)
    p = Property("p", rng.integers(0, 3, 450), True)
    states = np.stack([p.values + 0.5 * rng.standard_normal(450), rng.standard_normal(450)], axis=1)
    share, chance = normalised_information(states.astype(np.float32), [p])
    for unit in range(2):
        u = states[:, unit].astype(np.float32)
        moved = [information(u, np.roll(p.values, 450 * k // 9)) for k in range(1, 9)]
        assert chance[unit, 0] == pytest.approx(np.mean(moved), abs=1e-6)
        expected = max(information(u, p.values) - np.mean(moved), 0)
        assert share[unit, 0] == pytest.approx(expected, abs=1e-6)
    assert share[0, 0] > 0.3 > 0.05 > share[1, 0]


def test_a_planted_unit_is_found_and_a_named_one_is_taken():
    rng = np.random.default_rng(1)
    pieces = list('one "two three" four, "five six" seven.\n' * 20)
    found = properties_of(pieces)
    quotes = next(each for each in found if each.name == "inside quotation marks")
    h = rng.standard_normal((len(pieces), 12)).astype(np.float32)
    h[:, 7] = quotes.values * 1.6 - 0.8 + 0.05 * h[:, 7]
    best = choose_units({"layer0.h": h}, found, 3)[0]
    assert (best.name, best.encodes.name) == ("layer0.h7", "inside quotation marks")
    assert best.share > 0.7 and best.means[1] > 0.7 > -0.7 > best.means[0]
    assert [unit.name for unit in find_units({"layer0.h": h}, found, ["3", "h7", "layer0.h11"])] == [
        "layer0.h3",
        "layer0.h7",
        "layer0.h11",
    ]
    stretch = clearest_span(best, 30)
    assert 0 < quotes.values[stretch : stretch + 30].sum() < 30
    for name in ("12", "s1", "layer1.h0", "h", "x", "-1"):
        with pytest.raises(InputError, match=re.escape("layer0.h0 … layer0.h11")):
            find_units({"layer0.h": h}, found, [name])


def test_components_are_those_of_a_singular_value_decomposition():
    rng = np.random.default_rng(2)
    states = (rng.standard_normal((300, 40)) @ rng.standard_normal((40, 40))).astype(np.float32)
    states[:, 0] *= 6
    states[:, 1] *= 4
    found = components(states)
    centred = states - states.mean(axis=0)
    _, sizes, directions = np.linalg.svd(centred.astype(np.float64), full_matrices=False)
    assert found.shares == pytest.approx(sizes[:2] ** 2 / (sizes**2).sum(), rel=1e-3)
    for i in range(2):
        expected = centred @ directions[i]
        assert (
            min(np.abs(found.positions[:, i] - sign * expected).max() for sign in (1, -1)) < 0.02 * sizes[0]
        )


@pytest.mark.parametrize("states", [np.zeros((5, 3)), np.ones((5, 1)), np.arange(10.0).reshape(5, 2)])
def test_components_of_little_are_finite(states):
    found = components(states.astype(np.float32))
    assert np.isfinite(found.positions).all() and np.isfinite(found.shares).all()


def test_looking_back_needs_room_and_its_advice_names_the_fewest_steps(trained):
    assert look_back(trained.model, ids_of(trained)[:4]) is None
    seen = look_back(trained.model, ids_of(trained)[:120])
    for bias, steps in seen.advice.items():
        if steps is not None:
            assert all(missing <= bias for missing in seen.by_lag.bias[steps:])
            assert steps == 1 or seen.by_lag.bias[steps - 1] > bias


@pytest.mark.parametrize(
    ("cell", "kind", "more"),
    [
        ("elman", "char", {}),
        ("gru", "word", {"layers": 2, "embedding": 4}),
        ("lstm", "byte", {}),
        ("lstm", "char", {"layers": 2, "backward": True}),
        ("elman", "char", {"pattern": "output"}),
    ],
)
def test_the_page_holds_the_numbers_of_every_kind_of_model(cell, kind, more):
    source = made(cell, kind, **more)
    report = inspect(source, TEXT[:400], run="<i>run</i>", name="a&b.txt")
    text = text_page(report, TEXT[:400]).html
    assert "https://" not in text and "<i>" not in text
    data = frozen_in(text)
    T = len(report.reading.ids)
    read, units = (answer_of(data, f"/api/{name}") for name in ("read", "units"))
    assert np.array_equal(
        array_from(read["surprise"]), report.reading.surprise.astype(np.float32), equal_nan=True
    )
    assert np.array_equal(array_from(read["path"]["positions"]), report.path.positions.astype(np.float32))
    assert [each["name"] for each in units["units"]] == [each.name for each in report.units]
    assert all(
        len(array_from(answer_of(data, "/api/unit", each.name)["activation"])) == T for each in report.units
    )
    assert len(data["next"]) == T and data["cut"] is None
    assert json.loads(json.dumps(numbers(report), allow_nan=False))["tokens"] == T
    assert ("back" in data["views"]) == (more.get("pattern") != "output")
    if report.back is not None:
        memory = answer_of(data, "/api/memory")
        assert memory["missed"] == pytest.approx(report.back.by_lag.bias, rel=1e-6)
        assert memory["horizons"] == report.back.horizons


def answer_of(data, route, words=""):
    return next(each for key, each in data["answers"].items() if key.startswith(route + " ") and words in key)


def test_the_page_allows_its_own_script_and_style_alone():
    text = frozen_page({"text": "</script><script>alert(1)</script>"})
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', text)[1]
    for tag in ("script", "style"):
        inside = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    assert "import {" not in text and "alert" in frozen_in(text)["text"]


def test_a_text_of_tags_stays_a_text():
    source, words = made(), '</script><script>alert(1)</script><!-- & "quoted"\n<b>' * 3
    text = text_page(inspect(source, words), words).html
    assert frozen_in(text)["state"]["text"] == words
    assert "<!--" not in text.replace("<!doctype html>", "")


def test_short_and_strange_texts():
    source = made("elman")
    for text in ("ab", "abc", "aaaaaaaaaaaa", "\n\n\n\n", "😀😀😀😀😀😀", "a\udc80b\u202ec"):
        assert text_page(inspect(source, text), text).html.endswith("</html>\n")
    with pytest.raises(InputError, match="two or more"):
        inspect(source, "a")
    with pytest.raises(InputError, match="one direction"):
        inspect(made("gru", bidirectional=True), TEXT)


def test_a_long_text_is_cut_and_the_page_says_so():
    source, text = made("elman", "byte"), "红" * 2000
    data = frozen_in(text_page(inspect(source, text), text).html)
    assert (
        data["cut"] == {"shown": len(data["state"]["text"]) * 3, "tokens": 6000}
        and data["cut"]["shown"] <= 5000
    )


def test_units_of_the_users_choice_are_shown(trained):
    report = inspect(trained, TEXT[:300], units=["s3", "0"])
    assert [unit.name for unit in report.units] == ["layer0.s3", "layer0.h0"]
    units = answer_of(frozen_in(text_page(report, TEXT[:300]).html), "/api/units")["units"]
    assert [unit["name"] for unit in units] == ["layer0.s3", "layer0.h0"]
