"""Pictures are written, in the format of their names, and show what they are given."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from unspool.baselines.autoregression import fit_autoregression
from unspool.baselines.zipf import fit_zipf
from unspool.data.series.lags import noisy_sine
from unspool.errors import FileError, InputError
from unspool.plots.figure import new_axes, save
from unspool.plots.forecast import draw_ahead, draw_backtest, draw_forecast
from unspool.plots.zipf import draw_zipf
from unspool.tasks.forecast.backtest import Backtest

STARTS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    figures: list[Figure] = []
    kept = Figure.savefig
    monkeypatch.setattr(
        Figure, "savefig", lambda self, *a, **k: (figures.append(self), kept(self, *a, **k))[1]
    )
    return figures


@pytest.mark.parametrize("suffix", STARTS)
def test_the_name_decides_the_format(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"picture{suffix}"
    save(new_axes()[0], path)
    assert path.read_bytes().startswith(STARTS[suffix])


def test_a_zipf_picture_has_points_and_a_line_for_each_order(tmp_path: Path, drawn: list[Figure]) -> None:
    counts = [(1000 / np.arange(1, 300) ** alpha).astype(int) for alpha in (1.0, 0.7, 0.5)]
    fits = [fit_zipf(each) for each in counts]
    draw_zipf(counts, fits, tmp_path / "zipf.png", "a text")
    (axes,) = drawn[0].axes
    assert len(axes.lines) == 6
    assert (axes.get_xscale(), axes.get_yscale(), axes.get_title()) == ("log", "log", "a text")
    first_points, first_line = axes.lines[:2]
    assert first_points.get_ydata().max() == 1000
    assert first_line.get_xdata().tolist() == list(fits[0].ranks)
    assert first_line.get_ydata()[0] == pytest.approx(np.exp(fits[0].c))


def test_a_forecast_picture_shows_predictions_and_growing_errors(tmp_path: Path, drawn: list[Figure]) -> None:
    x = noisy_sine(500, np.random.default_rng(0))
    draw_ahead({"a line": fit_autoregression(x, 4)}, x, tmp_path / "ahead.png", shown=(1, 16), noise=0.2)
    left, right = drawn[0].axes
    assert [line.get_label() for line in left.lines] == ["observed", "k = 1", "k = 16"]
    assert left.lines[2].get_xdata()[0] == 4 + 16 - 1
    errors = right.lines[0].get_ydata()
    assert errors[-1] > errors[0]
    assert right.lines[1].get_ydata()[0] == 0.2


def test_a_forecast_and_its_band_go_on_from_the_last_value(tmp_path: Path, drawn: list[Figure]) -> None:
    history, ahead = np.arange(20.0), np.array([20.0, 25.0])
    labels = [f"day {i}" for i in range(22)]
    draw_forecast(history, ahead, ahead - 1, ahead + 1, tmp_path / "f.png", labels=labels, level=0.9)
    (axes,) = drawn[0].axes
    past, forecast = axes.lines[:2]
    assert past.get_ydata().tolist() == history.tolist()
    assert (forecast.get_xdata().tolist(), forecast.get_ydata().tolist()) == ([19, 20, 21], [19, 20, 25])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["90% interval", "forecast"]
    assert axes.get_xticklabels()[0].get_text() == "day 0"


def test_a_backtest_picture_has_every_model(tmp_path: Path, drawn: list[Figure]) -> None:
    y = np.arange(30.0)
    origins = np.arange(20, 27)
    truth = y[origins[:, None] + np.arange(4)]
    forecasts = {"network": truth + 1, "last value": truth, "autoregression": truth + 2}
    found = Backtest(4, 0.8, 2.0, origins, truth, forecasts, truth - 1, truth + 3, [], "network")
    draw_backtest(found, y, tmp_path / "b.png", labels=[str(i) for i in range(30)])
    left, right = drawn[0].axes
    assert [line.get_xdata()[0] for line in left.lines[1:]] == [20, 24]
    assert [line.get_label() for line in right.lines[:2]] == ["network", "autoregression"]
    assert right.lines[1].get_ydata().tolist() == [1, 1, 1, 1]


def test_a_name_without_a_format_and_a_place_that_is_not_there_are_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.png"):
        save(new_axes()[0], tmp_path / "picture.txt")
    with pytest.raises(FileError, match="cannot be written"):
        save(new_axes()[0], tmp_path / "absent" / "picture.png")
