"""Series of numbers."""

from pathlib import Path

import numpy as np
import pytest

from unspool.data.series.lags import lagged, noisy_sine, read_series
from unspool.errors import EmptyInput, InputError


def test_a_column_is_read_by_heading_by_number_or_as_the_last(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('"year","count",other\r\n1700,5,1e3\r\n1701,11,-2.5\r\n')
    assert read_series(path, "count").tolist() == [5, 11]
    assert read_series(path, 0).tolist() == [1700, 1701]
    assert read_series(path).tolist() == [1000, -2.5]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n\n1,x\n", r"row 2 \(line 4\), column 'b': expected a finite number, got 'x'"),
        ("a,b\n1\n", r"row 1 \(line 2\) has 1 field; the heading has 2"),
    ],
)
def test_what_is_no_number_is_named_with_its_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_series(path)


def test_a_missing_column_or_body_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="no column 'c'; there are 'a', 'b'"):
        read_series(path, "c")
    path.write_text("a,b\n")
    with pytest.raises(EmptyInput):
        read_series(path)


def test_windows_and_what_follows_them() -> None:
    X, y = lagged(np.arange(6.0), 3)
    assert X.tolist() == [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
    assert y.tolist() == [3, 4, 5]
    for tau in (0, 6):
        with pytest.raises(InputError, match="tau"):
            lagged(np.arange(6.0), tau)


def test_the_noise_has_its_size() -> None:
    x = noisy_sine(20_000, np.random.default_rng(0), period=100, noise=0.3)
    rest = x - np.sin(2 * np.pi * np.arange(1, 20_001) / 100)
    assert rest.std() == pytest.approx(0.3, rel=0.03)
