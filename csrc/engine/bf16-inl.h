// bf16: the upper half of a float32. Two of them share 32 bits: the even one in the lower half, the odd one in the upper.
#pragma once
#include "engine/simd-inl.h"

namespace unspool::UNSPOOL_SET {

// Sixteen lanes of 32 bits.
#if defined(UNSPOOL_AVX512)
struct Bits { __m512i x; };
static inline Bits load_bits(const uint32_t* p) { return {_mm512_loadu_si512(p)}; }
static inline void store_bits(uint32_t* p, Bits b) { _mm512_storeu_si512(p, b.x); }
static inline Bits bits_of(V v) { return {_mm512_castps_si512(v.x)}; }
static inline V floats_of(Bits b) { return {_mm512_castsi512_ps(b.x)}; }
static inline Bits all_bits(uint32_t u) { return {_mm512_set1_epi32((int)u)}; }
static inline Bits operator+(Bits a, Bits b) { return {_mm512_add_epi32(a.x, b.x)}; }
static inline Bits operator&(Bits a, Bits b) { return {_mm512_and_si512(a.x, b.x)}; }
static inline Bits operator|(Bits a, Bits b) { return {_mm512_or_si512(a.x, b.x)}; }
static inline Bits up16(Bits a) { return {_mm512_slli_epi32(a.x, 16)}; }
static inline Bits down16(Bits a) { return {_mm512_srli_epi32(a.x, 16)}; }
static inline Mask is_nan(V v) { return {_mm512_cmp_ps_mask(v.x, v.x, _CMP_UNORD_Q)}; }
#elif defined(UNSPOOL_AVX2)
struct Bits { __m256i x, y; };
static inline Bits load_bits(const uint32_t* p) { return {_mm256_loadu_si256((const __m256i*)p), _mm256_loadu_si256((const __m256i*)(p + 8))}; }
static inline void store_bits(uint32_t* p, Bits b) { _mm256_storeu_si256((__m256i*)p, b.x), _mm256_storeu_si256((__m256i*)(p + 8), b.y); }
static inline Bits bits_of(V v) { return {_mm256_castps_si256(v.x), _mm256_castps_si256(v.y)}; }
static inline V floats_of(Bits b) { return {_mm256_castsi256_ps(b.x), _mm256_castsi256_ps(b.y)}; }
static inline Bits all_bits(uint32_t u) { const __m256i b = _mm256_set1_epi32((int)u); return {b, b}; }
static inline Bits operator+(Bits a, Bits b) { return {_mm256_add_epi32(a.x, b.x), _mm256_add_epi32(a.y, b.y)}; }
static inline Bits operator&(Bits a, Bits b) { return {_mm256_and_si256(a.x, b.x), _mm256_and_si256(a.y, b.y)}; }
static inline Bits operator|(Bits a, Bits b) { return {_mm256_or_si256(a.x, b.x), _mm256_or_si256(a.y, b.y)}; }
static inline Bits up16(Bits a) { return {_mm256_slli_epi32(a.x, 16), _mm256_slli_epi32(a.y, 16)}; }
static inline Bits down16(Bits a) { return {_mm256_srli_epi32(a.x, 16), _mm256_srli_epi32(a.y, 16)}; }
static inline Mask is_nan(V v) { return {_mm256_cmp_ps(v.x, v.x, _CMP_UNORD_Q), _mm256_cmp_ps(v.y, v.y, _CMP_UNORD_Q)}; }
#elif defined(UNSPOOL_NEON)
struct Bits { uint32x4_t q[4]; };
#define UNSPOOL_BIT_QUARTERS(expression) \
  Bits r;                                \
  for (int i = 0; i < 4; i++) r.q[i] = (expression); \
  return r
static inline Bits load_bits(const uint32_t* p) { UNSPOOL_BIT_QUARTERS(vld1q_u32(p + 4 * i)); }
static inline void store_bits(uint32_t* p, Bits b) { for (int i = 0; i < 4; i++) vst1q_u32(p + 4 * i, b.q[i]); }
static inline Bits bits_of(V v) { UNSPOOL_BIT_QUARTERS(vreinterpretq_u32_f32(v.q[i])); }
static inline V floats_of(Bits b) { UNSPOOL_QUARTERS(vreinterpretq_f32_u32(b.q[i])); }
static inline Bits all_bits(uint32_t u) { UNSPOOL_BIT_QUARTERS(vdupq_n_u32(u)); }
static inline Bits operator+(Bits a, Bits b) { UNSPOOL_BIT_QUARTERS(vaddq_u32(a.q[i], b.q[i])); }
static inline Bits operator&(Bits a, Bits b) { UNSPOOL_BIT_QUARTERS(vandq_u32(a.q[i], b.q[i])); }
static inline Bits operator|(Bits a, Bits b) { UNSPOOL_BIT_QUARTERS(vorrq_u32(a.q[i], b.q[i])); }
static inline Bits up16(Bits a) { UNSPOOL_BIT_QUARTERS(vshlq_n_u32(a.q[i], 16)); }
static inline Bits down16(Bits a) { UNSPOOL_BIT_QUARTERS(vshrq_n_u32(a.q[i], 16)); }
static inline Mask is_nan(V v) {
  Mask r;
  for (int i = 0; i < 4; i++) r.q[i] = vmvnq_u32(vceqq_f32(v.q[i], v.q[i]));
  return r;
}
#else
struct Bits { uint32_t u[16]; };
#define UNSPOOL_BIT_LANES(expression) \
  Bits r;                             \
  for (int i = 0; i < 16; i++) r.u[i] = (expression); \
  return r
static inline Bits load_bits(const uint32_t* p) { UNSPOOL_BIT_LANES(p[i]); }
static inline void store_bits(uint32_t* p, Bits b) { for (int i = 0; i < 16; i++) p[i] = b.u[i]; }
// Lane by lane: GCC 12 for aarch64 reads a whole Bits that is copied from a V before the copy is made.
static inline uint32_t bits_of(float f) { uint32_t u; __builtin_memcpy(&u, &f, 4); return u; }
static inline float float_of(uint32_t u) { float f; __builtin_memcpy(&f, &u, 4); return f; }
static inline Bits bits_of(V v) { UNSPOOL_BIT_LANES(bits_of(v.f[i])); }
static inline V floats_of(Bits b) { UNSPOOL_LANES(float_of(b.u[i])); }
static inline Bits all_bits(uint32_t u) { UNSPOOL_BIT_LANES(u); }
static inline Bits operator+(Bits a, Bits b) { UNSPOOL_BIT_LANES(a.u[i] + b.u[i]); }
static inline Bits operator&(Bits a, Bits b) { UNSPOOL_BIT_LANES(a.u[i] & b.u[i]); }
static inline Bits operator|(Bits a, Bits b) { UNSPOOL_BIT_LANES(a.u[i] | b.u[i]); }
static inline Bits up16(Bits a) { UNSPOOL_BIT_LANES(a.u[i] << 16); }
static inline Bits down16(Bits a) { UNSPOOL_BIT_LANES(a.u[i] >> 16); }
static inline Mask is_nan(V v) {
  Mask r;
  for (int i = 0; i < 16; i++) r.b[i] = v.f[i] != v.f[i];
  return r;
}
#endif

// q(x): +0 where |x| < 2^-56, else the nearest bf16, ties to even; every NaN becomes one NaN. Every product of two such numbers is
// a multiple of 2^-126, so that no partial sum is denormal: AMX, which flushes denormal numbers, then agrees with ordinary sums.
static inline V round_bf16(V v) {
  const Bits bits = bits_of(v), even = down16(bits) & all_bits(1);
  const V rounded = floats_of((bits + (even + all_bits(0x7fff))) & all_bits(0xffff0000));  // an infinite number is kept
  const V number = select(abs(v) < set1(0x1p-56f), zero(), rounded);
  return select(is_nan(v), floats_of(all_bits(0x7fc00000)), number);
}

// Pairs of rounded numbers.
static inline Bits pairs_of(V even, V odd) { return down16(bits_of(even)) | bits_of(odd); }
static inline V even_of(Bits pairs) { return floats_of(up16(pairs)); }
static inline V odd_of(Bits pairs) { return floats_of(pairs & all_bits(0xffff0000)); }

#if defined(__AVX512BF16__)
// The rounded numbers of two vectors, one after the other: round_bf16 by the conversion of AVX512_BF16, which every machine with
// AMX has. Denormal numbers, which it flushes, are below 2^-56.
static inline __m512i round_to_bf16(V first, V second) {
  const __m512 least = _mm512_set1_ps(0x1p-56f);
  const __mmask16 a = _mm512_cmp_ps_mask(abs(first).x, least, _CMP_NLT_UQ), b = _mm512_cmp_ps_mask(abs(second).x, least, _CMP_NLT_UQ);
  return (__m512i)_mm512_maskz_cvtne2ps_pbh(_mm512_kunpackw(b, a), second.x, first.x);
}

// The pairs of two vectors, rounded.
static inline Bits rounded_pairs(V even, V odd) {
  alignas(64) static const uint16_t order[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return {_mm512_permutexvar_epi16(_mm512_load_si512(order), round_to_bf16(even, odd))};
}
#else
static inline Bits rounded_pairs(V even, V odd) { return pairs_of(round_bf16(even), round_bf16(odd)); }
#endif

}  // namespace unspool::UNSPOOL_SET
