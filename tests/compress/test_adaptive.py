"""Files through a model that starts from nothing and back: any bytes, the same bits everywhere, damaged files refused."""

import math
import random
import threading
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compress_cases import files
from unspool.compress import adaptive, compress_adaptive, decompress
from unspool.compress.adaptive import (
    ByteReader,
    decode_adaptive,
    encode_adaptive,
    hidden_units,
    memory_of,
    table_bits,
    tables,
)
from unspool.compress.container import Container
from unspool.compress.integer_frequencies import frequencies
from unspool.errors import FileError, InputError
from unspool.kernels import byte_tables, native, reference_bytes
from unspool.kernels.machine import choose_isa, kernel_info, set_threads

PROJECT = Path(__file__).parents[2]


def test_200_files_of_all_kinds_come_back() -> None:
    every = files()
    assert len(every) >= 200
    for data in every:
        container = Container.from_bytes(compress_adaptive(data, name="a").to_bytes())
        assert decompress(container) == data
        assert len(container.payload) <= len(data)


def test_files_come_back_with_a_network_too() -> None:
    for data in [*files()[::9], b"", b"x"]:
        payload, hidden = _network_only(data)
        assert hidden == 5
        assert decode_adaptive(payload, len(data), hidden) == data


def _network_only(data: bytes) -> tuple[bytes, int]:
    candidate = adaptive._Candidate(len(data), 5)
    for begin in range(0, len(data), 48):
        candidate.encode(data[begin : begin + 48])
    return candidate.finish().payload, 5


@pytest.mark.parametrize("bits", [3, 12])
@pytest.mark.parametrize("net", ["none", "network", "network and n-grams"])
def test_the_native_coder_writes_the_bytes_of_the_reference(bits: int, net: str) -> None:
    rng = np.random.default_rng(bits)
    for data in (
        b"",
        b"a",
        b"Time and space, time and Space; time. " * 3 + bytes([0, 255, 128]),
        rng.bytes(40),
    ):
        given = predictions(rng, len(data), net)
        weights = rng.normal(size=32).astype(np.float32) / 4
        mine, theirs = (kind.ByteEncoder(bits, *tables(weights)) for kind in (native, reference_bytes))
        for encoder in (mine, theirs):
            encoder.encode(data[:20], **{name: each[:20] for name, each in given.items()})
            encoder.encode(data[20:], **{name: each[20:] for name, each in given.items()})
        payload = theirs.finish()
        assert mine.size <= len(payload) + 4
        assert mine.finish() == payload
        for kind in (native.ByteDecoder, reference_bytes.ByteDecoder):
            decoder = kind(bits, *tables(weights), payload)
            back = [
                decoder.decode(1, **{name: each[i : i + 1] for name, each in given.items()})
                for i in range(len(data))
            ]
            assert b"".join(back) == data


def predictions(rng: np.random.Generator, n: int, net: str) -> dict[str, np.ndarray]:
    """The arguments of a coder for n bytes; some of them have no n-grams."""
    if net == "none":
        return {}
    if net == "network":
        return {"logits": rng.normal(size=(n, 256)).astype(np.float32) * 4}
    sums = np.zeros((n, 2, 257), np.uint64)
    sums[:, :, 1:] = rng.integers(1, 1 << 30, (n, 2, 256)).cumsum(2)
    sums[::3, 1] = 0
    return {"sums": sums}


def test_the_payload_is_as_long_as_the_probabilities_say() -> None:
    data, model, bits = (
        b"she sells sea shells by the sea shore",
        reference_bytes.ByteModel(12, *tables()),
        0.0,
    )
    for byte in data:
        for k in range(7, -1, -1):
            y, p = byte >> k & 1, model.predict() / 65536
            bits -= math.log2(p if y else 1 - p)
            model.update(y)
    encoder = native.ByteEncoder(12, *tables())
    encoder.encode(data)
    assert abs(8 * len(encoder.finish()) - bits) <= 8


def test_the_bits_of_the_network_are_those_of_its_frequencies() -> None:
    o = np.random.default_rng(1).normal(size=256).astype(np.float32) * 5
    model, f = reference_bytes.ByteModel(4, *tables()), frequencies(o)
    model.set_network(o)
    assert model.network[1:] == np.cumsum(f).tolist()


def test_tables_are_the_functions_that_they_stand_for() -> None:
    p = (np.arange(4096) + 0.5) / 4096
    assert np.abs(byte_tables.stretch() - np.log2(p / (1 - p))).max() < 1 / 2048
    x = (np.arange(8192) - 4096) / 256
    assert np.abs(byte_tables.squash() - 65536 / (1 + 2.0**-x)).max() <= 1
    assert (np.diff(byte_tables.squash().astype(int)) >= 0).all()
    assert (np.diff(byte_tables.stretch()) > 0).all()


def test_histories_fit_a_byte_and_are_closed() -> None:
    counts = reference_bytes.all_counts()
    assert len(set(counts)) == len(counts) <= 256
    assert {reference_bytes.after(each, y) for each in counts for y in (0, 1)} <= set(counts)
    sums = [n0 + n1 for n0, n1, _ in counts]
    assert sums == sorted(sums)
    assert reference_bytes.after((9, 0, 0), 1) == (5, 1, 1)  # 2 + 7 // 2 of the zeros are left


@pytest.fixture
def machine() -> object:
    before = kernel_info()
    yield
    choose_isa(before["isa"])
    set_threads(before["threads"])


def test_the_bytes_are_the_same_on_every_instruction_set_and_thread_count(
    machine: object,
) -> None:
    data = (PROJECT / "LICENSE").read_bytes()[:700]
    expected, _ = _network_only(data)
    for isa in kernel_info()["available"]:
        choose_isa(isa)
        for threads in (1, 3):
            set_threads(threads)
            assert _network_only(data)[0] == expected
            assert decode_adaptive(expected, len(data), 5) == data


def test_the_first_weights_do_not_depend_on_numpys_generators() -> None:
    flat = ByteReader(8).model.parameters["layer0.U"]
    raw = [int(each) >> 40 for each in np.random.PCG64(8).random_raw(3)]
    assert flat.reshape(-1)[:3].tolist() == [float(np.float32(0.5 * (each / 2**23 - 1))) for each in raw]
    assert raw == [5485684, 16563756, 5347080]


def test_the_past_does_not_depend_on_the_future() -> None:
    begin = b"It was the best of times, it was the worst of times. " * 8
    sizes = []
    for end in (b"It was", bytes(range(200))):
        candidate = adaptive._Candidate(1000, 5)
        candidate.encode(begin)
        sizes.append(candidate.encoder.size)
        candidate.encode(end)
        assert decode_adaptive(candidate.encoder.finish(), 1000, 5)[: len(begin)] == begin
    assert sizes[0] == sizes[1]


def test_the_network_is_dropped_where_it_does_not_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaptive, "SIZES", ((1 << 40, 4),))
    monkeypatch.setattr(adaptive, "HEAD", 8192)
    data = random.Random(1).randbytes(3) * 4000  # a match says it all
    coded = encode_adaptive(data)
    assert (coded.hidden, coded.run) == (0, None)
    assert decode_adaptive(coded.payload, len(data), coded.hidden) == data
    letters = (65 + random.Random(i).randrange(20) for i in range(6144))
    assert (
        encode_adaptive(b"".join(bytes([48 + 7 * i % 10, each]) for i, each in enumerate(letters))).hidden
        == 4
    )


def test_progress_goes_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaptive, "BLOCK", 64)
    seen, data = list[tuple[int, int]](), b"time and space " * 20
    container = compress_adaptive(data, on_progress=lambda done, total: seen.append((done, total)))
    assert seen == [(min(at + 64, 300), 300) for at in range(0, 300, 64)]
    back = list[tuple[int, int]]()
    decompress(container, on_progress=lambda done, total: back.append((done, total)))
    assert back == seen


def test_what_would_be_larger_is_stored() -> None:
    for data in (random.Random(3).randbytes(1000), b"", b"?"):
        container = compress_adaptive(data)
        assert container.mode == ("stored" if data != b"?" else container.mode)
        assert len(container.to_bytes()) < len(data) + 60
        assert decompress(container) == data


def test_damaged_payloads_give_bytes_or_an_error_of_ours() -> None:
    rng, data = random.Random(5), b"the sea, the shore, the sea shells; " * 10
    container = compress_adaptive(data)
    for _ in range(40):
        payload = bytearray(container.payload)
        for _ in range(rng.randrange(1, 4)):
            payload[rng.randrange(len(payload))] = rng.randrange(256)
        payload = payload[: rng.randrange(len(payload) + 1)] + rng.randbytes(rng.randrange(3))
        if bytes(payload) == container.payload:
            continue
        with pytest.raises(FileError, match="hash of the original"):
            decompress(replace(container, payload=bytes(payload)))
    assert len(decode_adaptive(rng.randbytes(50), 300, 5)) == 300


def test_crafted_headers_are_refused_before_memory_is_taken() -> None:
    good = compress_adaptive(b"the sea, the shore, the sea shells; " * 10)
    for change in ({"hidden": 1025}, {"hidden": 1 << 40}, {"length": 1 << 32}):
        with pytest.raises(FileError, match="install a later one"):
            Container.from_bytes(replace(good, **change).to_bytes())
    with pytest.raises(FileError, match="bytes of memory are needed"):
        Container.from_bytes(replace(good, length=(1 << 32) - 1).to_bytes())
    for at, value, message in (
        (10, 6, "install a later one"),
        (10, 8, "install a later one"),
        (12, 0, "damaged"),
        (12, 9, "damaged"),
    ):
        content = bytearray(good.to_bytes())
        assert content[10] == 4
        assert content[12] == 3
        content[at] = value
        content[-4:] = zlib.crc32(content[:-4]).to_bytes(4, "big")
        with pytest.raises(FileError, match=message):
            Container.from_bytes(bytes(content))


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(InputError, match="data is a str"):
        compress_adaptive("text")  # type: ignore[arg-type]
    encoder = native.ByteEncoder(4, *tables())
    with pytest.raises(InputError, match="logits has shape"):
        encoder.encode(b"ab", np.zeros((1, 256), np.float32))
    with pytest.raises(InputError, match="not finite"):
        encoder.encode(b"a", np.full((1, 256), np.nan, np.float32))
    with pytest.raises(InputError, match="bits must be"):
        native.ByteEncoder(29, *tables())
    with pytest.raises(InputError, match="one by one"):
        native.ByteDecoder(4, *tables(), b"").decode(2, np.zeros((2, 256), np.float32))
    rising = np.arange(257, dtype=np.uint64) * np.ones((1, 2, 1), np.uint64)
    with pytest.raises(InputError, match="cannot be passed together"):
        encoder.encode(b"a", np.zeros((1, 256), np.float32), rising)
    flat, large, later = rising.copy(), rising.copy(), rising.copy()
    flat[0, 0, 9], large[0, 1, 256] = flat[0, 0, 8], (1 << 47) + 1
    later += np.uint64(1)
    for wrong in (
        flat,
        large,
        later,
        np.zeros_like(rising),
    ):  # without a network, there is nothing to divide by
        with pytest.raises(InputError, match="sums must rise from 0"):
            encoder.encode(b"a", None, wrong)
    with pytest.raises(InputError, match="sums has shape"):
        encoder.encode(b"ab", None, rising)


def test_sizes_rise_with_the_file_and_are_bounded() -> None:
    lengths = [0, 1, 100, 10**4, 10**6, 10**7, 10**9]
    assert [table_bits(n) for n in lengths] == sorted(table_bits(n) for n in lengths)
    assert all(memory_of(n, hidden_units(n)) < 300 << 20 for n in lengths)
    assert hidden_units(100) == 0 < hidden_units(10**9) <= hidden_units(10**6)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e38])
def test_tables_that_would_lead_outside_of_memory_are_refused(wrong: float) -> None:
    stretch, squash, powers, weights = tables()
    with pytest.raises(InputError, match="stretch must hold numbers from -16 to 16"):
        native.ByteEncoder(12, np.full_like(stretch, wrong), squash, powers, weights)
    with pytest.raises(InputError, match="weights must hold numbers from -16 to 16"):
        native.ByteEncoder(12, stretch, squash, powers, np.full_like(weights, wrong))


def test_a_coder_that_is_finished_or_in_use_by_another_thread_is_refused() -> None:
    encoder = native.ByteEncoder(12, *tables())
    encoder.encode(b"abc")
    encoder.finish()
    for call in (encoder.finish, lambda: encoder.encode(b"d"), lambda: encoder.size):
        with pytest.raises(InputError, match="in use by another thread"):
            call()
    shared, data, refused = native.ByteEncoder(12, *tables()), bytes(range(256)) * 200, list[InputError]()

    def encode() -> None:
        for _ in range(5):
            try:
                shared.encode(data)
            except InputError as error:
                refused.append(error)

    threads = [threading.Thread(target=encode) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused and shared.size > 0  # without the check, the process crashes
