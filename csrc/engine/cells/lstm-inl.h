// The LSTM, as PyTorch defines it; gate blocks in the order i f g o. The cell state is s, since c is a bias.
//
//   [i f g o](t) = [sig sig tanh sig](b + W h(t-1) + U x(t))
//   s(t) = f(t) s(t-1) + i(t) g(t)
//   h(t) = o(t) tanh(s(t))
#pragma once
#include "engine/math-inl.h"
#include "engine/recurrence-inl.h"

namespace unspool::UNSPOOL_SET {

static void lstm_forward(const ForwardArgs& a, Team team) {
  const Split s = split(a, team);
  const int64_t H = a.H, G = 4 * H, end = s.units.end;
  const float* start[BLOCK];
  for (int64_t k = 0; k < a.tau; k++) {
    const int64_t t = a.reverse ? a.tau - 1 - k : k;
    const float* h_seen = h_for_product(a, s, t, team);
    const int64_t past = before(a, t), now = after(a, t);
    float* gates = a.tape__tBT + t * a.B * G;
    for (int64_t b = s.rows.begin; b < s.rows.end; b += BLOCK) {
      const int64_t n = s.rows.end - b < BLOCK ? s.rows.end - b : BLOCK;
      start_rows(a, t, b, n, start);
      Product p = product_with_W(a, s, h_seen + b * H, n, k % 2 == 1);
      p.start = start;
      p.C = gates + b * G, p.ldc = G;
      gate_panels(p, s, 0, 4, [&] { product(p); });
      for (int64_t r = b; r < b + n; r++) {
        float* row = gates + r * G;
        const float* s_past = a.ss__tBH + past + r * H;
        float *h_now = a.hs__tBH + now + r * H, *s_now = a.ss__tBH + now + r * H;
        if (!alive(a, t, r)) {
          copy_units(s, h_now, a.hs__tBH + past + r * H);
          copy_units(s, s_now, s_past);
          continue;
        }
        along(s.units.begin, end, [&](auto kind, int64_t j, int64_t m) {
          using T = decltype(kind);
          const T di = sigmoid_below(get<T>(row + j, m)), df = sigmoid_below(get<T>(row + H + j, m));
          const T dO = sigmoid_below(get<T>(row + 3 * H + j, m));
          const Fraction<T> t = tanh_fraction(get<T>(row + 2 * H + j, m));
          const T left = di * df, right = dO * t.below;  // four gates, one division
          const T over = all<T>(1.0f) / (left * right), over_left = over * right, over_right = over * left;
          const T i = over_left * df, f = over_left * di;
          const T o = over_right * t.below, g = over_right * dO * t.above;
          const T cell = fma(f, get<T>(s_past + j, m), i * g);
          put(row + j, m, i);
          put(row + H + j, m, f);
          put(row + 2 * H + j, m, g);
          put(row + 3 * H + j, m, o);
          put(s_now + j, m, cell);
          put(h_now + j, m, o * tanh(cell));
        });
      }
    }
    barrier(s, team);
  }
}

static void lstm_backward(const BackwardArgs& a, Team team) {
  const Split s = split(a, team);
  const int64_t H = a.H, G = 4 * H, end = s.units.end;
  float *running = a.dh_start__BH, *running_s = a.ds_start__BH;
  const bool keeps_dh = a.lengths__B || a.recurrent_mask__BH;  // else the product below overwrites dh
  load_final_gradient(a, s, a.dh_end__BH, running);
  load_final_gradient(a, s, a.ds_end__BH, running_s);
  for (int64_t k = a.tau - 1; k >= 0; k--) {
    const int64_t t = a.reverse ? a.tau - 1 - k : k;
    float* da_t = a.da__tBA + t * a.B * G;
    for (int64_t b = s.rows.begin; b < s.rows.end; b++) {
      const float* row = a.tape__tBT + (t * a.B + b) * G;
      const float *s_past = a.ss__tBH + before(a, t) + b * H, *s_now = a.ss__tBH + after(a, t) + b * H;
      const float* out = a.dh__tBH ? a.dh__tBH + (t * a.B + b) * H : nullptr;
      const bool live = alive(a, t, b);
      float *da = da_t + b * G, *dh_at = running + b * H, *ds_at = running_s + b * H;
      along(s.units.begin, end, [&](auto kind, int64_t j, int64_t m) {
        using T = decltype(kind);
        const T one = all<T>(1.0f), none = all<T>(0.0f);
        T dh = get<T>(dh_at + j, m);
        if (out) dh = dh + get<T>(out + j, m);
        dh = flush(dh);
        if (!live) {
          for (int g = 0; g < 4; g++) put(da + g * H + j, m, none);
          put(dh_at + j, m, dh);
          return;
        }
        const T i = get<T>(row + j, m), f = get<T>(row + H + j, m);
        const T g = get<T>(row + 2 * H + j, m), o = get<T>(row + 3 * H + j, m);
        const T squashed = tanh(get<T>(s_now + j, m));
        const T ds = fma(dh * o, fnma(squashed, squashed, one), get<T>(ds_at + j, m));
        put(da + j, m, ds * g * fnma(i, i, i));
        put(da + H + j, m, ds * get<T>(s_past + j, m) * fnma(f, f, f));
        put(da + 2 * H + j, m, ds * i * fnma(g, g, one));
        put(da + 3 * H + j, m, dh * squashed * fnma(o, o, o));
        put(ds_at + j, m, flush(ds * f));
        if (keeps_dh) put(dh_at + j, m, none);
      });
    }
    barrier(s, team);
    carry_back(a, s, {{da_t, 0, G}}, G, a.recurrent_mask__BH ? a.scratch__BH : running, a.recurrent_mask__BH || !a.lengths__B, k % 2 == 1);
    if (a.recurrent_mask__BH) carry_back_masked(a, s);
    if (a.xi__tB) multiply_by_xi(a, s, t, running);
    if (a.xi__tB) multiply_by_xi(a, s, t, running_s);
  }
}

static constexpr Cell lstm_cell() {
  Cell cell{};
  cell.name = "lstm";
  cell.gates = 4;
  cell.has_W = true;
  cell.has_cell_state = true;
  cell.tape = {4, 0};  // i f g o
  cell.da = {4, 0};
  cell.W_gap_at = 4;
  cell.da_over = Cell::TAPE;
  cell.forward = lstm_forward;
  cell.backward = lstm_backward;
  return cell;
}

}  // namespace unspool::UNSPOOL_SET
