// exp, tanh, sigmoid and log as fixed polynomials: the same operations in the same order on every instruction set.
#pragma once
#include "engine/simd-inl.h"

namespace unspool::UNSPOOL_SET {

// Smaller gradients are set to zero: vanishing gradients would become denormal numbers, on which every operation is a
// hundred times slower.
static const float TINY = 0x1p-90f;
template <class T> static inline T flush(T v) { return select(abs(v) < all<T>(TINY), all<T>(0.0f), v); }

// exp(x) = 2^n exp(r), n = round(x / ln 2), |r| <= ln 2 / 2, exp(r) as a polynomial. Error below 1.5 ulp.
static const float LOG2E = 1.44269504f, MAGIC = 0x1.8p23f;          // adding MAGIC rounds to a whole number
static const float LN2_HIGH = 0x1.62e4p-1f, LN2_LOW = 0x1.7f7d1cp-20f;  // ln 2: the first part has few bits, n times it is exact
static const float C2 = 0.5f, C3 = 1.66665770e-1f, C4 = 4.16665546e-2f, C5 = 8.36317905e-3f, C6 = 1.39261836e-3f;

template <class T> static inline T exp(T x) {
  x = at_least(at_most(x, 88.0f), -87.0f);
  const T magic = fma(x, all<T>(LOG2E), all<T>(MAGIC)), n = magic - all<T>(MAGIC);
  const T r = fnma(n, all<T>(LN2_LOW), fnma(n, all<T>(LN2_HIGH), x));
  T e = fma(fma(r, all<T>(C6), all<T>(C5)), r, all<T>(C4));
  e = fma(fma(fma(e, r, all<T>(C3)), r, all<T>(C2)), r, all<T>(1.0f));
  return fma(e, r, all<T>(1.0f)) * power_of_two(magic);
}

// sigmoid(x) = 1 / (1 + exp(-x)). Returns the denominator, so that several gates can use one division, which
// costs as much as ten products. Such gates are clamped to x >= -22: the product of four denominators does not overflow.
template <class T> static inline T sigmoid_below(T x, float least = -22.0f) {
  x = at_least(at_most(x, 87.0f), least);
  const T magic = fnma(x, all<T>(LOG2E), all<T>(MAGIC)), n = magic - all<T>(MAGIC);
  const T r = fma(n, all<T>(LN2_LOW), fma(n, all<T>(LN2_HIGH), x));  // minus the r of exp(-x): every sign turns
  T e = fnma(fnma(r, all<T>(C6), all<T>(C5)), r, all<T>(C4));
  e = fnma(fnma(fnma(e, r, all<T>(C3)), r, all<T>(C2)), r, all<T>(1.0f));
  return fma(fnma(e, r, all<T>(1.0f)), power_of_two(magic), all<T>(1.0f));
}
template <class T> static inline T sigmoid(T x) { return all<T>(1.0f) / sigmoid_below(x, -87.0f); }

// tanh(x) = (t - 1) / (t + 1), t = exp(2 x) = 2^n exp(2 r), exp(2 r) = 1 + r g(r). Written so that nothing cancels:
// t - 1 = (2^n - 1) + 2^n r g, where 2^n - 1 is exact, and zero for small x.
template <class T> struct Fraction { T above, below; };
template <class T> static inline Fraction<T> tanh_fraction(T x) {
  x = at_least(at_most(x, 9.0f), -9.0f);  // beyond, tanh is 1 in float32
  const T magic = fma(x, all<T>(2 * LOG2E), all<T>(MAGIC)), n = magic - all<T>(MAGIC), one = all<T>(1.0f);
  const T r = fnma(n, all<T>(LN2_LOW / 2), fnma(n, all<T>(LN2_HIGH / 2), x));
  T g = fma(fma(r, all<T>(64 * C6), all<T>(32 * C5)), r, all<T>(16 * C4));
  g = fma(fma(fma(g, r, all<T>(8 * C3)), r, all<T>(4 * C2)), r, all<T>(2.0f));
  const T power = power_of_two(magic), rest = power * r;
  return {fma(rest, g, power - one), fma(rest, g, power + one)};
}
template <class T> static inline T tanh(T x) {
  const Fraction<T> f = tanh_fraction(x);
  return f.above / f.below;
}

// log of a positive, finite double: x = 2^n m, sqrt(1/2) <= m < sqrt(2), log m = 2 artanh((m-1)/(m+1)). Zero, negative, NaN: NaN.
static inline double log_positive(double x) {
  uint64_t bits;
  __builtin_memcpy(&bits, &x, 8);
  int64_t n = (int64_t)(bits >> 52) - 1023;
  bits = (bits & 0x000fffffffffffffull) | 0x3ff0000000000000ull;
  double m;
  __builtin_memcpy(&m, &bits, 8);
  const bool high = m > 1.4142135623730951;
  m = high ? m * 0.5 : m;
  n = high ? n + 1 : n;
  const double s = (m - 1.0) / (m + 1.0), u = s * s;
  double p = 1.0 / 21;
  for (int k = 19; k >= 1; k -= 2) p = __builtin_fma(p, u, 1.0 / k);
  const double log = __builtin_fma((double)n, 0.6931471805599453, 2.0 * s * p);
  return x > 0.0 ? log : __builtin_nan("");
}

enum Activation : int { TANH = 0, RELU = 1, SIGMOID = 2, IDENTITY = 3 };

template <int A, class T> static inline __attribute__((always_inline)) T activate(T a) {
  if constexpr (A == TANH) return tanh(a);
  const T none = all<T>(0.0f);
  if constexpr (A == RELU) return select(none < a, a, select(a < none, none, a));  // NaN stays NaN
  if constexpr (A == SIGMOID) return sigmoid(a);
  return a;
}

// The derivative of the activation, from its value h.
template <int A, class T> static inline T slope(T h) {
  if constexpr (A == TANH) return fnma(h, h, all<T>(1.0f));
  if constexpr (A == RELU) return select(all<T>(0.0f) < h, all<T>(1.0f), all<T>(0.0f));
  if constexpr (A == SIGMOID) return fnma(h, h, h);
  return all<T>(1.0f);
}

}  // namespace unspool::UNSPOOL_SET
