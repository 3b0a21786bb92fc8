"""Zipf fits and the quantile they use, against statsmodels and scipy."""

import numpy as np
import pytest
import scipy.stats
import statsmodels.api
from hypothesis import given
from hypothesis import strategies as st

from unspool.baselines.student_t import incomplete_beta, t_quantile
from unspool.baselines.zipf import fit_zipf, frequencies
from unspool.errors import InputError


@given(probability=st.floats(0.51, 0.9999), nu=st.floats(1, 1e5))
def test_the_quantile_is_scipys(probability: float, nu: float) -> None:
    assert t_quantile(probability, nu) == pytest.approx(scipy.stats.t.ppf(probability, nu), rel=1e-7)


@given(a=st.floats(0.1, 50), b=st.floats(0.1, 50), x=st.floats(0, 1))
def test_the_incomplete_beta_function_is_scipys(a: float, b: float, x: float) -> None:
    assert incomplete_beta(a, b, x) == pytest.approx(scipy.special.betainc(a, b, x), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("ranks", [None, (3, 40)])
def test_the_fit_and_its_intervals_are_those_of_a_regression(ranks: tuple[int, int] | None) -> None:
    rng = np.random.default_rng(0)
    counts = np.sort((5000 / np.arange(1, 200) ** 1.1 * rng.uniform(0.8, 1.2, 199)).astype(int))[::-1]
    fit = fit_zipf(counts, ranks)
    first, last = ranks or (1, int((counts >= 5).sum()))
    assert fit.ranks == (first, last)
    x = statsmodels.api.add_constant(np.log(np.arange(first, last + 1)))
    expected = statsmodels.api.OLS(np.log(counts[first - 1 : last]), x).fit()
    assert (fit.c, -fit.alpha) == pytest.approx(tuple(expected.params))
    low, high = expected.conf_int(0.05)[1]
    assert fit.alpha_interval == pytest.approx((-high, -low))
    assert fit.c_interval == pytest.approx(tuple(expected.conf_int(0.05)[0]))


def test_an_exact_law_is_found_with_no_doubt() -> None:
    fit = fit_zipf(np.array([720, 360, 240, 180, 144, 120]))
    assert fit.alpha == pytest.approx(1.0)
    assert fit.alpha_interval == pytest.approx((1.0, 1.0))


def test_frequencies_fall() -> None:
    text = np.array([0, 1, 0, 1, 0, 2])
    assert frequencies(text, 3, 1).tolist() == [3, 2, 1]
    assert frequencies(text, 3, 2).tolist() == [2, 2, 1]


@pytest.mark.parametrize("ranks", [(1, 2), (0, 9), (8, 20)])
def test_too_few_ranks_are_refused(ranks: tuple[int, int]) -> None:
    with pytest.raises(InputError, match="ranks"):
        fit_zipf(np.arange(9, 0, -1), ranks)
