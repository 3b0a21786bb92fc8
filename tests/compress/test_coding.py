"""Files through a model and back: any bytes, any tokens, any network; what it costs; what is refused."""

import math
import tracemalloc
import zlib
from contextlib import suppress
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cases import CELLS, config_of
from compress_cases import MODELS, SENTENCE, model_of
from unspool.compress import coding, compress, decompress, identity, model_within
from unspool.compress.coding import decode, encode, flags_of, read_choices
from unspool.compress.container import MARK, VERSION, Container
from unspool.compress.integer_frequencies import frequencies
from unspool.compress.literals import Counts, LiteralCoder, tokenize
from unspool.data.text.settings import TextConfig
from unspool.data.text.source import text_source
from unspool.data.tokens.registry import make_tokenizer
from unspool.data.tokens.vocab import Vocab
from unspool.errors import FileError, InputError
from unspool.kernels import native
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.model.stream import Stream
from unspool.tasks.language.estimator import LanguageModel
from unspool.tasks.language.run import run
from unspool.tasks.language.text_model import TextModel
from unspool.training.dynamic import Learning
from unspool.training.events import RunConfig

STRANGE = [
    b"",
    b"s",
    b"\xff",
    b"\xef\xbb\xbfshe sells\r\n",
    "she sells 貝殼 🐚🐚 by the sea\n".encode(),
    b"she \xe8\xb2 sells \xed\xb2\x80 \x00\x80\xff",
    bytes(range(256)) * 2,
]


@pytest.fixture(scope="module")
def trained():
    made = LanguageModel(hidden=32, batch_size=4, window=32, steps=150, learning_rate=0.01, dropout=0.0)
    return made.fit(SENTENCE * 60).text_model_


def through(model, data, mode=None):
    """A file through the coder, without the container; `mode` is forced where it is given."""
    made = encode(model, data)
    assert mode in (None, made.mode)
    return decode(model, made.payload, made.tokens, made.mode, length=len(data))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("data", [*STRANGE, SENTENCE.encode() * 3], ids=range(len(STRANGE) + 1))
def test_any_file_comes_back_to_the_byte(name, data):
    assert through(MODELS[name], data) == data
    packed = compress(MODELS[name], data)
    assert decompress(packed.container, MODELS[name]) == data
    assert len(packed.container.payload) <= len(data)


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.one_of(st.binary(max_size=60), st.text(max_size=40).map(lambda text: text.encode())))
@example(data=b"\xed\xa0\x80\xed\xb0\x80 \xf4\x90\x80\x80 \xc0\x80")  # surrogates, too large, too long
def test_whatever_the_bytes_are(name, data):
    assert MODELS[name].tokenizer.decode_bytes(tokenize(MODELS[name].tokenizer, data)) == data
    assert through(MODELS[name], data) == data


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("kind", ["one-hot", "embedded", "tied", "tied and gathered"])
def test_windows_and_single_steps_see_the_same_frequencies(cell, kind, monkeypatch):
    model = Model.initialise(config_of(cell, kind, 16, layers=2, learn_h0=True), seed=3)
    model.parameters.flat[:] *= 3
    K = model.config.outputs
    ids = np.random.default_rng(4).integers(0, K, 70).astype(np.int32)
    stream, rows = Stream(model), [np.ones(K, np.int64)]
    for token in ids[:-1].tolist():
        stream.read(token)
        rows.append(frequencies(stream.logits()))
    f = np.stack(rows)
    at = np.arange(len(ids))
    expected = f.cumsum(1)[at, ids] - f[at, ids], f[at, ids], f.sum(1), f[:, 0]
    for isa, threads, window in product(native.kernel_info()["available"], (1, 2), (1, 7, 1000)):
        native.choose_isa(isa)
        native.set_threads(threads)
        monkeypatch.setattr(coding, "VALUES", window * K)
        choices, of_unknown, _ = read_choices(model, ids)
        for mine, other in zip((*choices, of_unknown), expected, strict=True):
            assert (mine == other).all()


def test_the_bits_are_those_that_evaluate_reports(trained):
    data = (SENTENCE * 3 + "she shells the sea; the sea shells she.\n" * 5).encode()
    made, judged = encode(trained, data), trained.measure(text_source(data.decode()))
    assert made.nats == judged.nats and made.tokens == judged.targets + 1
    assert made.expected_bits == judged.nats * judged.targets / math.log(2)
    assert made.mode == "network" and made.unknown == 0
    exact = made.expected_bits + math.log2(len(trained.vocab))
    assert exact - 1 < 8 * len(made.payload) < exact * 1.001 + 8
    assert len(made.payload) < len(zlib.compress(data, 9))
    assert through(trained, data) == data


def test_unknown_tokens_cost_what_they_are_not_what_a_network_that_never_met_one_thinks(trained):
    data = (SENTENCE + "貝殼在海邊，她賣貝殼。\n" * 8).encode()
    made = encode(trained, data)
    assert made.mode == "counted" and made.unknown == 8 * 11  # the line ends are known
    assert 8 * len(made.payload) < made.expected_bits + made.spelled_bits
    assert through(trained, data, "counted") == data


def test_a_network_that_knows_unknown_tokens_is_asked():
    given = {"hidden": 24, "B": 4, "tau": 32, "steps": 120, "learning_rate": 0.02, "dropout": 0.0}
    config = RunConfig(
        sources=("a text",), given=given, settings=TextConfig(min_freq=200, split=(0.9, 0.1, 0.0))
    )
    prepared, *_, judged = run(config, texts=[text_source(SENTENCE * 60)])
    corpus = prepared.corpus
    model = TextModel(judged.model, corpus.vocab, corpus.tokenizer, corpus.settings)
    data = (SENTENCE * 4).encode()
    made = encode(model, data)
    assert made.mode == "network" and made.unknown > 20
    exact = made.expected_bits + made.spelled_bits + math.log2(len(model.vocab))
    assert abs(8 * len(made.payload) - exact) < 8 + exact * 0.001
    assert through(model, data, "network") == data


@given(st.lists(st.booleans(), max_size=80))
def test_flags_count_what_came_before(unknown):
    choices, seen, before = flags_of(np.array(unknown, np.bool_)), {False: [0, 0], True: [0, 0]}, False
    for each, start, size, total in zip(unknown, *choices, strict=True):
        known, ones = (2 * n + 1 for n in seen[before])
        assert (start, size, total) == ((0, ones, known + ones) if each else (ones, known, known + ones))
        seen[before][each] += 1
        before = each


def test_spelling_learns_what_it_spells():
    spelling = LiteralCoder(make_tokenizer("char"))
    first, second = (list(spelling.intervals("貝")) for _ in range(2))
    assert first == [(0, 1, 1), (ord("貝"), 1, 0x110001)]
    assert second == [(0, 1, 3)]  # once, and D + 1 = 2 for a new one
    assert list(LiteralCoder(make_tokenizer("jieba")).intervals("a"))[-1][0] == 0x110000  # its end


def test_tokens_that_lose_text_are_refused():
    with pytest.raises(InputError, match="tokens='char' or 'byte'"):
        encode(model_of("word"), b"she sells")


def test_networks_that_cannot_go_token_by_token_are_refused():
    model = model_of(bidirectional=True)
    with pytest.raises(InputError, match="one direction"):
        encode(model, b"she sells")


def test_what_the_network_cannot_shorten_stays_as_it_is():
    data = np.random.default_rng(0).bytes(500)
    packed = compress(MODELS["char"], data, run="somewhere", with_model=True)
    assert packed.container.mode == "stored" and packed.container.payload == data
    assert packed.container.run == "" and packed.container.model == b""
    assert decompress(packed.container, None) == data


def test_progress_is_told_to_the_end(trained):
    data, heard = SENTENCE.encode() * 20, []
    made = encode(trained, data, on_progress=lambda *both: heard.append(both))
    decode(
        trained,
        made.payload,
        made.tokens,
        made.mode,
        length=10**6,
        on_progress=lambda *both: heard.append(both),
    )
    assert heard.count((made.tokens, made.tokens)) == 2
    assert all(done <= of == made.tokens for done, of in heard)


def test_a_container_is_read_as_it_was_written(trained):
    kept = compress(trained, SENTENCE.encode(), name="a\udcff é.txt", run="/there").container
    assert Container.from_bytes(kept.to_bytes()) == kept
    assert (kept.name, kept.run, kept.length, kept.tokens) == ("a\udcff é.txt", "/there", 86, 86)


def test_any_damage_to_a_container_is_found(trained):
    content = compress(trained, SENTENCE.encode(), name="a.txt").container.to_bytes()
    for at in range(len(content)):
        changed = content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :]
        with pytest.raises(FileError):
            Container.from_bytes(changed)
        with pytest.raises(FileError):
            Container.from_bytes(content[:at])
    with pytest.raises(FileError, match="cut short"):
        Container.from_bytes(content + b"\0")
    with pytest.raises(FileError, match="install a later one"):
        Container.from_bytes(content[:8] + bytes([VERSION + 1]) + content[9:])


@given(st.binary(max_size=90))
def test_a_container_of_any_bytes_is_read_or_refused(fields):
    content = MARK + bytes([VERSION]) + fields
    content += zlib.crc32(content).to_bytes(4, "big")
    try:
        kept = Container.from_bytes(content)
    except FileError:
        return
    assert Container.from_bytes(kept.to_bytes()) == kept


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 255), st.integers(0, 200))
def test_a_wrong_payload_never_comes_out_as_a_file(at, by, tokens):
    model, data = MODELS["char, some unknown"], SENTENCE.encode() * 2
    kept = compress(model, data).container
    at %= len(kept.payload)
    payload = kept.payload[:at] + bytes([kept.payload[at] ^ by]) + kept.payload[at + 1 :]
    for wrong in (replace(kept, payload=payload), replace(kept, tokens=tokens)):
        with suppress(FileError):
            assert decompress(wrong, model) == data  # the last bits of a payload may have several values


def test_another_model_is_refused():
    kept = compress(MODELS["char"], SENTENCE.encode() * 3).container
    for other in (
        model_of(seed=2),
        model_of(text=SENTENCE + "s" * 9),
        model_of(backward=True),
        model_of(hidden=13),
    ):
        with pytest.raises(InputError, match="another model"):
            decompress(kept, other)
    with pytest.raises(InputError, match="expected the model that compressed the file"):
        decompress(kept, None)
    assert identity(model_of()) == identity(MODELS["char"])
    assert identity(model_of(dropout=0.5)) == identity(MODELS["char"])  # no bit depends on it here


@pytest.mark.parametrize("kind", ["char", "byte", "subword:300"])
def test_a_container_can_carry_its_model(kind):
    data, model = SENTENCE.encode() * 9, model_of(kind, backward=True)
    model.model.parameters["c"][1:25] = 5  # the frequent ones
    one, two = (compress(model, data, run="/there", with_model=True).container for _ in range(2))
    assert one == two and one.mode == "network" and one.run == ""
    again = Container.from_bytes(one.to_bytes())
    assert decompress(again, model_within(again)) == data
    with pytest.raises(FileError, match="model in it"):
        model_within(replace(one, model=one.model[:-30]))


@given(st.lists(st.integers(0, 40), max_size=200))
def test_counts_are_sums_of_what_came(places):
    counts, came = Counts(), list[int]()
    for wanted in places:
        place = min(wanted, len(came))
        if place == len(came):
            came.append(0)
        came[place] += 1
        counts.add(place)
    assert (len(counts), counts.total) == (len(came), sum(came))
    assert [counts.before(i) for i in range(len(came) + 1)] == [sum(came[:i]) for i in range(len(came) + 1)]
    assert [counts.at(point) for point in range(sum(came))] == [
        i for i, n in enumerate(came) for _ in range(n)
    ]


def test_a_long_text_does_not_keep_the_frequencies_of_every_window():
    model = model_of(text=SENTENCE + "".join(map(chr, range(0x4E00, 0x4F90))))
    data = SENTENCE.encode() * 400
    tracemalloc.start()
    encode(model, data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < len(data) * 8 * len(model.vocab) / 2


def test_more_tokens_than_bytes_are_refused_at_once():
    model = model_of()
    kept = compress(model, SENTENCE.encode() * 3).container
    with pytest.raises(FileError, match="more tokens than bytes"):
        decompress(replace(kept, mode="network", tokens=2**40), model)


def test_a_file_that_does_not_fit_into_memory_is_refused_before_it_is_coded(monkeypatch):
    model = TextModel(
        Model.initialise(ModelConfig(cell="elman", inputs=5, outputs=5, hidden=4), seed=0),
        Vocab(list("abcd")),
        make_tokenizer("char"),
        TextConfig(),
    )
    monkeypatch.setattr("unspool.kernels.memory.available", lambda: 2**25)
    with pytest.raises(InputError, match=r"compressing 200,000 bytes needs about 0.1 GiB of memory"):
        compress(model, b"abcd" * 50_000)


LEARNING = Learning(learn_rate=0.01, learn_segment=8)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("data", [*STRANGE, SENTENCE.encode() * 3], ids=range(len(STRANGE) + 1))
def test_any_file_comes_back_from_a_model_that_learns(name, data):
    coded = encode(MODELS[name], data, learning=LEARNING)
    back = decode(MODELS[name], coded.payload, coded.tokens, coded.mode, length=len(data), learning=LEARNING)
    assert back == data
    packed = compress(MODELS[name], data, learning=LEARNING)
    assert decompress(Container.from_bytes(packed.container.to_bytes()), MODELS[name]) == data


@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("cell", CELLS)
def test_every_kernel_learns_to_the_same_bytes(cell, precision):
    model = model_of(cell=cell, precision=precision)
    data, before = SENTENCE.encode() * 5, native.kernel_info()
    expected = compress(model, data, learning=LEARNING).container.to_bytes()
    try:
        for isa, threads in product(before["available"], (1, 2)):
            native.choose_isa(isa)
            native.set_threads(threads)
            assert compress(model, data, learning=LEARNING).container.to_bytes() == expected
            assert decompress(Container.from_bytes(expected), model) == data
    finally:
        native.choose_isa(before["isa"])
        native.set_threads(before["threads"])


def test_learning_makes_a_file_smaller_and_its_container_says_how():
    model, data = MODELS["char"], SENTENCE.encode() * 20
    plain, learned = compress(model, data).container, compress(model, data, learning=LEARNING).container
    assert len(learned.payload) < len(plain.payload) / 2
    assert plain.to_bytes()[len(MARK)] == 1 and learned.to_bytes()[len(MARK)] == VERSION
    assert Container.from_bytes(learned.to_bytes()) == learned and learned.learning == LEARNING
    assert Container.from_bytes(plain.to_bytes()).learning is None
    stored = compress(model, b"\xff", learning=LEARNING).container
    assert stored.mode == "stored" and stored.to_bytes()[len(MARK)] == 1


def test_a_way_of_learning_that_is_not_known_is_refused():
    learned = compress(MODELS["char"], SENTENCE.encode() * 4, learning=LEARNING).container
    content = learned.to_bytes()[:-4]
    for old, new in ((b"\x07rmsprop", b"\x07rnsprop"), (b"\x03\x00\x01\x08", b"\x03\x00\x01\x00")):
        assert content.count(old) == 1
        forged = content.replace(old, new)
        with pytest.raises(FileError, match="how its model learns"):
            Container.from_bytes(forged + zlib.crc32(forged).to_bytes(4, "big"))
