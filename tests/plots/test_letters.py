"""Letters that the usual font lacks: another font, or one line that says so."""

import warnings

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from unspool.plots import figure
from unspool.plots.confusion import draw_confusion

COUNTS = np.array([[3, 1], [0, 4]])


def drawn(tmp_path):
    path = tmp_path / "c.png"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_confusion(COUNTS, ["好評", "差評"], path)
    return path.stat().st_size > 1000


def test_no_font_at_all_is_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(figure, "_find_cjk_font", lambda: None)
    assert drawn(tmp_path)
    (line,) = capsys.readouterr().err.splitlines()
    assert "no installed font has" in line and all(letter in line for letter in "好差評")


def test_an_installed_font_is_found(tmp_path, capsys):
    if figure._find_cjk_font() is None:
        pytest.skip("no such font here")
    assert drawn(tmp_path)
    assert capsys.readouterr().err == ""
