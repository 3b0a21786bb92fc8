// Sixteen floats as one value, on every instruction set.
//
// The kernels are written once, in terms of `V`, and compiled once per instruction set. A reduction across
// lanes uses the same tree over sixteen lanes for every register width, so that the width never changes a
// result. `fma` is always the fused operation; nothing else is ever contracted
// (-ffp-contract=off), so every bit is decided here and not by the compiler.
//
// Everything is in an instruction set's own namespace (see kernels.cpp): no two sets share a symbol.
#pragma once
#include <stddef.h>
#include <stdint.h>

#if defined(UNSPOOL_AVX512) || defined(UNSPOOL_AVX2)
#include <immintrin.h>
#elif defined(UNSPOOL_NEON)
#include <arm_neon.h>
#endif

namespace unspool::UNSPOOL_SET {

struct V;      // 16 floats
struct Mask;   // 16 booleans

#if defined(UNSPOOL_AVX512)

struct V { __m512 x; };
struct Mask { __mmask16 m; };

static inline V load(const float* p) { return {_mm512_loadu_ps(p)}; }
static inline void store(float* p, V v) { _mm512_storeu_ps(p, v.x); }
static inline V load_n(const float* p, int n) { return {_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p)}; }
static inline void store_n(float* p, V v, int n) { _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), v.x); }
static inline V set1(float f) { return {_mm512_set1_ps(f)}; }
static inline V fma(V a, V b, V c) { return {_mm512_fmadd_ps(a.x, b.x, c.x)}; }
static inline V fnma(V a, V b, V c) { return {_mm512_fnmadd_ps(a.x, b.x, c.x)}; }
static inline V operator+(V a, V b) { return {_mm512_add_ps(a.x, b.x)}; }
static inline V operator-(V a, V b) { return {_mm512_sub_ps(a.x, b.x)}; }
static inline V operator*(V a, V b) { return {_mm512_mul_ps(a.x, b.x)}; }
static inline V operator/(V a, V b) { return {_mm512_div_ps(a.x, b.x)}; }
static inline V sqrt(V a) { return {_mm512_sqrt_ps(a.x)}; }
static inline V abs(V a) {
  return {_mm512_castsi512_ps(_mm512_and_epi32(_mm512_castps_si512(a.x), _mm512_set1_epi32(0x7fffffff)))};
}
static inline Mask operator<(V a, V b) { return {_mm512_cmp_ps_mask(a.x, b.x, _CMP_LT_OQ)}; }
static inline V select(Mask m, V yes, V no) { return {_mm512_mask_blend_ps(m.m, no.x, yes.x)}; }
// If either is NaN, the second: clamping never hides a NaN.
static inline V lesser(V a, V b) { return {_mm512_min_ps(a.x, b.x)}; }
static inline V greater(V a, V b) { return {_mm512_max_ps(a.x, b.x)}; }
// 2^n for a float that holds 1.5*2^23 + n.
static inline V power_of_two(V magic) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(_mm512_castps_si512(magic.x), _mm512_set1_epi32(127)), 23))};
}

#elif defined(UNSPOOL_AVX2)

struct V { __m256 x, y; };
struct Mask { __m256 x, y; };

static inline V load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
static inline void store(float* p, V v) { _mm256_storeu_ps(p, v.x); _mm256_storeu_ps(p + 8, v.y); }
static inline __m256i first_lanes(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline V load_n(const float* p, int n) {
  return {_mm256_maskload_ps(p, first_lanes(n)), n > 8 ? _mm256_maskload_ps(p + 8, first_lanes(n - 8)) : _mm256_setzero_ps()};
}
static inline void store_n(float* p, V v, int n) {
  _mm256_maskstore_ps(p, first_lanes(n), v.x);
  if (n > 8) _mm256_maskstore_ps(p + 8, first_lanes(n - 8), v.y);
}
static inline V set1(float f) { __m256 b = _mm256_set1_ps(f); return {b, b}; }
static inline V fma(V a, V b, V c) { return {_mm256_fmadd_ps(a.x, b.x, c.x), _mm256_fmadd_ps(a.y, b.y, c.y)}; }
static inline V fnma(V a, V b, V c) { return {_mm256_fnmadd_ps(a.x, b.x, c.x), _mm256_fnmadd_ps(a.y, b.y, c.y)}; }
static inline V operator+(V a, V b) { return {_mm256_add_ps(a.x, b.x), _mm256_add_ps(a.y, b.y)}; }
static inline V operator-(V a, V b) { return {_mm256_sub_ps(a.x, b.x), _mm256_sub_ps(a.y, b.y)}; }
static inline V operator*(V a, V b) { return {_mm256_mul_ps(a.x, b.x), _mm256_mul_ps(a.y, b.y)}; }
static inline V operator/(V a, V b) { return {_mm256_div_ps(a.x, b.x), _mm256_div_ps(a.y, b.y)}; }
static inline V sqrt(V a) { return {_mm256_sqrt_ps(a.x), _mm256_sqrt_ps(a.y)}; }
static inline V abs(V a) {
  __m256 m = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  return {_mm256_and_ps(a.x, m), _mm256_and_ps(a.y, m)};
}
static inline Mask operator<(V a, V b) { return {_mm256_cmp_ps(a.x, b.x, _CMP_LT_OQ), _mm256_cmp_ps(a.y, b.y, _CMP_LT_OQ)}; }
static inline V select(Mask m, V yes, V no) { return {_mm256_blendv_ps(no.x, yes.x, m.x), _mm256_blendv_ps(no.y, yes.y, m.y)}; }
static inline V lesser(V a, V b) { return {_mm256_min_ps(a.x, b.x), _mm256_min_ps(a.y, b.y)}; }
static inline V greater(V a, V b) { return {_mm256_max_ps(a.x, b.x), _mm256_max_ps(a.y, b.y)}; }
static inline __m256 power_of_two_half(__m256 magic) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_castps_si256(magic), _mm256_set1_epi32(127)), 23));
}
static inline V power_of_two(V magic) { return {power_of_two_half(magic.x), power_of_two_half(magic.y)}; }

#elif defined(UNSPOOL_NEON)

struct V { float32x4_t q[4]; };
struct Mask { uint32x4_t q[4]; };

#define UNSPOOL_QUARTERS(expression) \
  V r;                               \
  for (int i = 0; i < 4; i++) r.q[i] = (expression); \
  return r

static inline V load(const float* p) { UNSPOOL_QUARTERS(vld1q_f32(p + 4 * i)); }
static inline void store(float* p, V v) { for (int i = 0; i < 4; i++) vst1q_f32(p + 4 * i, v.q[i]); }
static inline V load_n(const float* p, int n) {
  float f[16] = {};
  for (int i = 0; i < n; i++) f[i] = p[i];
  return load(f);
}
static inline void store_n(float* p, V v, int n) {
  float f[16];
  store(f, v);
  for (int i = 0; i < n; i++) p[i] = f[i];
}
static inline V set1(float f) { UNSPOOL_QUARTERS(vdupq_n_f32(f)); }
static inline V fma(V a, V b, V c) { UNSPOOL_QUARTERS(vfmaq_f32(c.q[i], a.q[i], b.q[i])); }
static inline V fnma(V a, V b, V c) { UNSPOOL_QUARTERS(vfmsq_f32(c.q[i], a.q[i], b.q[i])); }
static inline V operator+(V a, V b) { UNSPOOL_QUARTERS(vaddq_f32(a.q[i], b.q[i])); }
static inline V operator-(V a, V b) { UNSPOOL_QUARTERS(vsubq_f32(a.q[i], b.q[i])); }
static inline V operator*(V a, V b) { UNSPOOL_QUARTERS(vmulq_f32(a.q[i], b.q[i])); }
static inline V operator/(V a, V b) { UNSPOOL_QUARTERS(vdivq_f32(a.q[i], b.q[i])); }
static inline V sqrt(V a) { UNSPOOL_QUARTERS(vsqrtq_f32(a.q[i])); }
static inline V abs(V a) { UNSPOOL_QUARTERS(vabsq_f32(a.q[i])); }
static inline Mask operator<(V a, V b) {
  Mask r;
  for (int i = 0; i < 4; i++) r.q[i] = vcltq_f32(a.q[i], b.q[i]);
  return r;
}
static inline V select(Mask m, V yes, V no) { UNSPOOL_QUARTERS(vbslq_f32(m.q[i], yes.q[i], no.q[i])); }
static inline V power_of_two(V magic) {
  UNSPOOL_QUARTERS(vreinterpretq_f32_u32(vshlq_n_u32(vaddq_u32(vreinterpretq_u32_f32(magic.q[i]), vdupq_n_u32(127)), 23)));
}

#else  // plain: scalar code

struct V { float f[16]; };
struct Mask { bool b[16]; };

#define UNSPOOL_LANES(expression) \
  V r;                            \
  for (int i = 0; i < 16; i++) r.f[i] = (expression); \
  return r

static inline V load(const float* p) { UNSPOOL_LANES(p[i]); }
static inline void store(float* p, V v) { for (int i = 0; i < 16; i++) p[i] = v.f[i]; }
static inline V load_n(const float* p, int n) { UNSPOOL_LANES(i < n ? p[i] : 0.0f); }
static inline void store_n(float* p, V v, int n) { for (int i = 0; i < n; i++) p[i] = v.f[i]; }
static inline V set1(float f) { UNSPOOL_LANES(f); }
static inline V fma(V a, V b, V c) { UNSPOOL_LANES(__builtin_fmaf(a.f[i], b.f[i], c.f[i])); }
static inline V fnma(V a, V b, V c) { UNSPOOL_LANES(__builtin_fmaf(-a.f[i], b.f[i], c.f[i])); }
static inline V operator+(V a, V b) { UNSPOOL_LANES(a.f[i] + b.f[i]); }
static inline V operator-(V a, V b) { UNSPOOL_LANES(a.f[i] - b.f[i]); }
static inline V operator*(V a, V b) { UNSPOOL_LANES(a.f[i] * b.f[i]); }
static inline V operator/(V a, V b) { UNSPOOL_LANES(a.f[i] / b.f[i]); }
static inline V sqrt(V a) { UNSPOOL_LANES(__builtin_sqrtf(a.f[i])); }
static inline V abs(V a) { UNSPOOL_LANES(__builtin_fabsf(a.f[i])); }
static inline Mask operator<(V a, V b) {
  Mask r;
  for (int i = 0; i < 16; i++) r.b[i] = a.f[i] < b.f[i];
  return r;
}
static inline V select(Mask m, V yes, V no) { UNSPOOL_LANES(m.b[i] ? yes.f[i] : no.f[i]); }
static inline V power_of_two(V magic) {
  V r;
  for (int i = 0; i < 16; i++) {
    uint32_t bits;
    __builtin_memcpy(&bits, &magic.f[i], 4);
    bits = (bits + 127u) << 23;
    __builtin_memcpy(&r.f[i], &bits, 4);
  }
  return r;
}

#endif

static const int LANES = 16;

static inline V zero() { return set1(0.0f); }

// sum += a b, with sum in a fixed register: otherwise the compiler copies sums between registers, or reloads b for every row
// of a tile. The second form broadcasts a number from memory in the same instruction. The order of the factors is the same
// in both: it decides which of two NaNs is the result.
#if defined(UNSPOOL_AVX512) && !defined(UNSPOOL_SANITIZE)
static inline void add_product(V& sum, V a, V b) { asm("vfmadd231ps %2, %1, %0" : "+v"(sum.x) : "v"(b.x), "v"(a.x)); }
static inline void add_product(V& sum, const float* a, V b) { asm("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(sum.x) : "v"(b.x), "m"(*a)); }
#elif defined(UNSPOOL_AVX2) && !defined(UNSPOOL_SANITIZE)
static inline void add_product(__m256& sum, __m256 a, __m256 b) { asm("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(b), "x"(a)); }
static inline void add_product(V& sum, V a, V b) { add_product(sum.x, a.x, b.x), add_product(sum.y, a.y, b.y); }
static inline void add_product(V& sum, const float* a, V b) { add_product(sum, set1(*a), b); }
#else
static inline void add_product(V& sum, V a, V b) { sum = fma(a, b, sum); }
static inline void add_product(V& sum, const float* a, V b) { add_product(sum, set1(*a), b); }
#endif

#if !defined(UNSPOOL_AVX512) && !defined(UNSPOOL_AVX2)
static inline V lesser(V a, V b) { return select(a < b, a, b); }
static inline V greater(V a, V b) { return select(b < a, a, b); }
#endif
static inline V at_least(V v, float low) { return greater(set1(low), v); }
static inline V at_most(V v, float high) { return lesser(set1(high), v); }

// The fixed tree: lanes 0+8, 1+9, …; then 0+4, …; then 0+2, 1+3; then 0+1. The largest lane needs no order.
#if defined(UNSPOOL_AVX512) || defined(UNSPOOL_AVX2)
#if defined(UNSPOOL_AVX512)
static inline __m256 low_half(V v) { return _mm512_castps512_ps256(v.x); }
static inline __m256 high_half(V v) { return _mm512_extractf32x8_ps(v.x, 1); }
#else
static inline __m256 low_half(V v) { return v.x; }
static inline __m256 high_half(V v) { return v.y; }
#endif
static inline float reduce_add(V v) {
  const __m256 eight = _mm256_add_ps(low_half(v), high_half(v));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
static inline float reduce_max(V v) {
  const __m256 eight = _mm256_max_ps(low_half(v), high_half(v));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}
#else
static inline float reduce_add(V v) {
  float f[16];
  store(f, v);
  for (int half = 8; half > 0; half /= 2)
    for (int i = 0; i < half; i++) f[i] = f[i] + f[i + half];
  return f[0];
}
static inline float reduce_max(V v) {
  float f[16];
  store(f, v);
  for (int i = 1; i < 16; i++) f[0] = f[0] < f[i] ? f[i] : f[0];
  return f[0];
}
#endif

// Two vectors. A function of a Pair is two independent, interleaved chains of operations, which hides latency.
struct Pair { V a, b; };
static inline Pair fma(Pair x, Pair y, Pair z) { return {fma(x.a, y.a, z.a), fma(x.b, y.b, z.b)}; }
static inline Pair fnma(Pair x, Pair y, Pair z) { return {fnma(x.a, y.a, z.a), fnma(x.b, y.b, z.b)}; }
static inline Pair operator+(Pair x, Pair y) { return {x.a + y.a, x.b + y.b}; }
static inline Pair operator-(Pair x, Pair y) { return {x.a - y.a, x.b - y.b}; }
static inline Pair operator*(Pair x, Pair y) { return {x.a * y.a, x.b * y.b}; }
static inline Pair operator/(Pair x, Pair y) { return {x.a / y.a, x.b / y.b}; }
static inline Pair power_of_two(Pair m) { return {power_of_two(m.a), power_of_two(m.b)}; }
static inline Pair at_least(Pair v, float low) { return {at_least(v.a, low), at_least(v.b, low)}; }
static inline Pair at_most(Pair v, float high) { return {at_most(v.a, high), at_most(v.b, high)}; }
struct PairMask { Mask a, b; };
static inline PairMask operator<(Pair x, Pair y) { return {x.a < y.a, x.b < y.b}; }
static inline Pair select(PairMask m, Pair yes, Pair no) { return {select(m.a, yes.a, no.a), select(m.b, yes.b, no.b)}; }
static inline Pair abs(Pair v) { return {abs(v.a), abs(v.b)}; }

// The same number in every lane of a V or a Pair.
template <class T> static inline T all(float f);
template <> inline __attribute__((always_inline)) V all<V>(float f) { return set1(f); }
template <> inline __attribute__((always_inline)) Pair all<Pair>(float f) { return {set1(f), set1(f)}; }

// Load or store the first n lanes of a V, or a whole Pair.
template <class T> static inline T get(const float* p, int64_t n);
template <> inline __attribute__((always_inline)) V get<V>(const float* p, int64_t n) { return n >= LANES ? load(p) : load_n(p, (int)n); }
template <> inline __attribute__((always_inline)) Pair get<Pair>(const float* p, int64_t) { return {load(p), load(p + LANES)}; }
static inline void put(float* p, int64_t n, V v) {
  if (n >= LANES) store(p, v);
  else store_n(p, v, (int)n);
}
static inline void put(float* p, int64_t, Pair v) { store(p, v.a); store(p + LANES, v.b); }

// Calls body(T, j, n) for begin … end: first pairs, then single vectors, the last one partial.
template <class Body> static inline void along(int64_t begin, int64_t end, Body body) {
  int64_t j = begin;
  for (; j + 2 * LANES <= end; j += 2 * LANES) body(Pair{}, j, 2 * LANES);
  for (; j < end; j += LANES) body(V{}, j, end - j);
}

// The columns j … j+15 of a row of n; columns beyond the row read as zero.
static inline V load_to(const float* row, int64_t j, int64_t n) { return get<V>(row + j, n - j); }
static inline void store_to(float* row, int64_t j, int64_t n, V v) { put(row + j, n - j, v); }

// to[q * 16 + n] = from[n * stride + q] for q, n < 16: sixteen small transposes of 4 x 4.
typedef float Four __attribute__((vector_size(16), aligned(4)));
static inline void transpose_block(const float* from, int64_t stride, float* to) {
#pragma GCC unroll 4
  for (int n = 0; n < 16; n += 4)
#pragma GCC unroll 4
    for (int q = 0; q < 16; q += 4) {
      const float* p = from + n * stride + q;
      const Four a = *(const Four*)p, b = *(const Four*)(p + stride);
      const Four c = *(const Four*)(p + 2 * stride), d = *(const Four*)(p + 3 * stride);
      const Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), AB = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      const Four cd = __builtin_shufflevector(c, d, 0, 4, 1, 5), CD = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      float* r = to + q * 16 + n;
      *(Four*)r = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
      *(Four*)(r + 16) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
      *(Four*)(r + 32) = __builtin_shufflevector(AB, CD, 0, 1, 4, 5);
      *(Four*)(r + 48) = __builtin_shufflevector(AB, CD, 2, 3, 6, 7);
    }
}

}  // namespace unspool::UNSPOOL_SET
