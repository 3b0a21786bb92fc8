// Elementwise functions, dropout masks, and the norm of a gradient.
#pragma once
#include "engine/math-inl.h"
#include "kernels.h"
#include "runtime/philox.h"

namespace unspool::UNSPOOL_SET {

// Sums of squares in double precision, chunk by chunk in sixteen lanes: the order does not depend on the threads.
static void norm(const NormArgs& a, Team team) {
  const Range mine = partition((a.n + CHUNK - 1) / CHUNK, 1, team.index, team.count);
  for (int64_t chunk = mine.begin; chunk < mine.end; chunk++) {
    const int64_t end = (chunk + 1) * CHUNK < a.n ? (chunk + 1) * CHUNK : a.n;
    double lane[LANES] = {};
    for (int64_t j = chunk * CHUNK; j < end; j += LANES) {
      float g[LANES];
      store(g, load_to(a.g, j, end));
      for (int i = 0; i < LANES; i++) lane[i] += (double)g[i] * (double)g[i];
    }
    for (int half = LANES / 2; half > 0; half /= 2)
      for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    a.squares[chunk] = lane[0];
  }
}

static void drop(const DropArgs& a, Team team) {
  const Range mine = partition(a.n, 4, team.index, team.count);
  const float scale = 1.0f / (1.0f - a.rate);
  for (int64_t j = mine.begin; j < mine.end; j += 4) {
    uint32_t c[4] = {(uint32_t)(j / 4), (uint32_t)((uint64_t)(j / 4) >> 32), (uint32_t)a.stream, (uint32_t)(a.stream >> 32)};
    philox(c, (uint32_t)a.seed, (uint32_t)(a.seed >> 32));
    for (int i = 0; i < 4 && j + i < a.n; i++)
      a.out[j + i] = (float)(c[i] >> 8) * 0x1p-24f < a.rate ? 0.0f : scale;
  }
}

static void scale_rows(const ScaleRowsArgs& a, Team team) {
  const Range mine = partition(a.tau, 1, team.index, team.count);
  const int64_t n = a.B * a.H;
  for (int64_t t = mine.begin; t < mine.end; t++)
    for (int64_t j = 0; j < n; j += LANES)
      store_to(a.out + t * n, j, n, load_to(a.x + t * n, j, n) * load_to(a.mask, j, n));
}

template <int A> static void activate_as(const ActivateArgs& a, Team team) {
  const Range mine = partition(a.n, LANES, team.index, team.count);
  along(mine.begin, mine.end, [&](auto kind, int64_t j, int64_t m) {
    using T = decltype(kind);
    const T x = get<T>(a.x + j, m);
    put(a.out + j, m, a.slope ? slope<A>(x) : activate<A>(x));
  });
}

static void shift_rows(const ShiftRowsArgs& a, Team team) {
  const Range mine = partition(a.R, 1, team.index, team.count);
  for (int64_t r = mine.begin; r < mine.end; r++)
    for (int64_t j = 0; j < a.N; j += LANES) store_to(a.out + r * a.N, j, a.N, load_to(a.x + r * a.stride, j, a.N) + load_to(a.b, j, a.N));
}

// The activation of every value, or its derivative: for layers without a recurrence.
static void activate_all(const ActivateArgs& a, Team team) {
  if (a.activation == TANH) return activate_as<TANH>(a, team);
  if (a.activation == RELU) return activate_as<RELU>(a, team);
  if (a.activation == SIGMOID) return activate_as<SIGMOID>(a, team);
  activate_as<IDENTITY>(a, team);
}

}  // namespace unspool::UNSPOOL_SET
