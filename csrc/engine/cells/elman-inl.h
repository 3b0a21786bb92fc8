// The Elman recurrence.
//
//   a(t) = b + W h(t-1) + U x(t)                                   (10.8)
//   h(t) = act(a(t))                                               (10.9)
//
// and backwards
//
//   dh(t) = dh_out(t) + W^T da(t+1)                                (10.20, 10.21)
//   da(t) = act'(a(t)) dh(t)
#pragma once
#include "engine/math-inl.h"
#include "engine/recurrence-inl.h"

namespace unspool::UNSPOOL_SET {

template <int A> struct Activated {
  static const bool identity = false;
  template <class T> static inline __attribute__((always_inline)) T of(T a) { return activate<A>(a); }  // 10.9
};

template <int A> static void elman_forward_as(const ForwardArgs& a, Team team) {
  const Split s = split(a, team);
  const float* start[BLOCK];
  for (int64_t k = 0; k < a.tau; k++) {
    const int64_t t = a.reverse ? a.tau - 1 - k : k;
    const float* h_before = a.hs__tBH + before(a, t);
    const float* h_seen = h_for_product(a, s, t, team);
    float* h = a.hs__tBH + after(a, t);
    for (int64_t b = s.rows.begin; b < s.rows.end; b += BLOCK) {
      const int64_t n = s.rows.end - b < BLOCK ? s.rows.end - b : BLOCK;
      start_rows(a, t, b, n, start);
      Product p = product_with_W(a, s, h_seen + b * a.H, n, k % 2 == 1);
      p.start = start;
      p.C = h + b * a.H, p.ldc = a.H;
      gate_panels(p, s, 0, 1, [&] { product<Activated<A>>(p); });  // 10.8
      for (int64_t i = b; a.lengths__B && i < b + n; i++)
        if (!alive(a, t, i)) copy_units(s, h + i * a.H, h_before + i * a.H);
    }
    barrier(s, team);
  }
}

template <int A> static void elman_backward_as(const BackwardArgs& a, Team team) {
  const Split s = split(a, team);
  float* running = a.dh_start__BH;
  const bool keeps_dh = a.lengths__B || a.recurrent_mask__BH;  // else the product below overwrites dh
  load_final_gradient(a, s, a.dh_end__BH, running);
  for (int64_t k = a.tau - 1; k >= 0; k--) {
    const int64_t t = a.reverse ? a.tau - 1 - k : k;
    float* da = a.da__tBA + t * a.B * a.H;
    for (int64_t b = s.rows.begin; b < s.rows.end; b++) {
      const float* h = a.hs__tBH + after(a, t) + b * a.H;
      const float* out = a.dh__tBH ? a.dh__tBH + (t * a.B + b) * a.H : nullptr;
      const bool live = alive(a, t, b);
      float *da_at = da + b * a.H, *dh_at = running + b * a.H;
      along(s.units.begin, s.units.end, [&](auto kind, int64_t j, int64_t m) {
        using T = decltype(kind);
        const T none = all<T>(0.0f);
        T dh = get<T>(dh_at + j, m);
        if (out) dh = dh + get<T>(out + j, m);
        dh = flush(dh);
        put(da_at + j, m, live ? dh * slope<A>(get<T>(h + j, m)) : none);
        if (keeps_dh) put(dh_at + j, m, live ? none : dh);
      });
    }
    barrier(s, team);
    carry_back(a, s, {{da, 0, a.H}}, a.H, a.recurrent_mask__BH ? a.scratch__BH : running, a.recurrent_mask__BH || !a.lengths__B, k % 2 == 1);
    if (a.recurrent_mask__BH) carry_back_masked(a, s);
    if (a.xi__tB) multiply_by_xi(a, s, t, running);
  }
}

static void elman_forward(const ForwardArgs& a, Team team) {
  if (a.activation == TANH) return elman_forward_as<TANH>(a, team);
  if (a.activation == RELU) return elman_forward_as<RELU>(a, team);
  if (a.activation == SIGMOID) return elman_forward_as<SIGMOID>(a, team);
  elman_forward_as<IDENTITY>(a, team);
}

static void elman_backward(const BackwardArgs& a, Team team) {
  if (a.activation == TANH) return elman_backward_as<TANH>(a, team);
  if (a.activation == RELU) return elman_backward_as<RELU>(a, team);
  if (a.activation == SIGMOID) return elman_backward_as<SIGMOID>(a, team);
  elman_backward_as<IDENTITY>(a, team);
}

static constexpr Cell elman_cell() {
  Cell cell{};
  cell.name = "elman";
  cell.gates = 1;
  cell.has_W = true;
  cell.has_activation = true;
  cell.da = {1, 0};
  cell.W_gap_at = 1;
  cell.da_over = Cell::DH;
  cell.forward = elman_forward;
  cell.backward = elman_backward;
  return cell;
}

}  // namespace unspool::UNSPOOL_SET
