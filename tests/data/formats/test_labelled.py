"""Sequences with labels from tables, folders, .npz and .ts; tags, pairs and idx arrays."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from unspool.data.formats.idx import read_idx, read_images
from unspool.data.formats.labelled import read_classes, read_labelled
from unspool.data.formats.npz import read_ragged, write_ragged
from unspool.data.formats.pairs import read_pairs
from unspool.data.formats.tagged import read_tagged
from unspool.data.formats.ts import read_ts
from unspool.errors import EmptyInput, FileError, InputError


def written(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def test_a_table_has_a_text_and_a_label_column(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", 'id,words,kind\n1,"yes, it is",good\n2,no,bad\n')
    found = read_labelled(path, text="words", label="kind")
    assert found.sequences == ["yes, it is", "no"]
    assert (found.labels, found.classes, found.is_text) == (["good", "bad"], ["bad", "good"], True)
    assert found.locations[1] == f"{path}: row 2 (line 3)"
    with pytest.raises(InputError, match="no column 'label'; there are 'id', 'words', 'kind'"):
        read_labelled(path, text="words")
    assert read_labelled(path, text="words", need_labels=False).labels is None
    with pytest.raises(InputError, match="no column 'sort'"):
        read_labelled(path, text="words", label="sort", need_labels=False)


def test_an_empty_label_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "text,label\na,x\nb, \n")
    with pytest.raises(InputError, match=r"row 2 \(line 3\), column 'label': the label is missing"):
        read_labelled(path)


def test_a_folder_has_a_file_a_class(tmp_path: Path) -> None:
    written(tmp_path / "b.txt", "Ünal\r\n\r\n Öz \r\n")
    (tmp_path / "a.b.txt.gz").write_bytes(gzip.compress(b"one\n"))
    written(tmp_path / ".hidden.txt", "x")
    written(tmp_path / "notes.md", "x")
    found = read_labelled(tmp_path)
    assert (found.sequences, found.labels) == (["one", "Ünal", "Öz"], ["a.b", "b", "b"])
    assert found.locations[-1].endswith("b.txt: line 3")
    written(tmp_path / "c.txt", "\n")
    with pytest.raises(EmptyInput, match="a class without an example"):
        read_classes(tmp_path)
    with pytest.raises(FileError, match="no such folder"):
        read_classes(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(EmptyInput, match="no class in it"):
        read_classes(tmp_path / "empty")


@pytest.mark.parametrize("labels", [None, ["x", "y", "x"], np.array([3, 1, 3])])
def test_arrays_of_different_lengths_come_back(tmp_path: Path, labels: object) -> None:
    rng = np.random.default_rng(1)
    sequences = [rng.standard_normal((n, 2)) for n in (3, 0, 5)]
    write_ragged(tmp_path / "a.npz", sequences, labels)
    found = read_ragged(tmp_path / "a.npz")
    assert all((a == b).all() and a.shape == b.shape for a, b in zip(sequences, found.sequences, strict=True))
    assert found.labels == (None if labels is None else [str(label) for label in labels])


def test_whole_numbers_stay_tokens_and_real_ones_get_a_channel(tmp_path: Path) -> None:
    write_ragged(tmp_path / "a.npz", [np.array([1, 2]), np.array([3])])
    assert read_ragged(tmp_path / "a.npz").sequences[0].tolist() == [1, 2]
    write_ragged(tmp_path / "a.npz", [np.array([1.0, 2.0]), np.array([3.0])])
    assert read_ragged(tmp_path / "a.npz").sequences[0].shape == (2, 1)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"lengths": [1]}, "no array 'values'"),
        ({"values": [1.0], "lengths": [2]}, "lengths add up to 2, but values has 1 rows"),
        ({"values": [1.0], "lengths": [-1, 2]}, "whole numbers of 0 or more"),
        ({"values": [1.0, np.nan], "lengths": [2]}, "sequence 1, step 2: the value is nan"),
        ({"values": [1.0], "lengths": [1], "labels": [1, 2]}, "expected 1 whole numbers or strings"),
        ({"values": [1.0], "lengths": [1], "other": [1]}, "an array 'other'"),
        ({"values": ["a"], "lengths": [1]}, "expected numbers, N X or N"),
    ],
)
def test_an_npz_of_another_layout_is_refused(tmp_path: Path, arrays: dict, message: str) -> None:
    np.savez(tmp_path / "a.npz", **{key: np.array(value) for key, value in arrays.items()})
    with pytest.raises(InputError, match=message):
        read_ragged(tmp_path / "a.npz")


def test_an_npz_with_objects_or_damage_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", values=np.array([{}], object), lengths=np.array([1]))
    with pytest.raises(InputError, match="an array of objects in it"):
        read_ragged(tmp_path / "a.npz")
    (tmp_path / "a.npz").write_bytes(b"PK\x03\x04 no zip")
    with pytest.raises(FileError, match=r"cannot be read as \.npz"):
        read_ragged(tmp_path / "a.npz")
    with pytest.raises(FileError, match="no such file"):
        read_ragged(tmp_path / "none.npz")


HEADER = "# about\n@problemName T\n@timestamps false\n@Dimensions 2\n@classLabel true a b\n@data\n"


def test_a_ts_file_has_dimensions_and_labels(tmp_path: Path) -> None:
    path = written(tmp_path / "a.ts", HEADER + "1,2,3:4,5,6:a\n\n-1e3:?:b\n")
    with pytest.raises(InputError, match="line 9, dimension 2, value 1: the value is missing"):
        read_ts(path)
    found = read_ts(path, missing="nan")
    assert found.sequences[0].tolist() == [[1, 4], [2, 5], [3, 6]]
    assert found.sequences[1][0, 0] == -1000 and np.isnan(found.sequences[1][0, 1])
    assert found.labels == ["a", "b"]
    assert found.locations == [f"{path}: line 7", f"{path}: line 9"]
    assert read_labelled(path, missing="nan").labels == ["a", "b"]


def test_a_ts_file_without_labels_is_for_prediction(tmp_path: Path) -> None:
    path = written(tmp_path / "a.ts", "@classLabel false\n@data\n1,2\n3\n")
    assert [len(each) for each in read_ts(path).sequences] == [2, 1]
    assert read_labelled(path, need_labels=False).labels is None
    with pytest.raises(InputError, match="no labels"):
        read_labelled(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1:2:c", "line 7: label 'c'; @classLabel has a, b"),
        ("1:a", "line 7 has 1 dimensions; @dimensions says 2"),
        ("1,2:3:a", "line 7: dimension 2 has 1 values, dimension 1 has 2"),
        ("1,x:3,4:a", "line 7, dimension 1, value 2: expected a finite number, got 'x'"),
    ],
)
def test_what_is_wrong_in_a_ts_file_is_named(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_ts(written(tmp_path / "a.ts", HEADER + line + "\n"))


def test_a_file_that_is_no_ts_is_said_so(tmp_path: Path) -> None:
    for content, message in [("1,2\n", "expected @data"), ("# x\n", "no @data")]:
        with pytest.raises(InputError, match=message):
            read_ts(written(tmp_path / "a.ts", content))
    with pytest.raises(InputError, match="@timestamps true"):
        read_ts(written(tmp_path / "a.ts", "@timestamps true\n@data\n(1,2)\n"))
    with pytest.raises(EmptyInput):
        read_ts(written(tmp_path / "a.ts", "@data\n"))


def test_columns_have_blank_lines_between_sequences(tmp_path: Path) -> None:
    path = written(tmp_path / "a.conll", "-DOCSTART- X O\n\nEU NNP B\nrejects VB O\n\n\n# NN O\n")
    found = read_tagged(path)
    assert (found.tokens, found.tags) == ([["EU", "rejects"], ["#"]], [["B", "O"], ["O"]])
    assert found.lines == [[3, 4], [7]]
    assert read_tagged(path, tag=1).tags == [["NNP", "VB"], ["NN"]]
    with pytest.raises(InputError, match="no column 5; there are 3"):
        read_tagged(path, tag=5)


def test_columns_between_tabs_may_have_comments_and_blanks(tmp_path: Path) -> None:
    path = written(tmp_path / "a.conll", "# text = New York\nNew York\tPLACE\n\nin\tO\n")
    found = read_tagged(path)
    assert (found.tokens, found.tags) == ([["New York"], ["in"]], [["PLACE"], ["O"]])
    with pytest.raises(InputError, match="line 2 has 3 columns; the first token has 2"):
        read_tagged(written(tmp_path / "b.conll", "a b\nc d e\n"))
    with pytest.raises(InputError, match="one column only"):
        read_tagged(written(tmp_path / "b.conll", "a\nb\n"))
    assert read_tagged(tmp_path / "b.conll", need_tags=False).tags is None


def test_a_table_may_have_tags(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "s,token,tag\n1,a,X\n,b,Y\n2,c,X\n2,d,Y\n1,e,X\n")
    found = read_tagged(path, sequence="s")
    assert (found.tokens, found.tags) == ([["a", "b"], ["c", "d"], ["e"]], [["X", "Y"], ["X", "Y"], ["X"]])
    with pytest.raises(InputError, match="no column 'sequence'"):
        read_tagged(path)
    with pytest.raises(InputError, match=r"row 2 \(line 3\), column 'tag': the tag is missing"):
        read_tagged(written(path, "sequence,token,tag\n1,a,X\n1,b,\n"))


def test_pairs_have_a_tab_between(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", 'he said "go"\tgeh\r\n\n b \tc d\n')
    found = read_pairs(path)
    assert (found.sources, found.targets, found.lines) == (['he said "go"', "b"], ["geh", "c d"], [1, 3])
    for content, message in [
        ("a\tb\nc\n", "line 2 has 1 columns; the first pair has 2"),
        ("a\tb\tc\n", "3 columns; choose the two"),
        ("a\t \n", "line 1, column 2: empty"),
        ("a\n", "line 1 has no column 2"),
    ]:
        with pytest.raises(InputError, match=message):
            read_pairs(written(path, content))
    assert read_pairs(path, need_targets=False).targets is None
    assert read_pairs(written(path, "a\tb\tc\n"), columns=(2, 0)).sources == ["c"]


@pytest.mark.parametrize("dtype", [">u1", ">i1", ">i2", ">i4", ">f4", ">f8"])
def test_idx_arrays_come_back(tmp_path: Path, dtype: str) -> None:
    kinds = {">u1": 8, ">i1": 9, ">i2": 11, ">i4": 12, ">f4": 13, ">f8": 14}
    values = np.arange(24).reshape(2, 3, 4).astype(dtype)
    content = bytes([0, 0, kinds[dtype], 3]) + np.array([2, 3, 4], ">u4").tobytes() + values.tobytes()
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(content))
    found = read_idx(path)
    assert (found == values).all() and found.dtype == np.dtype(dtype).newbyteorder("=")
    path.write_bytes(content[:-1])
    with pytest.raises(InputError, match=r"do not hold an array of shape \(2, 3, 4\)"):
        read_idx(path)


def test_pictures_and_labels_go_together(tmp_path: Path) -> None:
    images, labels = tmp_path / "i", tmp_path / "l"
    images.write_bytes(bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4]))
    labels.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]))
    x, y = read_images(images, labels)
    assert x.tolist() == [[[1, 2]], [[3, 4]]] and y.tolist() == [7, 9]
    labels.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 1, 7]))
    with pytest.raises(InputError, match=r"2 images, but .* has 1 labels"):
        read_images(images, labels)
    with pytest.raises(InputError, match="expected n images"):
        read_images(labels, labels)
    labels.write_bytes(b"text")
    with pytest.raises(InputError, match="not an idx file"):
        read_idx(labels)
