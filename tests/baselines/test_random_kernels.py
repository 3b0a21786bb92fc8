"""Random kernels and ridge regression: against loops, NumPy and refits without each row; bits and files."""

import numpy as np
import pytest

from unspool.baselines.sequences.base import Rows
from unspool.baselines.sequences.kernels import KERNELS, Convolutions
from unspool.baselines.sequences.random_kernels import RandomKernels
from unspool.baselines.sequences.ridge_head import GRID, RidgeHead, _choose, _solve, exact_product, statistics
from unspool.errors import FileError
from unspool.model.heads import HEADS
from unspool.storage.tensors import read_arrays, write_arrays
from unspool.tasks import SequenceClassifier, SequenceRegressor
from unspool.tasks.registry import load

RNG = np.random.default_rng(4)
X = [RNG.standard_normal((n, 2)).astype(np.float32) for n in [30, 12, 25, 1, 0, 30, 18, 9]]


def rows_of(x):
    return Rows(x, x, True)


def test_a_feature_is_the_share_of_steps_above_a_threshold():
    drawn = Convolutions.fit([RNG.standard_normal((30, 2)).astype(np.float32) for _ in range(5)], seed=0)
    z = drawn.features(X).reshape(len(X), *drawn.thresholds.shape)
    assert drawn.dilations.tolist() == [1, 2] and len({tuple(each) for each in KERNELS.tolist()}) == 84
    for i, at, k in [(0, 0, 3), (1, 1, 83), (2, 0, 40), (3, 1, 7), (7, 1, 20)]:
        weights = np.full(9, -1.0)
        weights[KERNELS[k]] = 2
        d, summed = int(drawn.dilations[at]), (X[i] * drawn.channels[at, k]).sum(axis=1)
        padded = np.pad(summed, 4 * d)
        a = [sum(weights[j] * padded[t + j * d] for j in range(9)) for t in range(len(summed))]
        expected = [(np.array(a) > b).mean() for b in drawn.thresholds[at, k]]
        assert z[i, at, k] == pytest.approx(np.array(expected), abs=1e-6)
    assert (z[4] == 0).all()  # an empty series


def test_features_do_not_depend_on_the_batch():
    drawn = Convolutions.fit(X, seed=0)
    together = drawn.features(X)
    assert all((drawn.features([row])[0] == together[i]).all() for i, row in enumerate(X))


def test_a_product_has_the_same_bits_in_any_order_of_its_sum():
    a, b = RNG.standard_normal((7, 500)), RNG.standard_normal((500, 5)) * 10.0 ** RNG.integers(-3, 4, (1, 5))
    found, order = exact_product(a, b), RNG.permutation(500)
    assert (exact_product(a[:, order], b[order]) == found).all()
    assert found == pytest.approx(a @ b, rel=1e-8, abs=1e-8)
    assert (exact_product(np.zeros((2, 3)), np.ones((3, 2))) == 0).all()


def test_the_linear_system_is_solved():
    A = RNG.standard_normal((20, 30))
    A, y = A @ A.T + 0.1 * np.eye(20), RNG.standard_normal((20, 3))
    assert _solve(A, y) == pytest.approx(np.linalg.solve(A, y), rel=1e-8)


def test_lambda_is_chosen_by_leaving_out_each_row():
    z = RNG.standard_normal((14, 30)).astype(np.float32)
    mean, scale = statistics(z)
    assert (z - mean) * scale == pytest.approx((z - z.mean(0)) / z.std(0), abs=1e-5)
    Z = ((z - mean) * scale).astype(np.float64)
    y = Z[:, :2] + 0.1 * RNG.standard_normal((14, 2))
    ratio, left_out = _choose(Z @ Z.T, y - y.mean(axis=0), 30)
    found = {}
    for each in GRID:
        found[each] = np.zeros((14, 2))
        for i in range(14):
            kept = np.delete(np.arange(14), i)
            centre, level = Z[kept].mean(axis=0), y[kept].mean(axis=0)
            A = Z[kept] - centre
            W = np.linalg.solve(A.T @ A + each * 30 * np.eye(30), A.T @ (y[kept] - level))
            found[each][i] = (Z[i] - centre) @ W + level
    errors = {each: ((found[each] - y) ** 2).mean() for each in GRID}
    assert errors[ratio] <= 1.001 * min(errors.values())
    assert left_out + y.mean(axis=0) == pytest.approx(found[ratio], abs=1e-3)


def test_ridge_is_that_of_the_normal_equations():
    z, y = RNG.standard_normal((40, 6)).astype(np.float32), RNG.standard_normal((40, 1))
    head = RidgeHead.fit(z, y, 1, False)
    Z = (z - z.mean(0)) / z.std(0)
    fits = [
        Z @ np.linalg.solve(Z.T @ Z + each * 6 * np.eye(6), Z.T @ (y - y.mean())) + y.mean() for each in GRID
    ]
    assert min(np.abs(head(z) - each).max() for each in fits) < 1e-4


def waves(n):
    """Series whose class is their frequency, of different phases and lengths."""
    made = [
        np.sin(np.arange(20 + i % 7) * (0.5 if i % 2 else 0.9) + i)[:, None].astype(np.float32)
        for i in range(n)
    ]
    return made, (np.arange(n) % 2).astype(np.int32)


@pytest.mark.parametrize("most", [1500, 10])
def test_waves_are_told_apart_by_both_heads_and_from_a_file(most, tmp_path, monkeypatch):
    monkeypatch.setattr("unspool.baselines.sequences.random_kernels.MOST_ROWS", most)
    monkeypatch.setattr("unspool.baselines.sequences.kernels.MOST", 500)
    monkeypatch.setattr("unspool.baselines.sequences.dense_linear.STEPS", 200)
    x, y = waves(40)
    fitted = RandomKernels.fit(rows_of(x[:30]), y[:30], HEADS["classes"](2), 0)
    o = fitted.outputs(rows_of(x))
    assert (o.argmax(axis=1) == y).mean() > 0.95
    write_arrays(tmp_path / "b", fitted.arrays(), {})
    arrays = read_arrays(tmp_path / "b")[0]
    assert (RandomKernels.restore({}, arrays, 2, "b").outputs(rows_of(x[5:6])) == o[5]).all()
    for change in ({"W": arrays["W"][1:]}, {"dilations": arrays["dilations"] * 0}):
        with pytest.raises(FileError, match="damaged or manipulated"):
            RandomKernels.restore({}, arrays | change, 2, "b")


def test_estimators_compare_the_network_with_random_kernels(tmp_path, monkeypatch):
    monkeypatch.setattr("unspool.baselines.sequences.kernels.MOST", 500)
    x, y = waves(40)
    made = SequenceClassifier(hidden=4, epochs=1, model="baseline").fit(x[:30], y[:30], run=tmp_path / "run")
    assert made.choice_.name == "random kernels" and made.score(x, y) > 0.9
    assert (load(tmp_path / "run").predict_proba(x) == made.predict_proba(x)).all()
    lengths = np.array([float(row.sum() * 2 + 1) for row in x])
    regressor = SequenceRegressor(hidden=4, epochs=1, model="baseline").fit(x, lengths)
    assert regressor.choice_.name == "random kernels" and regressor.score(x, lengths) > 0.9
