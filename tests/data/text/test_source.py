"""Sources: files, folders, pipes, gzip, line ends, and what is wrong with them."""

import gzip
import io
import sys
from pathlib import Path

import pytest

from unspool.data.text.decoding import iter_bytes, iter_text, read_text
from unspool.data.text.source import BLOCK, fingerprint, resolve
from unspool.errors import EmptyInput, FileError, InputError


def write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_text_of_any_language_comes_as_it_is(tmp_path: Path) -> None:
    text = "Zeit — 时间 — время — ⏳\n"
    assert read_text(write(tmp_path, "a", text.encode())) == text


def test_characters_cut_by_the_edge_of_a_block_are_whole(tmp_path: Path) -> None:
    for shift in range(4):
        text = "a" * (BLOCK - shift) + "時𐍈é" * 5
        assert read_text(write(tmp_path, "a", text.encode())) == text


def test_a_byte_order_mark_is_dropped_from_text_and_kept_in_bytes(tmp_path: Path) -> None:
    path = write(tmp_path, "a", b"\xef\xbb\xbfx")
    assert read_text(path) == "x"
    assert b"".join(iter_bytes(resolve(path))) == b"\xef\xbb\xbfx"
    with pytest.raises(EmptyInput):
        read_text(write(tmp_path, "only", b"\xef\xbb\xbf"))


def test_line_ends_are_kept_or_made_one(tmp_path: Path) -> None:
    path = write(tmp_path, "a", b"1\r\n2\r3\n4\r")
    assert read_text(path) == "1\r\n2\r3\n4\r"
    assert read_text(path, newlines="lf") == "1\n2\n3\n4\n"
    assert b"".join(iter_bytes(resolve(path), newlines="lf")) == b"1\n2\n3\n4\n"


def test_a_line_end_cut_by_the_edge_of_a_block_is_one_line_end(tmp_path: Path) -> None:
    path = write(tmp_path, "a", b"x" * (BLOCK - 1) + b"\r\ny")
    assert read_text(path, newlines="lf") == "x" * (BLOCK - 1) + "\ny"
    assert b"".join(iter_bytes(resolve(path), newlines="lf")) == b"x" * (BLOCK - 1) + b"\ny"


def test_gzip_is_read_whatever_its_name(tmp_path: Path) -> None:
    assert read_text(write(tmp_path, "packed", gzip.compress("né".encode()))) == "né"


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-12], lambda data: data[:15] + b"\x00\xff" + data[17:]]
)
def test_damaged_gzip_is_an_error_that_names_the_file(tmp_path: Path, damage: object) -> None:
    data = gzip.compress(bytes(range(256)) * 40)
    with pytest.raises(FileError, match=r"bad\.gz: damaged gzip"):
        list(iter_bytes(resolve(write(tmp_path, "bad.gz", damage(data)))))  # type: ignore[operator]


def test_a_folder_is_its_text_files_sorted_without_hidden_ones(tmp_path: Path) -> None:
    write(tmp_path, "b.txt", b"2")
    write(tmp_path, "a/z.md", b"1")
    write(tmp_path, "c.txt.gz", gzip.compress(b"3"))
    write(tmp_path, "picture.png", b"no")
    write(tmp_path, ".hidden/d.txt", b"no")
    assert read_text(tmp_path) == "123"


def test_several_sources_follow_one_another(tmp_path: Path) -> None:
    one, two = write(tmp_path, "1", b"ab"), write(tmp_path, "2", b"cd")
    assert read_text([one, two]) == "abcd"
    assert "".join(iter_text(resolve([two, one]))) == "cdab"


def test_standard_input_can_be_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("täxt".encode())))
    sources = resolve("-")
    assert "".join(iter_text(sources)) == "".join(iter_text(sources)) == "täxt"
    with pytest.raises(InputError, match="only once"):
        resolve(["-", "-"])


def test_builtin_corpora_are_text() -> None:
    assert "assert" in read_text("builtin:python-docs")
    sources = resolve("builtin:python-source")
    assert len(sources) > 100
    assert "def " in next(iter_text(sources[:1]))
    with pytest.raises(InputError, match="python-docs"):
        resolve("builtin:nothing")


def test_a_byte_that_is_not_utf8_is_named_with_file_and_offset_and_remedy(tmp_path: Path) -> None:
    path = write(tmp_path, "bad.txt", b"\xef\xbb\xbf" + b"a" * BLOCK + b"\xff rest")
    with pytest.raises(
        InputError, match=rf"bad\.txt: byte 0xff at offset {BLOCK + 3:,} .*errors='replace'.*tokens='byte'"
    ):
        read_text(path)
    assert read_text(path, errors="replace") == "a" * BLOCK + "\ufffd rest"


def test_a_character_that_stops_in_the_middle_is_not_utf8(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="offset 1 "):
        read_text(write(tmp_path, "a", b"x\xe6\x97"))


def test_utf16_is_recognised(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="looks like UTF-16"):
        read_text(write(tmp_path, "a", "text".encode("utf-16")))


def test_nothing_to_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EmptyInput, match="empty"):
        read_text(write(tmp_path, "empty", b""))
    with pytest.raises(EmptyInput, match="without text"):
        resolve(tmp_path)
    with pytest.raises(FileError, match="no such file"):
        resolve(tmp_path / "absent")
    with pytest.raises(EmptyInput, match="no source"):
        resolve([])


@pytest.mark.parametrize("wrong", [{"errors": "ignore"}, {"newlines": "cr"}])
def test_unknown_ways_of_reading_are_refused(tmp_path: Path, wrong: dict[str, str]) -> None:
    with pytest.raises(InputError, match="expected"):
        read_text(write(tmp_path, "a", b"x"), **wrong)


def test_the_fingerprint_tells_content_and_borders(tmp_path: Path) -> None:
    ab, c = write(tmp_path, "1", b"ab"), write(tmp_path, "2", b"c")
    a, bc = write(tmp_path, "3", b"a"), write(tmp_path, "4", b"bc")
    prints = {fingerprint(resolve(names)) for names in ([ab, c], [a, bc], [c, ab], [ab])}
    assert len(prints) == 4
    assert fingerprint(resolve([ab, c])) in prints
