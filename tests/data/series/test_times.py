"""Times as people write them are read or refused, never passed over; long tables are refused."""

from pathlib import Path

import pytest

from unspool.data.formats.timetable import read_timetable
from unspool.data.series.time_index import infer_time_index
from unspool.errors import InputError


@pytest.mark.parametrize(
    ("times", "after"),
    [
        (["2020-01-01T22:00:00Z", "2020-01-01T23:00:00Z"], "2020-01-02T00:00:00Z"),
        (["2020-01-01 00:00:00+00:00", "2020-01-02 00:00:00+00:00"], "2020-01-03 00:00:00+00:00"),
        (["2020-01-01T00:00+0200", "2020-01-01T01:00+0200"], "2020-01-01T02:00+0200"),
        (["2020-01-01 00:00:00-05", "2020-01-01 00:01:00-05"], "2020-01-01 00:02:00-05"),
        (["2020-01-01T00:00:00.000Z", "2020-01-01T00:00:00.250Z"], "2020-01-01T00:00:00.500Z"),
        (["2020-01-01 00:00:00.5", "2020-01-01 00:00:00.75"], "2020-01-01 00:00:01.0"),
        (["2020-01-01T00:00:00.000000000", "2020-01-01T01:00:00.000000000"], "2020-01-01T02:00:00.000000000"),
        (["2020/01/01 00:00:00", "2020/01/01 00:00:01"], "2020/01/01 00:00:02"),
        (["2000Q3", "2000Q4"], "2001Q1"),
        (["2000-Q1", "2000-Q2"], "2000-Q3"),
        (["2000-01-31", "2000-02-29"], "2000-03-31"),
        (["2000-03-31", "2000-06-30"], "2000-09-30"),
        (["2020-W52", "2020-W53"], "2021-W01"),
        (["2009W52", "2009W53"], "2010W01"),
        (["Mar 2020", "Apr 2020"], "May 2020"),
        (["1991 Jul", "1991 Aug"], "1991 Sep"),
        (["30-Mar-2020", "31-Mar-2020"], "01-Apr-2020"),
        (["Jan-01-1995", "Feb-01-1995"], "Mar-01-1995"),
        (["03/30/2020", "03/31/2020"], "04/01/2020"),
        (["30/03/2020 12:00", "31/03/2020 12:00"], "01/04/2020 12:00"),
    ],
)
def test_a_time_is_read_and_written_as_it_was(times: list[str], after: str) -> None:
    clock = infer_time_index(times)
    assert clock is not None
    assert [clock.label(0), clock.label(1), clock.label(2)] == [*times, after]
    assert clock.numbers([*times, after]) == [0, 1, 2]


def test_hours_are_counted_across_the_end_of_summer_time() -> None:
    times = ["2020-10-25T01:00:00+02:00", "2020-10-25T02:00:00+02:00", "2020-10-25T02:00:00+01:00"]
    clock = infer_time_index(times)
    assert clock is not None and clock.numbers(times) == [0, 1, 2]


def read(tmp_path: Path, content: str, **options: object):
    path = tmp_path / "a.csv"
    path.write_text(content)
    return read_timetable(path, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("date,v\n03/04/2020,1\n03/05/2020,2\n", "'03/04/2020' can be read with the day or the month first"),
        ("date,v\n3/31/20,1\n4/1/20,2\n", "column 'date' looks like times, but '3/31/20' cannot be read"),
        (
            "v,when\n5,Tue 3 Mar 2020\n4,Wed 4 Mar 2020\n",
            "column 'when' looks like times, but 'Tue 3 Mar 2020' cannot be read",
        ),
        (
            "v,when\n5,2020-W54\n4,2020-W55\n",
            "looks like times, but '2020-W54' cannot be read; write times as 2020-03-31",
        ),
        ("v,at\n5,14:00\n4,14:30\n", "column 'at' looks like times"),
    ],
)
def test_times_that_cannot_be_read_are_never_numbered(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(InputError, match=f"{message}.*, or say time='none'"):
        read(tmp_path, content)
    assert read(tmp_path, content, time="none").time is None
    with pytest.raises(InputError, match=r"day or the month first|is not a column of rising times"):
        read(tmp_path, content, time=content.split("\n")[0].replace("v", "").strip(","))


def test_dates_in_any_column_are_the_times_and_an_index_beside_them_is_left_out(tmp_path: Path) -> None:
    table = read(tmp_path, "i,v,w\n0,5,2020-01-30\n1,7,2020-01-31\n")
    assert (table.time, list(table.columns), table.left_out) == ("w", ["v"], ["i"])
    assert table.label(2) == "2020-02-01"


@pytest.mark.parametrize(
    ("content", "time", "name"),
    [
        ("store,date,v\nn,2020-01,1\nn,2020-02,2\ns,2020-01,4\ns,2020-02,5\n", "date", "store"),
        ("date,store,v\n2020-01,1,1\n2020-01,2,2\n2020-02,1,3\n2020-02,2,3\n", "date", "store"),
        ("store,when,v\n1,2020-01,1\n1,2020-02,2\n2,2020-01,4\n2,2020-02,5\n", "when", "store"),
        ("store,year,v\nn,2001,1\nn,2002,2\ns,2001,4\ns,2002,5\n", "year", "store"),
        ("id,step,v\na,1,5\na,2,6\nb,1,7\nb,2,9\nb,3,9\n", "step", "id"),
    ],
)
def test_a_long_table_is_refused_with_its_columns_and_the_way_out(
    tmp_path: Path, content: str, time: str, name: str
) -> None:
    line = f"column '{time}' begins again for every one of the 2 values of '{name}': a long table .* series='{name}'"
    with pytest.raises(InputError, match=line):
        read(tmp_path, content)
    with pytest.raises(InputError, match=line):
        read(tmp_path, content, time=time)


def test_times_that_repeat_without_a_name_beside_them_are_no_long_table(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is the time of the row above it; sort the rows"):
        read(tmp_path, "date,v\n2020-01,1\n2020-01,2\n2020-02,3\n2020-02,3\n2020-03,3\n")


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("id,date,v\na,2020-01,1\na,2020-02,2\nb,2020-03,4\nb,2020-04,5\n", "id"),
        ("place,date,v\na,2020-01,1\na,2020-02,2\nb,2021-03,4\nb,2021-04,5\n", "place"),
        ("place,date,v\na,2021-01,1\na,2021-02,2\nb,2020-03,4\nb,2020-04,5\n", "place"),
        ("place,v\na,1\na,2\nb,4\nb,5\n", "place"),
        ("Unique_ID,v\n1,1\n1,2\n2,4\n2,5\n", "Unique_ID"),
        ("v,store\n1,7\n2,7\n4,3\n5,3\n", "store"),
    ],
)
def test_series_below_each_other_without_common_times_are_refused(
    tmp_path: Path, content: str, name: str
) -> None:
    line = f"the rows of each of the 2 values of '{name}' stand below each other: a long table .* series='{name}'"
    with pytest.raises(InputError, match=line):
        read(tmp_path, content)
    with pytest.raises(InputError, match=line):
        read(tmp_path, content, columns=["v"])
    assert list(read(tmp_path, content, columns=["v"], time="none").columns) == ["v"]


@pytest.mark.parametrize(
    "content",
    [
        "place,v\nhere,1\nhere,2\nhere,4\nhere,5\n",
        "kind,v\nwork,1\nwork,2\nrest,4\nrest,5\nwork,1\nwork,2\n",
        "note,v\na,1\na,2\nb,4\nc,5\n",
        "price,v\n3,1\n3,2\n4,4\n4,5\n",
        "date,month,v\n2020-01-31,January,1\n2020-02-01,February,2\n2020-02-02,February,4\n",
    ],
)
def test_columns_that_name_no_series_are_no_long_table(tmp_path: Path, content: str) -> None:
    assert "v" in read(tmp_path, content).columns


def test_business_days_go_on_after_a_weekend() -> None:
    times = ["2020-01-02", "2020-01-03", "2020-01-06", "2020-01-07"]
    clock = infer_time_index(times)
    assert clock is not None and clock.kind == "business days" and clock.seasons() == (5, 261)
    assert clock.numbers([*times, "2020-01-13", "2020-01-11"]) == [0, 1, 2, 3, 7, None]
    assert [clock.label(i) for i in range(4)] == times and clock.label(7) == "2020-01-13"
    week = infer_time_index(["2020-01-06", "2020-01-07", "2020-01-08"])  # no weekend between them
    assert week is not None and week.kind == "dates"


def test_month_ends_and_their_seasons() -> None:
    clock = infer_time_index(["2019-11-30", "2019-12-31", "2020-01-31", "2020-02-29"])
    assert clock is not None and (clock.kind, clock.seasons()) == ("month ends", (12,))
    assert clock.numbers(["2020-02-29", "2020-02-28"]) == [3, None] and clock.label(-1) == "2019-10-31"
    quarters = infer_time_index(["2019-12-31", "2020-03-31", "2020-06-30"])
    assert quarters is not None and quarters.seasons() == (4,)


@pytest.mark.parametrize(("order", "after"), [("day-first", "2020-05-05"), ("month-first", "2020-05-04")])
def test_the_order_of_day_and_month_can_be_given(tmp_path: Path, order: str, after: str) -> None:
    content = (
        "date,v\n3/5/2020,1\n4/5/2020,2\n" if order == "day-first" else "date,v\n5/2/2020,1\n5/3/2020,2\n"
    )
    assert read(tmp_path, content, dates=order).label(2) == after
    with pytest.raises(InputError, match=r"can be read with the day or the month first.*dates='day-first'"):
        read(tmp_path, content)
    with pytest.raises(InputError, match="dates is 'first'"):
        read(tmp_path, content, dates="first")


def test_a_repeated_hour_of_local_time_says_what_to_write(tmp_path: Path) -> None:
    lines = ["time,v", *(f"2020-10-25 {h:02}:00,{h}" for h in (0, 1, 2, 2, 3))]
    with pytest.raises(InputError, match=r"row 4 .*'2020-10-25 02:00'.*write the offset"):
        read(tmp_path, "\n".join(lines), time="time")
