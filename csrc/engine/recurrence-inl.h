// Parts of every recurrence: the split of a window among threads, and one step forward or backward in time.
#pragma once
#include "engine/rows-inl.h"
#include "runtime/caches.h"

namespace unspool::UNSPOOL_SET {

// By rows: each thread computes all steps of its rows of the batch without a barrier. By units: each thread computes its hidden
// units, keeps its columns of W in its L2 cache, and waits for the others at a barrier after every step. This is faster if W
// exceeds the L2 cache and the rows are too few to amortise reading W at every step. The bits are the same.
// With tiles, reading W takes most of the time if it exceeds the L2 cache: by units, as long as a thread then reads less.
// A cell that needs whole rows, for a norm over all units, uses split_by_rows.
struct Split {
  Range rows, units;
  bool by_units;
  bool prefetch;  // W exceeds the L2 cache: prefetch its panels
  float* rounded;  // bf16: of this thread
};
static inline float* rounded_of(const WindowArgs& a, Team team) { return a.rounded ? a.rounded + team.index * a.rounded_floats : nullptr; }
static inline Split split_by_rows(const WindowArgs& a, Team team) {
  return {partition(a.B, 1, team.index, team.count), {0, a.H}, false, false, rounded_of(a, team)};
}
#if defined(UNSPOOL_AMX)
static const int64_t ROWS_BY_UNITS = ROWS_AT_ONCE;  // not measured
#else
static const int64_t ROWS_BY_UNITS = 32;  // as measured
#endif
static inline Split split(const WindowArgs& a, Team team) {
  const int64_t bytes = a.W.floats() * 4;
  const int64_t L2 = L2_bytes();
  const bool large = bytes > L2 + L2 / 2;
  const bool by_units = team.count > 1 && (a.B < team.count ? bytes > L2 / 2 : large && a.B < ROWS_BY_UNITS * team.count);
  if (by_units) return {{0, a.B}, partition(a.H, LANES, team.index, team.count), true, true, rounded_of(a, team)};
  Split rows = split_by_rows(a, team);
  rows.prefetch = large;
  return rows;
}

static inline void barrier(const Split& s, Team team) {
  if (s.by_units) team.barrier->wait();
}

static inline bool alive(const WindowArgs& a, int64_t t, int64_t b) { return !a.lengths__B || t < a.lengths__B[b]; }

static inline int64_t before(const WindowArgs& a, int64_t t) { return (a.reverse ? t + 1 : t) * a.B * a.H; }
static inline int64_t after(const WindowArgs& a, int64_t t) { return (a.reverse ? t : t + 1) * a.B * a.H; }

static const int64_t BLOCK = ROWS_AT_ONCE;  // rows per product

// The rows of b + U x(t): the initial values of the pre-activations.
static inline void start_rows(const ForwardArgs& a, int64_t t, int64_t b, int64_t n, const float** start) {
  for (int64_t i = 0; i < n; i++) {
    const int64_t r = t * a.B + b + i;
    if (a.p__tBP) start[i] = a.p__tBP + r * a.P;
    else start[i] = a.table__KP + (alive(a, t, b + i) ? (int64_t)a.ids__tB[r] : 0) * a.P;
  }
}

// h(t-1) as the products use it: times the dropout mask, if there is one.
static inline const float* h_for_product(const ForwardArgs& a, const Split& s, int64_t t, Team team) {
  const float* h = a.hs__tBH + before(a, t);
  if (!a.recurrent_mask__BH) return h;
  float* masked = a.h_masked__tBH + t * a.B * a.H;
  for (int64_t b = s.rows.begin; b < s.rows.end; b++)
    for (int64_t j = s.units.begin; j < s.units.end; j += LANES)
      store_to(masked + b * a.H, j, s.units.end, load_to(h + b * a.H, j, s.units.end) * load_to(a.recurrent_mask__BH + b * a.H, j, s.units.end));
  barrier(s, team);
  return masked;
}

// Calls body() for the panels of gates g … g+n-1 that hold this thread's units; backwards, the last gate first: if W exceeds the
// L2 cache, the gates that a step reads last are the first of the next step, and a part of them is still in the cache.
template <class Body> static inline void gate_panels(Product& p, const Split& s, int g, int n, Body body) {
  const int64_t per_group = p.B.panels_per_group();
  if (!s.by_units) {
    p.first_panel = g * per_group, p.last_panel = (g + n) * per_group;
    return body();
  }
  for (int i = 0; i < n; i++) {
    const int q = p.backwards ? g + n - 1 - i : g + i;
    p.first_panel = q * per_group + s.units.begin / LANES;
    p.last_panel = q * per_group + (s.units.end + LANES - 1) / LANES;
    body();
  }
}

// W h for n rows of h; the caller sets start and C.
static inline Product product_with_W(const ForwardArgs& a, const Split& s, const float* h, int64_t n, bool backwards) {
  Product p;
  p.M = n, p.K = a.H;
  p.A = h, p.lda = a.H;
  p.B = a.W;
  p.backwards = backwards, p.prefetch = s.prefetch;
  p.rounded = s.rounded;
  return p;
}

static inline void copy_units(const Split& s, float* to, const float* from) {
  __builtin_memcpy(to + s.units.begin, from + s.units.begin, (size_t)(s.units.end - s.units.begin) * 4);
}

// Columns of da, and the rows of W that they are multiplied with.
struct Columns {
  const float* da;
  int64_t first_k, K;
};

// dh(t-1) = carried + W^T da(t), the last part of every step backward, for parts of da in rising order of the rows of W. If W
// exceeds the L2 cache, all parts of some panels come before the next panels: a step that goes backwards finds them in the cache.
template <int N>
static inline void carry_back(const WindowArgs& a, const Split& s, const Columns (&parts)[N], int64_t lda, float* to, bool from_zero, bool backwards) {
  const float* start[BLOCK];
  const int64_t first = s.units.begin / LANES, last = (s.units.end + LANES - 1) / LANES;
  const int64_t step = N > 1 && s.prefetch && PRECISION == Precision::FLOAT32 ? 8 : last - first;
  for (int64_t b = s.rows.begin; b < s.rows.end; b += BLOCK) {
    const int64_t n = s.rows.end - b < BLOCK ? s.rows.end - b : BLOCK;
    for (int64_t i = 0; i < n; i++) start[i] = to + (b + i) * a.H;
    for (int64_t done = 0; done < last - first; done += step) {
      const int64_t some = last - first - done < step ? last - first - done : step, from = backwards ? last - done - some : first + done;
      for (int part = 0; part < N; part++) {
        Product p;
        p.M = n, p.first_k = parts[part].first_k, p.K = parts[part].K;
        p.A = parts[part].da + b * lda, p.lda = lda;
        p.B = a.W, p.first_panel = from, p.last_panel = from + some;
        p.start = from_zero && part == 0 ? nullptr : start;
        p.C = to + b * a.H, p.ldc = a.H;
        p.backwards = backwards, p.prefetch = s.prefetch;
        p.rounded = s.rounded;
        product(p);
      }
    }
  }
}

// With a dropout mask: dh(t-1) = carried + mask * (W^T da(t)); the product is in scratch__BH.
static inline void carry_back_masked(const BackwardArgs& a, const Split& s) {
  for (int64_t b = s.rows.begin; b < s.rows.end; b++)
    for (int64_t j = s.units.begin; j < s.units.end; j += LANES) {
      float* to = a.dh_start__BH + b * a.H;
      store_to(to, j, s.units.end, fma(load_to(a.recurrent_mask__BH + b * a.H, j, s.units.end),
                                       load_to(a.scratch__BH + b * a.H, j, s.units.end), load_to(to, j, s.units.end)));
    }
}

// Multiply the gradient that step t passes to step t-1 by xi(t); zero truncates it. Frozen rows have no step.
static inline void multiply_by_xi(const BackwardArgs& a, const Split& s, int64_t t, float* running) {
  for (int64_t b = s.rows.begin; b < s.rows.end; b++) {
    if (!alive(a, t, b)) continue;
    const V xi = set1(a.xi__tB[t * a.B + b]);
    float* row = running + b * a.H;
    for (int64_t j = s.units.begin; j < s.units.end; j += LANES) store_to(row, j, s.units.end, xi * load_to(row, j, s.units.end));
  }
}

// Start from the gradient of the final state, or from zero.
static inline void load_final_gradient(const BackwardArgs& a, const Split& s, const float* end, float* running) {
  for (int64_t b = s.rows.begin; b < s.rows.end; b++)
    for (int64_t j = s.units.begin; j < s.units.end; j++) running[b * a.H + j] = end ? end[b * a.H + j] : 0.0f;
}

}  // namespace unspool::UNSPOOL_SET
