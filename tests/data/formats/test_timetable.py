"""Numbers in time: which column is what, and the rules for what is missing."""

from pathlib import Path

import pytest

from unspool.data.formats.timetable import read_timetable
from unspool.data.series.time_index import TimeIndex, infer_time_index
from unspool.errors import InputError


def written(tmp_path: Path, content: str) -> Path:
    path = tmp_path / "a.csv"
    path.write_text(content)
    return path


@pytest.mark.parametrize(
    ("times", "kind", "after"),
    [
        (["1949-11", "1949-12", "1950-01"], "months", "1950-02"),
        (["2020-02-27", "2020-02-28", "2020-02-29"], "dates", "2020-03-01"),
        (["2020-01-01 22:00", "2020-01-01 23:00", "2020-01-02 00:00"], "dates", "2020-01-02 01:00"),
        (["19580329", "19580405", "19580412"], "dates", "19580419"),
        (["2000-01-01", "2001-01-01", "2002-01-01"], "months", "2003-01-01"),
        (["1700", "1701", "1702"], "numbers", "1703"),
        (["0.5", "1.0", "1.5"], "numbers", "2"),
        (["31.01.2020", "01.02.2020", "02.02.2020"], "dates", "03.02.2020"),
    ],
)
def test_a_clock_goes_on(times: list[str], kind: str, after: str) -> None:
    clock = infer_time_index(times)
    assert clock is not None and clock.kind == kind
    assert clock.numbers(times) == [0, 1, 2]
    assert [clock.label(i) for i in range(3)] == times or kind == "numbers"
    assert clock.label(3) == after


def test_what_is_no_clock() -> None:
    for times in (["a", "b"], ["2020-01-01", "x"], ["3", "2", "1"], ["5"], ["1", "", "3"]):
        assert infer_time_index(times) is None


def test_the_time_column_is_recognised(tmp_path: Path) -> None:
    table = read_timetable(written(tmp_path, "v,date\n5,2020-01-01\n7,2020-01-02\n"))
    assert (table.time, list(table.columns)) == ("date", ["v"])
    table = read_timetable(written(tmp_path, "n,a,b\n1,5,x\n2,7,y\n"))
    assert (table.time, list(table.columns), table.left_out) == ("n", ["a"], ["b"])
    assert table.label(2) == "3"
    table = read_timetable(written(tmp_path, "a,b\n3,5\n1,7\n"))  # does not rise: a series like the other
    assert (table.time, list(table.columns)) == (None, ["a", "b"])
    table = read_timetable(written(tmp_path, "1\n2\n3\n"))  # one column is numbers, not times
    assert (table.time, table.columns["column 1"].y.tolist()) == (None, [1, 2, 3])
    table = read_timetable(written(tmp_path, "year,b\n3,5\n4,7\n"), time="none")
    assert list(table.columns) == ["year", "b"]
    with pytest.raises(InputError, match="'b' is not a column of rising times"):
        read_timetable(written(tmp_path, "a,b\n1,x\n2,y\n"), time="b")


def test_columns_are_chosen(tmp_path: Path) -> None:
    path = written(tmp_path, "t,a,b,c\n1,1,4,x\n2,2,5,y\n3,3,6,z\n")
    assert list(read_timetable(path, ["b"]).columns) == ["b"]
    assert list(read_timetable(path, [2, "a"]).columns) == ["b", "a"]
    with pytest.raises(InputError, match=r"row 1 \(line 2\), column 'c': expected a finite number, got 'x'"):
        read_timetable(path, ["c"])
    with pytest.raises(InputError, match="no column of numbers; there are t, c"):
        read_timetable(written(tmp_path, "t,c\n2020-01,x\n2020-02,y\n"))


def test_text_among_numbers_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"row 2 \(line 3\), column 'a': expected a finite number, got 'many'"
    ):
        read_timetable(written(tmp_path, "t,a\n1,1\n2,many\n3,3\n"))


HOLES = "date,a,b\n2020-01,1,\n2020-02,?,2\n2020-03,3,NA\n2020-04,4,4\n"


def test_missing_values_are_refused_and_named(tmp_path: Path) -> None:
    with pytest.raises(
        InputError,
        match=r"row 2 \(line 3\), column 'a': the value is missing, and there are more in 'b'; .*missing='mask'",
    ):
        read_timetable(written(tmp_path, HOLES))


@pytest.mark.parametrize("missing", ["interpolate", "mask"])
def test_missing_values_become_a_line_between_their_neighbours(tmp_path: Path, missing: str) -> None:
    table = read_timetable(written(tmp_path, HOLES), missing=missing)
    a, b = table.columns["a"], table.columns["b"]
    assert (a.y.tolist(), b.y.tolist()) == ([1, 2, 3, 4], [2, 3, 4])
    assert (a.begin, b.begin, table.rows) == (0, 1, 4)
    assert a.known.tolist() == [True, missing == "interpolate", True, True]
    assert (a.filled, b.filled) == ((0, 0) if missing == "interpolate" else (1, 1))


def test_the_last_value_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"row 2 \(line 3\), column 'a': the last value is missing"):
        read_timetable(written(tmp_path, "t,a\n1,1\n2,\n"), missing="mask")


def test_a_step_without_a_row_is_missing_too(tmp_path: Path) -> None:
    path = written(tmp_path, "date,a\n2020-01-01,1\n2020-01-02,2\n2020-01-04,4\n2020-01-05,5\n")
    with pytest.raises(InputError, match=r"row 3 .*'2020-01-04': 1 steps before it have no row"):
        read_timetable(path)
    found = read_timetable(path, missing="mask").columns["a"]
    assert (found.y.tolist(), found.known.tolist()) == ([1, 2, 3, 4, 5], [True, True, False, True, True])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("2020-01-01\n2020-01-02\n2020-01-02\n2020-01-03", "row 3 .* does not come after the row above"),
        (
            "2020-01-01 00:00\n2020-01-01 01:00\n2020-01-01 02:30\n2020-01-01 03:00",
            "row 3 .* not a whole number of steps",
        ),
    ],
)
def test_times_that_do_not_go_in_steps_are_named(tmp_path: Path, rows: str, message: str) -> None:
    content = "date,a\n" + "\n".join(f"{row},{i}" for i, row in enumerate(rows.split("\n")))
    with pytest.raises(InputError, match=message):
        read_timetable(written(tmp_path, content))
    assert len(read_timetable(written(tmp_path, content), ["a"], time="none").columns["a"].y) == 4


def test_a_day_that_months_lack_is_counted_in_days() -> None:
    clock = infer_time_index(["2020-01-30", "2020-03-30", "2020-05-30"])
    assert clock is not None and clock.kind == "dates"
    assert TimeIndex("months", "%Y-%m-%d", "2020-01-15", 1).numbers(["2020-02-15", "2020-02-16"]) == [1, None]


MONTHS = [f"{2000 + t // 12}-{t % 12 + 1:02}" for t in range(24)]


@pytest.mark.parametrize("name", ["month", "when"])
@pytest.mark.parametrize(
    ("times", "message"),
    [
        (
            MONTHS[::-1],
            r"row 2 \(line 3\), column '{}': '2001-11' comes before the row above it; sort the rows",
        ),
        (["2000-01"] * 5, r"row 2 \(line 3\), column '{}': '2000-01' is the time of the row above it"),
        (
            [*MONTHS[:9], "soon", *MONTHS[10:]],
            r"row 10 \(line 11\), column '{}': 'soon' is not a time like '2000-01'",
        ),
        ([*MONTHS[:3], "", *MONTHS[4:8]], r"row 4 \(line 5\), column '{}': '' is not a time like '2000-01'"),
        (["", *MONTHS[1:8]], r"row 1 \(line 2\), column '{}': '' is not a time like '2000-02'"),
        ([*MONTHS[:5], "2000-06-01", "2000-07-01"], r"row 6 .*: '2000-06-01' is not a time like '2000-01'"),
    ],
)
def test_times_that_are_no_clock_are_not_passed_over(
    tmp_path: Path, name: str, times: list[str], message: str
) -> None:
    path = written(tmp_path, f"{name},a\n" + "".join(f"{time},{i}\n" for i, time in enumerate(times)))
    for asked, hint in ((None, ".*, or say time='none'$"), (name, "(?!.*time=)")):
        with pytest.raises(InputError, match=message.format(name) + hint):
            read_timetable(path, time=asked)
    assert read_timetable(path, time="none").columns["a"].y.tolist() == list(range(len(times)))


def test_years_that_fall_are_refused_and_other_numbers_are_a_series(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"row 2 .*'1999' comes before the row above it"):
        read_timetable(written(tmp_path, "year,a\n2000,1\n1999,2\n1998,3\n"))
    table = read_timetable(written(tmp_path, "sales,a\n123456,1\n123411,2\n123422,3\n123414,4\n"))
    assert (table.time, list(table.columns)) == (None, ["sales", "a"])
