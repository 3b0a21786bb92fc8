"""Series below each other: each is read as if it stood in a file of its own, whatever the order of the rows."""

import random
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unspool.data.formats.timetable import read_timetable
from unspool.data.series.time_table import TimeTable
from unspool.errors import InputError

SHOPS = "shop,date,sales\nb,2020-02,5\na,2020-01,7\nb,2020-03,4\na,2020-02,9\na,2020-03,8\nb,2020-04,6\n"


def read(tmp_path: Path, content: str, series: str | int | None = None, **given: object) -> TimeTable:
    path = tmp_path / "a.csv"
    path.write_text(content)
    return read_timetable(path, series=series, **given)  # type: ignore[arg-type]


def test_each_series_has_its_own_begin_end_and_times(tmp_path: Path) -> None:
    table = read(tmp_path, SHOPS, "shop")
    assert {name: (each.begin, each.y.tolist()) for name, each in table.columns.items()} == {
        "b": (1, [5, 4, 6]),
        "a": (0, [7, 9, 8]),
    }
    assert [table.label(each.end) for each in table.columns.values()] == ["2020-05", "2020-04"]
    assert (table.time, table.rows, table.label(0)) == ("date", 4, "2020-01")
    assert list(read(tmp_path, SHOPS, 0).columns) == ["b", "a"]


names = st.text(st.characters(codec="utf-8", exclude_characters='",\n\r\x1e\x1c\x1d\x85\u2028\u2029\x0b\x0c', exclude_categories=["C", "Z"]), min_size=1, max_size=5)  # fmt: skip


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(names.map(lambda name: "s" + name), st.tuples(st.integers(0, 400), st.lists(st.integers(-9, 9), min_size=2, max_size=6)), min_size=1, max_size=5),
    st.sampled_from([1, 7]),
    st.randoms(use_true_random=False),
)  # fmt: skip
def test_a_long_table_equals_one_file_per_series(
    tmp_path: Path, series: dict[str, tuple[int, list[int]]], days: int, chance: random.Random
) -> None:
    day = {name: date(2019, 1, 7) + timedelta(days=days * begin) for name, (begin, _) in series.items()}
    rows = {
        name: [f"{day[name] + timedelta(days=days * i)},{name},{value}" for i, value in enumerate(values)]
        for name, (_, values) in series.items()
    }
    order = [name for name, each in rows.items() for _ in each]
    chance.shuffle(order)
    left = {name: iter(each) for name, each in rows.items()}
    table = read(tmp_path, "\n".join(["date,id,v", *(next(left[name]) for name in order)]) + "\n", "id")
    assert set(table.columns) == set(series)
    for name, each in rows.items():
        alone = read(
            tmp_path, "\n".join(["date,id,v", *each]) + "\n", None, columns=["v"], time="date"
        )  # a file of its own
        own, found = alone.columns["v"], table.columns[name]
        assert found.y.tolist() == own.y.tolist() and found.known.tolist() == own.known.tolist()
        assert table.label(found.begin) == alone.label(0) and table.label(found.end) == alone.label(own.end)


def test_counts_and_no_times_begin_at_the_first_row_of_each_series(tmp_path: Path) -> None:
    table = read(tmp_path, "store,v\n1,5\n2,7\n1,6\n2,8\n2,9\n", "store")
    assert (table.clock, table.time) == (None, None)
    assert [(each.begin, each.end, table.label(each.end)) for each in table.columns.values()] == [
        (0, 2, "3"),
        (0, 3, "4"),
    ]
    table = read(tmp_path, "id,t,v\na,1,5\na,2,6\nb,3,7\nb,4,9\nb,5,9\n", "id")
    assert table.time == "t"
    assert [(table.label(each.begin), table.label(each.end)) for each in table.columns.values()] == [
        ("1", "3"),
        ("3", "6"),
    ]


def test_several_columns_of_values_are_several_series(tmp_path: Path) -> None:
    content = (
        "id,day,v,note,w\na,2020-01-01,1,x,3\na,2020-01-02,2,y,4\nb,2020-01-01,5,z,7\nb,2020-01-02,6,x,8\n"
    )
    table = read(tmp_path, content, "id")
    assert {name: each.y.tolist() for name, each in table.columns.items()} == {
        "a.v": [1, 2],
        "a.w": [3, 4],
        "b.v": [5, 6],
        "b.w": [7, 8],
    }
    assert table.left_out == ["note"]
    assert list(read(tmp_path, content, "id", columns=[4]).columns) == ["a", "b"]
    with pytest.raises(InputError, match=r"two series are called 'a\.b\.v'; rename a column or a series"):
        read(tmp_path, "id,b.v,v\na,1,2\na.b,3,4\n", "id")


def test_missing_values_and_steps_belong_to_one_series(tmp_path: Path) -> None:
    holes = SHOPS.replace("b,2020-03,4\n", "").replace("a,2020-02,9", "a,2020-02,?")
    table = read(tmp_path, holes, "shop", missing="mask")
    assert {name: (each.y.tolist(), each.known.tolist()) for name, each in table.columns.items()} == {
        "b": ([5, 5.5, 6], [True, False, True]),
        "a": ([7, 7.5, 8], [True, False, True]),
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (SHOPS.replace("b,2020-03,4", "b,2020-03,x"), r"row 3 \(line 4\), column 'sales': expected a finite number, got 'x'"),
        (SHOPS.replace("b,2020-03,4", "b,2020-03,"), r"row 3 \(line 4\), column 'sales': the value is missing"),
        (SHOPS.replace("b,2020-03,4\n", ""), r"row 5 \(line 6\), column 'date': '2020-04': 1 steps before it have no row"),
        (SHOPS.replace("b,2020-03", ",2020-03"), r"row 3 \(line 4\), column 'shop': the name of the series is missing"),
        (SHOPS.replace("b,2020-03", "b,2020-02"), r"row 3 \(line 4\), column 'date': '2020-02' (is the time of|does not come after) the row above it"),
        (SHOPS.replace("b,2020-03", "b,2020-01"), r"row 3 \(line 4\), column 'date': '2020-01' (comes before|does not come after) the row above it"),
        ("id,t,v\na,1,1\na,3,2\na,5,2\nb,2,1\nb,4,2\n", r"row 4 \(line 5\), column 't': '2' is not a whole number of steps from '1'; expected the same steps"),
        (SHOPS.replace("a,2020-02", "a,soon"), r"row 4 \(line 5\), column 'date': 'soon' is not a (whole number of steps|time like)"),
        ("shop,v\na,b\nc,d\n", "no column of numbers"),
    ],
)  # fmt: skip
def test_a_fault_is_named_with_the_row_of_the_file(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, content, content.partition(",")[0])


def test_the_names_are_a_column_of_their_own(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no column 'place'; there are 'shop', 'date', 'sales'"):
        read(tmp_path, SHOPS, "place")
    with pytest.raises(InputError, match="series='date' is also a column of times; expected another column"):
        read(tmp_path, SHOPS, "date", time="date")
    with pytest.raises(InputError, match="series='shop' is also a column of values"):
        read(tmp_path, SHOPS, "shop", columns=["shop"])
