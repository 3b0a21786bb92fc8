"""Quantiles of Student's t distribution, for confidence intervals.

With ν degrees of freedom and t > 0,

    P(T > t) = I_x(ν/2, 1/2) / 2,      x = ν / (ν + t²)                                 (1)

where I is the regularised incomplete beta function, computed by its continued fraction (Lentz's method).
"""

import math


def t_quantile(probability: float, nu: float) -> float:
    """Return t with P(T ≤ t) = probability, for probabilities of at least 1/2.

    >>> round(t_quantile(0.975, 10), 4), round(t_quantile(0.975, 1e6), 4)
    (2.2281, 1.96)
    """
    low, high = 0.0, 1.0
    while _upper_tail(high, nu) > 1 - probability:
        high *= 2
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if _upper_tail(middle, nu) > 1 - probability else (low, middle)
    return (low + high) / 2


def _upper_tail(t: float, nu: float) -> float:
    return incomplete_beta(nu / 2, 0.5, nu / (nu + t * t)) / 2  # (1)


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Return I_x(a, b), the regularised incomplete beta function.

    >>> round(incomplete_beta(2, 1, 0.5), 12)        # x² for a = 2, b = 1
    0.25
    """
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(scale + a * math.log(x) + b * math.log1p(-x)) / (a * _fraction(a, b, x))


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction 1 + d₁/(1 + d₂/(1 + …)), evaluated from the front."""
    value, numerator, denominator, m = 1.0, 1.0, 0.0, 0
    while True:
        m += 1
        k = m // 2
        if m % 2:
            d = -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1))
        else:
            d = k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k))
        denominator = 1 / (1 + d * denominator)
        numerator = 1 + d / numerator
        value *= numerator * denominator
        if abs(numerator * denominator - 1) < 1e-15 or m > 10_000:
            return value
