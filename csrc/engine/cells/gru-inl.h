// The GRU, as PyTorch defines it; gate blocks in the order r z n. The bias d is inside the reset product.
//
//   r(t) = sig(b_r + W_r h(t-1) + U_r x(t))
//   z(t) = sig(b_z + W_z h(t-1) + U_z x(t))
//   q(t) = d + W_n h(t-1)
//   n(t) = tanh(b_n + U_n x(t) + r(t) q(t))
//   h(t) = (1 - z(t)) n(t) + z(t) h(t-1)
//
// The tape holds r z n q, and da the gradients of these four.
#pragma once
#include "engine/math-inl.h"
#include "engine/recurrence-inl.h"

namespace unspool::UNSPOOL_SET {

static void gru_forward(const ForwardArgs& a, Team team) {
  const Split s = split(a, team);
  const int64_t H = a.H, G = 4 * H, end = s.units.end;
  const float *start[BLOCK], *bias[BLOCK];
  for (int64_t i = 0; i < BLOCK; i++) bias[i] = a.parameters[0].value;
  for (int64_t k = 0; k < a.tau; k++) {
    const int64_t t = a.reverse ? a.tau - 1 - k : k;
    const float* h_seen = h_for_product(a, s, t, team);
    const float* h_before = a.hs__tBH + before(a, t);
    float* gates = a.tape__tBT + t * a.B * G;
    for (int64_t b = s.rows.begin; b < s.rows.end; b += BLOCK) {
      const int64_t n = s.rows.end - b < BLOCK ? s.rows.end - b : BLOCK;
      start_rows(a, t, b, n, start);
      Product p = product_with_W(a, s, h_seen + b * H, n, k % 2 == 1);
      p.C = gates + b * G, p.ldc = G;
      for (int i = 0; i < 2; i++) {
        const bool q = (i == 1) != p.backwards;  // q lies behind n, one block further on than W_n
        p.start = q ? bias : start, p.start_shift = q ? -2 * H : 0;
        p.shift = q ? H : 0;
        gate_panels(p, s, q ? 2 : 0, q ? 1 : 2, [&] { product(p); });
      }
      for (int64_t i = b; i < b + n; i++) {
        float *row = gates + i * G, *h = a.hs__tBH + after(a, t) + i * H;
        if (!alive(a, t, i)) { copy_units(s, h, h_before + i * H); continue; }
        const float* from = start[i - b] + 2 * H;
        along(s.units.begin, end, [&](auto kind, int64_t j, int64_t m) {
          using T = decltype(kind);
          const T dr = sigmoid_below(get<T>(row + j, m)), dz = sigmoid_below(get<T>(row + H + j, m));
          const T over = all<T>(1.0f) / (dr * dz), r = over * dz, z = over * dr;  // two gates, one division
          const T candidate = tanh(fma(r, get<T>(row + 3 * H + j, m), get<T>(from + j, m)));
          put(row + j, m, r);
          put(row + H + j, m, z);
          put(row + 2 * H + j, m, candidate);
          put(h + j, m, fma(z, get<T>(h_before + i * H + j, m) - candidate, candidate));
        });
      }
    }
    barrier(s, team);
  }
}

static void gru_backward(const BackwardArgs& a, Team team) {
  const Split s = split(a, team);
  const int64_t H = a.H, G = 4 * H, end = s.units.end;
  float* running = a.dh_start__BH;
  load_final_gradient(a, s, a.dh_end__BH, running);
  for (int64_t k = a.tau - 1; k >= 0; k--) {
    const int64_t t = a.reverse ? a.tau - 1 - k : k;
    float* da_t = a.da__tBA + t * a.B * G;
    for (int64_t b = s.rows.begin; b < s.rows.end; b++) {
      const float* row = a.tape__tBT + (t * a.B + b) * G;
      const float* h_before = a.hs__tBH + before(a, t) + b * H;
      const float* out = a.dh__tBH ? a.dh__tBH + (t * a.B + b) * H : nullptr;
      const bool live = alive(a, t, b);
      float *da = da_t + b * G, *dh_at = running + b * H;
      along(s.units.begin, end, [&](auto kind, int64_t j, int64_t m) {
        using T = decltype(kind);
        const T one = all<T>(1.0f);
        T dh = get<T>(dh_at + j, m);
        if (out) dh = dh + get<T>(out + j, m);
        dh = flush(dh);
        if (!live) {
          for (int g = 0; g < 4; g++) put(da + g * H + j, m, all<T>(0.0f));
          put(dh_at + j, m, dh);
          return;
        }
        const T r = get<T>(row + j, m), z = get<T>(row + H + j, m);
        const T n = get<T>(row + 2 * H + j, m), q = get<T>(row + 3 * H + j, m);
        const T dn = dh * (one - z) * fnma(n, n, one);
        put(da + j, m, dn * q * fnma(r, r, r));
        put(da + H + j, m, dh * (get<T>(h_before + j, m) - n) * fnma(z, z, z));
        put(da + 2 * H + j, m, dn);
        put(da + 3 * H + j, m, dn * r);
        put(dh_at + j, m, dh * z);
      });
    }
    barrier(s, team);
    float* to = a.recurrent_mask__BH ? a.scratch__BH : running;
    const Columns parts[] = {{da_t, 0, 2 * H}, {da_t + 3 * H, 2 * H, H}};  // r z, then q
    carry_back(a, s, parts, G, to, a.recurrent_mask__BH != nullptr, k % 2 == 1);
    if (a.recurrent_mask__BH) carry_back_masked(a, s);
    if (a.xi__tB) multiply_by_xi(a, s, t, running);
  }
}

static constexpr Cell gru_cell() {
  Cell cell{};
  cell.name = "gru";
  cell.gates = 3;
  cell.has_W = true;
  cell.tape = {4, 0};  // r z n q
  cell.da = {4, 0};    // the same; r z q belong to W
  cell.W_gap_at = 2;
  cell.W_gap = 1;
  cell.da_over = Cell::TAPE;
  cell.parameter_count = 1;
  cell.parameters[0].name = "d";
  cell.parameters[0].rows = {1, 0};
  cell.parameters[0].da = {3, 0};  // q
  cell.forward = gru_forward;
  cell.backward = gru_backward;
  return cell;
}

}  // namespace unspool::UNSPOOL_SET
