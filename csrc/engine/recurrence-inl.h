// Parts of every recurrence: the split of a window among threads, and one step forward or backward in time.
#pragma once
#include "engine/gemm-inl.h"
#include "runtime/caches.h"

namespace unspool::UNSPOOL_SET {

// Rows of the batch belong to threads, and each thread takes its rows through all steps without waiting. Where
// W is too large for a core's own cache and the rows are too few to make up for reading all of it at every step, units
// belong to threads instead: each keeps its columns of W, and all meet at every step. Either way the bits are the same.
// A cell that needs whole rows, for a norm over all units, uses split_by_rows.
struct Split {
  Range rows, units;
  bool meet;
  bool ahead;  // W is larger than a core's own cache: its panels are called for before they are needed
};
static inline Split split_by_rows(const WindowArgs& a, Team team) { return {share(a.B, 1, team.index, team.count), {0, a.H}, false, false}; }
static inline Split split(const WindowArgs& a, Team team) {
  const int64_t bytes = a.W.K * a.W.N * 4;
  const int64_t L2 = L2_bytes();
  const bool large = bytes > L2 + L2 / 2;
  const bool by_units = team.count > 1 && (a.B < team.count ? bytes > L2 / 2 : large && a.B < 32 * team.count);  // as measured
  if (by_units) return {{0, a.B}, share(a.H, LANES, team.index, team.count), true, true};
  Split rows = split_by_rows(a, team);
  rows.ahead = large;
  return rows;
}

static inline void meet(const Split& s, Team team) {
  if (s.meet) team.barrier->wait();
}

static inline bool alive(const WindowArgs& a, int64_t t, int64_t b) { return !a.lengths__B || t < a.lengths__B[b]; }

static inline int64_t before(const WindowArgs& a, int64_t t) { return (a.reverse ? t + 1 : t) * a.B * a.H; }
static inline int64_t after(const WindowArgs& a, int64_t t) { return (a.reverse ? t : t + 1) * a.B * a.H; }

static const int64_t BLOCK = 64;  // rows of one product

// The rows of b + U x(t) from which the pre-activations start.
static inline void start_rows(const ForwardArgs& a, int64_t t, int64_t b, int64_t n, const float** start) {
  for (int64_t i = 0; i < n; i++) {
    const int64_t r = t * a.B + b + i;
    if (a.p__tBP) start[i] = a.p__tBP + r * a.P;
    else start[i] = a.table__KP + (alive(a, t, b + i) ? (int64_t)a.ids__tB[r] : 0) * a.P;
  }
}

// h(t-1) as the products see it: under the dropout mask where there is one.
static inline const float* operand(const ForwardArgs& a, const Split& s, int64_t t, Team team) {
  const float* h = a.hs__tBH + before(a, t);
  if (!a.keep__BH) return h;
  float* kept = a.kept__tBH + t * a.B * a.H;
  for (int64_t b = s.rows.begin; b < s.rows.end; b++)
    for (int64_t j = s.units.begin; j < s.units.end; j += LANES)
      store_to(kept + b * a.H, j, s.units.end, load_to(h + b * a.H, j, s.units.end) * load_to(a.keep__BH + b * a.H, j, s.units.end));
  meet(s, team);
  return kept;
}

// Calls body() with the panels of gates g … g+n-1 that hold this thread's units.
template <class Body> static inline void gate_panels(Product& p, const Split& s, int g, int n, Body body) {
  const int64_t a_group = p.B.panels_a_group();
  if (!s.meet) {
    p.first_panel = g * a_group, p.last_panel = (g + n) * a_group;
    return body();
  }
  for (int q = g; q < g + n; q++) {
    p.first_panel = q * a_group + s.units.begin / LANES;
    p.last_panel = q * a_group + (s.units.end + LANES - 1) / LANES;
    body();
  }
}

// W h for n rows of h: the caller sets where the sums start and where they go.
static inline Product product_with_W(const ForwardArgs& a, const Split& s, const float* h, int64_t n, bool backwards) {
  Product p;
  p.M = n, p.K = a.H;
  p.A = h, p.lda = a.H;
  p.B = a.W;
  p.backwards = backwards, p.ahead = s.ahead;
  return p;
}

static inline void copy_units(const Split& s, float* to, const float* from) {
  __builtin_memcpy(to + s.units.begin, from + s.units.begin, (size_t)(s.units.end - s.units.begin) * 4);
}

// dh(t-1) = carried + W^T da(t): every cell's last step backwards. The K columns of da meet the rows of W from
// first_k on.
static inline void carry_back(const WindowArgs& a, const Split& s, const float* da, int64_t lda, int64_t first_k, int64_t K,
                              float* to, bool fresh, bool backwards) {
  const float* start[BLOCK];
  for (int64_t b = s.rows.begin; b < s.rows.end; b += BLOCK) {
    const int64_t n = s.rows.end - b < BLOCK ? s.rows.end - b : BLOCK;
    for (int64_t i = 0; i < n; i++) start[i] = to + (b + i) * a.H;
    Product p;
    p.M = n, p.first_k = first_k, p.K = K;
    p.A = da + b * lda, p.lda = lda;
    p.B = a.W, p.first_panel = s.units.begin / LANES, p.last_panel = (s.units.end + LANES - 1) / LANES;
    p.start = fresh ? nullptr : start;
    p.C = to + b * a.H, p.ldc = a.H;
    p.backwards = backwards, p.ahead = s.ahead;
    product(p);
  }
}

// The same under a dropout mask: dh(t-1) = carried + keep * (W^T da(t)); the product is in `spare`.
static inline void carry_kept(const BackwardArgs& a, const Split& s) {
  for (int64_t b = s.rows.begin; b < s.rows.end; b++)
    for (int64_t j = s.units.begin; j < s.units.end; j += LANES) {
      float* to = a.dh_start__BH + b * a.H;
      store_to(to, j, s.units.end, fma(load_to(a.keep__BH + b * a.H, j, s.units.end),
                                       load_to(a.spare__BH + b * a.H, j, s.units.end), load_to(to, j, s.units.end)));
    }
}

// What a step hands on to the one before it, times xi(t): zero cuts the chain there. A frozen row made no step.
static inline void weigh_chain(const BackwardArgs& a, const Split& s, int64_t t, float* running) {
  for (int64_t b = s.rows.begin; b < s.rows.end; b++) {
    if (!alive(a, t, b)) continue;
    const V xi = set1(a.xi__tB[t * a.B + b]);
    float* row = running + b * a.H;
    for (int64_t j = s.units.begin; j < s.units.end; j += LANES) store_to(row, j, s.units.end, xi * load_to(row, j, s.units.end));
  }
}

// The gradient that arrives from beyond the window, or zero.
static inline void arrive(const BackwardArgs& a, const Split& s, const float* end, float* running) {
  for (int64_t b = s.rows.begin; b < s.rows.end; b++)
    for (int64_t j = s.units.begin; j < s.units.end; j++) running[b * a.H + j] = end ? end[b * a.H + j] : 0.0f;
}

}  // namespace unspool::UNSPOOL_SET
