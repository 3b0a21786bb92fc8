"""Tables: what is read, and how what cannot be is named."""

import gzip
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unspool.data.formats.table import as_number, read_table
from unspool.errors import EmptyInput, FileError, InputError


def table(tmp_path: Path, content: str | bytes, name: str = "a.csv", **options: str):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_table(path, **options)


def test_quotes_hold_delimiters_quotes_and_line_ends(tmp_path: Path) -> None:
    found = table(tmp_path, 'text,n\r\n"a, ""b""\nc",1\r\n d ,2\r\n')
    assert found.text("text") == ['a, "b"\nc', " d "]
    assert found.numbers("n").tolist() == [1, 2]
    assert found.lines == [3, 4]


def test_a_mark_at_the_beginning_and_gzip_change_nothing(tmp_path: Path) -> None:
    plain = table(tmp_path, "né,b\n1,2\n")
    marked = table(tmp_path, b"\xef\xbb\xbf" + "né,b\n1,2\n".encode())
    packed = table(tmp_path, gzip.compress("né,b\n1,2\n".encode()), "a.csv.gz")
    assert plain.names == marked.names == packed.names == ("né", "b")
    assert plain.rows == marked.rows == packed.rows


@pytest.mark.parametrize(
    ("content", "delimiter"),
    [
        ("a,b\n1,2\n", ","),
        ("a\tb\n1,5\t2\n", "\t"),
        ("a;b\n1,5;2,5\n", ";"),
        ("a|b\n1|2\n", "|"),
        ('a,b\n"x;y;z",2\n', ","),
        ("alone\n1\n", ","),
    ],
)
def test_the_delimiter_is_guessed(tmp_path: Path, content: str, delimiter: str) -> None:
    assert table(tmp_path, content).delimiter == delimiter


def test_the_delimiter_is_given_or_known_by_the_name(tmp_path: Path) -> None:
    assert table(tmp_path, "a,b\n1,2\n", delimiter="tab").names == ("a,b",)
    assert table(tmp_path, "a,b\n1,2\n", "a.tsv").names == ("a,b",)
    assert table(tmp_path, "a#b\n1#2\n", delimiter="#").names == ("a", "b")
    with pytest.raises(InputError, match="delimiter: expected one character"):
        table(tmp_path, "a,b\n1,2\n", delimiter="::")


def test_a_first_row_of_numbers_is_no_heading(tmp_path: Path) -> None:
    found = table(tmp_path, "1,2\n3,4\n")
    assert found.names == ("column 1", "column 2")
    assert found.numbers(1).tolist() == [2, 4]


def test_columns_go_by_name_or_number(tmp_path: Path) -> None:
    found = table(tmp_path, "a,b\n1,2\n")
    assert [found.find(column) for column in ("b", 0, -1)] == [1, 0, 1]
    for column in ("c", 2, -3):
        with pytest.raises(InputError, match=r"no column .*; there are 'a', 'b'"):
            found.find(column)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("x", "row 2 .line 3., column 'b': expected a finite number, got 'x'"),
        ("1_000", "got '1_000'"),
        ("inf", "row 2 .line 3., column 'b': expected a finite number, got 'inf'"),
        ("", "row 2 .line 3., column 'b': the value is missing"),
        ("NaN", "the value is missing .'NaN'"),
    ],
)
def test_what_is_no_number_is_named_with_row_line_and_column(
    tmp_path: Path, field: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        table(tmp_path, f"a,b\n1,2\n3,{field}\n").numbers("b")


def test_missing_values_become_nan_only_where_asked(tmp_path: Path) -> None:
    values = table(tmp_path, "a,b\n1,?\n1,NA\n1,2\n").numbers("b", missing="nan")
    assert np.isnan(values).tolist() == [True, True, False]
    with pytest.raises(InputError, match="missing is 'zero'"):
        table(tmp_path, "a\nx\n").numbers("a", missing="zero")


def test_blank_lines_are_skipped_but_in_a_single_column(tmp_path: Path) -> None:
    assert len(table(tmp_path, "\na,b\n\n1,2\n\n\n3,4\n\n")) == 2
    values = table(tmp_path, "\na\n1\n\n3\n\n\n").numbers("a", missing="nan")
    assert len(values) == 3 and math.isnan(values[1])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n1,2,3\n", r"row 2 \(line 3\) has 3 fields; the heading has 2: a, b"),
        ("a,b\n1\n", r"row 1 \(line 2\) has 1 field; "),
        ("a,a\n1,2\n", "the heading has 'a' 2 times"),
        ('a,b\n1,2\n3,"4\n5,6\n', "the row that begins at line 3: unexpected end of data"),
        ('a,b\n"1"2,3\n', "the row that begins at line 2"),
    ],
)
def test_rows_that_do_not_fit_are_named(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        table(tmp_path, content)


def test_nothing_to_read_is_said(tmp_path: Path) -> None:
    for content in ("", "\n\n", "a,b\n"):
        with pytest.raises(EmptyInput):
            table(tmp_path, content)
    with pytest.raises(FileError, match="no such file"):
        read_table(tmp_path / "none.csv")


def test_a_long_field_is_fine_and_leaves_the_limit_as_it_was(tmp_path: Path) -> None:
    import csv

    before = csv.field_size_limit()
    assert len(table(tmp_path, f"a,b\n{'x' * 200_000},1\n").text("a")[0]) == 200_000
    assert csv.field_size_limit() == before


def test_columns_of_numbers_are_recognised(tmp_path: Path) -> None:
    found = table(tmp_path, "a,b,c\n1,x,?\n?,2,?\n")
    assert [found.is_numeric(name) for name in "abc"] == [True, False, False]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_that_python_writes_is_read_back(value: float) -> None:
    assert as_number(f" {value!r} ") == value
