"""Files coded byte by byte with a run and counts: round trips, probabilities, when the run is used, damaged files."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from compress_cases import MODELS, SENTENCE, files, model_of
from unspool import LanguageModel
from unspool.baselines.kneser_ney_smoothing import kneser_ney
from unspool.baselines.mixture import fit_mixture
from unspool.baselines.ngram_counts import count_ngrams
from unspool.compress import adaptive, codec, compress_adaptive, decompress, model_within
from unspool.compress.adaptive import Run, decode_adaptive, encode_adaptive
from unspool.compress.coding import tokens_and_ids
from unspool.compress.container import MARK, Container
from unspool.compress.integer_frequencies import frequencies
from unspool.compress.next_byte import ByteTree, RunReader
from unspool.errors import Diverged, FileError, InputError
from unspool.evaluation.language import log_prob
from unspool.kernels import native
from unspool.tasks.language.text_model import TextModel
from unspool.training.dynamic import Learning, LearningReader

LEARNING = Learning(learn_rate=0.01, learn_segment=8)
CHARACTERS = {
    name: model for name, model in MODELS.items() if name.startswith(("char", "byte")) and not model.backward
}


def with_ngrams(model: TextModel, text: str = SENTENCE * 9) -> TextModel:
    """A model with 3-grams of a text."""
    ids = tokens_and_ids(model, text.encode())[1]
    ngrams = kneser_ney(count_ngrams(ids, K=len(model.vocab), order=3))
    return replace(model, mixture=fit_mixture(ngrams, ids, log_prob(model.model, ids)))


MODELS_AND_MIXTURES = CHARACTERS | {
    f"{name}, n-grams": with_ngrams(each) for name, each in CHARACTERS.items() if "all" not in name
}


@pytest.fixture(scope="module")
def trained() -> TextModel:
    made = LanguageModel(hidden=32, batch_size=4, window=32, steps=150, learning_rate=0.01, dropout=0.0)
    return with_ngrams(made.fit(SENTENCE * 60).text_model_)


def coded(run: Run, data: bytes, block: int = 48) -> bytes:
    """Bytes coded with a run, whether it makes them smaller or not."""
    candidate = adaptive._Candidate(len(data), run=run)
    for begin in range(0, len(data), block):
        candidate.encode(data[begin : begin + block])
    return candidate.finish().payload


def run_of(model: TextModel, learning: Learning = LEARNING) -> Run:
    return Run(model, learning, model.mixture is not None)


@pytest.mark.parametrize("name", MODELS_AND_MIXTURES)
def test_files_of_all_kinds_come_back(name: str) -> None:
    run = run_of(MODELS_AND_MIXTURES[name])
    for data in [*files()[::25], b"", b"\xff", b"\xe6\x97", SENTENCE.encode() * 3]:
        assert decode_adaptive(coded(run, data), len(data), run=run) == data


@settings(max_examples=40, deadline=None)
@given(data=st.one_of(st.binary(max_size=50), st.text(max_size=30).map(str.encode)), block=st.integers(1, 20))
@example(data=b"\xe6\x97\xe6\x97\xb6\xe6A\xf0\x9f\x90\xc3\xa9", block=1)
@example(data=b"\xed\xa0\x80\xed\xb0\x80 \xf4\x90\x80\x80 \xc0\x80", block=3)
def test_bytes_are_predicted_alike_at_both_ends(data: bytes, block: int) -> None:
    run = run_of(MODELS_AND_MIXTURES["char, some unknown, n-grams"])
    encoding, decoding, at = run.reader(), run.reader(), 0
    parts = [
        part for begin in range(0, len(data), block) for part in _parts(encoding, data[begin : begin + block])
    ]
    for part, sums in [*parts, *encoding.rest()]:
        for i, byte in enumerate(part):
            assert byte == data[at]
            assert (decoding.next_sums()[0] == sums[i]).all()
            decoding.read(byte)
            at += 1
    assert at == len(data)


def _parts(reader: RunReader, block: bytes) -> list[tuple[bytes, np.ndarray]]:
    return list(reader.sums_of(block))


def test_the_first_prediction_is_that_of_the_network_after_the_start() -> None:
    model = MODELS["char"]
    network = LearningReader(model.model, LEARNING)
    network.read(model.start("")[-1])
    f = frequencies(network.logits())
    sums = RunReader(model, LEARNING, None).next_sums()[0]
    assert not sums[1].any()
    for token, index in model.vocab.token_to_idx.items():
        if len(token.encode()) == 1:
            share = int(sums[0][ord(token) + 1] - sums[0][ord(token)])
            assert abs(share - 1 - int(f[index]) / 16) < 1


def test_the_bytes_of_a_character_share_its_probability() -> None:
    f = np.array([7, 1600, 3200, 160, 320, 480]) << 20
    tokens = ["", "a", "é", "ê", "時", "旧"]
    tree = ByteTree([each.encode() for each in tokens])
    row = tree.cumulative(f)
    for token, share in zip(tokens[1:], (f[1:] / f[1:].sum()).tolist(), strict=True):
        p = 1.0
        for i, byte in enumerate(token.encode()):
            sums = tree.sums(row, token.encode()[:i])
            p *= int(sums[byte + 1] - sums[byte]) / int(sums[256])
        assert p == pytest.approx(share, rel=1e-4)  # but for 256 other bytes


@pytest.mark.parametrize("name", ["char, n-grams", "byte"])
def test_the_bytes_are_the_same_on_every_instruction_set_and_thread_count(name: str) -> None:
    run, data, before = (
        run_of(MODELS_AND_MIXTURES[name]),
        (SENTENCE * 2).encode() + b"\xe6\xff\0",
        native.kernel_info(),
    )
    expected = coded(run, data)
    try:
        for isa, threads in product(before["available"], (1, 3)):
            native.choose_isa(isa)
            native.set_threads(threads)
            assert coded(run, data, 100) == expected
            assert decode_adaptive(expected, len(data), run=run) == data
    finally:
        native.choose_isa(before["isa"])
        native.set_threads(before["threads"])


def test_a_run_makes_text_of_its_kind_clearly_smaller_and_says_so(trained: TextModel) -> None:
    data = ("she shells the sea; the sea shells she.\n" * 2 + SENTENCE).encode()
    alone = compress_adaptive(data)
    container = compress_adaptive(data, model=trained, run="../run", name="a")
    assert len(container.payload) < 0.6 * len(alone.payload)
    assert container.needs_model and not alone.needs_model
    assert (container.mode, container.mixture, container.run) == ("adaptive", True, "../run")
    assert Container.from_bytes(container.to_bytes()) == container
    assert decompress(container, trained) == data


def test_a_run_that_does_not_help_is_not_used(trained: TextModel) -> None:
    data = bytes(range(0, 250, 3)) * 30
    for model in (trained, MODELS["subword"], MODELS["char, backward"]):
        container = compress_adaptive(data, model=model, learning=LEARNING, run="../run", with_model=True)
        assert container == compress_adaptive(data)
        assert decompress(container) == data


@pytest.mark.parametrize(("kind", "backward"), [("subword:300", False), ("jieba", False), ("char", True)])
def test_other_tokens_are_coded_as_tokens(kind: str, backward: bool) -> None:
    model, data = model_of(kind, backward=backward), SENTENCE.encode()
    model.model.parameters["c"][np.unique(tokens_and_ids(model, data)[1])] = 9  # knows which tokens there are
    container = compress_adaptive(data, model=model, learning=LEARNING, run="r")
    assert container.mode in ("network", "counted")
    assert container.needs_model
    assert decompress(Container.from_bytes(container.to_bytes()), model) == data


def test_the_rate_is_chosen_on_the_first_tokens(trained: TextModel) -> None:
    short = compress_adaptive(SENTENCE.encode(), model=trained)
    assert short.learning == Learning()  # too few tokens
    found = codec._run_of(trained, (SENTENCE * 40).encode(), None)
    assert found is not None and found.learning.learn_segment == Learning().learn_segment
    given = compress_adaptive(SENTENCE.encode(), model=trained, learning=LEARNING)
    assert given.learning == LEARNING


def test_a_run_that_diverges_is_not_used(trained: TextModel, monkeypatch: pytest.MonkeyPatch) -> None:
    data = SENTENCE.encode() * 3

    def diverge(*_: object, **__: object) -> None:
        raise Diverged("the loss is nan")

    monkeypatch.setattr(LearningReader, "windows", diverge)
    assert encode_adaptive(data, Run(trained, LEARNING, False)).run is None
    monkeypatch.undo()
    monkeypatch.setattr(codec, "choose_learning", diverge)
    assert compress_adaptive(data, model=trained) == compress_adaptive(data)


def test_the_model_can_be_stored_with_the_file(trained: TextModel) -> None:
    data = SENTENCE.encode() * 2
    container = compress_adaptive(data, model=trained, with_model=True, run="../run")
    assert container.run == "" and container.model
    assert decompress(container, model_within(container)) == data


def test_another_model_or_a_damaged_file_is_refused(trained: TextModel) -> None:
    data = SENTENCE.encode() * 2
    container = compress_adaptive(data, model=trained, learning=LEARNING)
    with pytest.raises(InputError, match="model is None"):
        decompress(container)
    with pytest.raises(InputError, match="another model"):
        decompress(container, with_ngrams(MODELS["char"]))
    with pytest.raises(InputError, match="loaded with mixture=True"):
        decompress(container, replace(trained, mixture=None))
    for at in range(0, len(container.payload), 7):
        payload = bytearray(container.payload)
        payload[at] ^= 1 << at % 8
        with pytest.raises(FileError, match="hash of the original"):
            decompress(replace(container, payload=bytes(payload)), trained)
    content = bytearray(container.to_bytes()[:-4])
    kind = len(MARK) + 2
    assert content[kind] == 7
    content[kind] = 6
    with pytest.raises(FileError, match="install a later one"):
        Container.from_bytes(bytes(content) + zlib.crc32(content).to_bytes(4, "big"))


def test_progress_goes_to_the_end(trained: TextModel) -> None:
    seen, back, data = list[tuple[int, int]](), list[tuple[int, int]](), SENTENCE.encode() * 60
    container = compress_adaptive(
        data, model=trained, learning=LEARNING, on_progress=lambda *at: seen.append(at)
    )
    decompress(container, trained, on_progress=lambda *at: back.append(at))
    assert seen == back == [(4096, len(data)), (len(data), len(data))]


def test_an_embedded_precision_is_kept() -> None:
    model = model_of(precision="bf16")
    container = compress_adaptive(SENTENCE.encode() * 40, model=model, learning=LEARNING)
    again = Container.from_bytes(container.to_bytes())
    assert again == container
    if again.needs_model:
        assert again.precision == "bf16"
        with pytest.raises(InputError, match="in bf16, and this one is in float32"):
            decompress(again, model_of())
    assert decompress(again, model) == SENTENCE.encode() * 40


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("char", "cd13ecddb5f9c6e8"),
        ("char, n-grams", "124f0d7336190550"),
        ("byte, n-grams", "cb53e75e1c50f398"),
    ],
)
def test_the_bytes_of_a_run_are_those_of_earlier_versions(name: str, expected: str) -> None:
    """If these change, so do the files of users: give such files another kind in the container."""
    data = SENTENCE.encode() * 2 + bytes(range(0, 256, 5))
    assert hashlib.sha256(coded(run_of(MODELS_AND_MIXTURES[name]), data)).hexdigest()[:16] == expected
