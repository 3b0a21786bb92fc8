// The LSTM with layer normalisation of its cell state (after Ba, Kiros and Hinton 2016); gate blocks in the order i f g o.
//
//   [i f g o](t) = [sig sig tanh sig](b + W h(t-1) + U x(t))
//   s(t) = f(t) s(t-1) + i(t) g(t)
//   n(t) = (s(t) - mean) / deviation          over the H units of a row
//   h(t) = o(t) tanh(alpha n(t) + beta)
//
// The tape holds i f g o, n and tanh(…); da the gradients of the four gates, of alpha and of beta. A row is normalised by one thread.
#pragma once
#include "engine/math-inl.h"
#include "engine/recurrence-inl.h"

namespace unspool::UNSPOOL_SET {

static const float NORM_EPSILON = 1e-5f;
static const float ONES[LANES] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

// The mean over a row of n values of value(j, m), which is zero in lanes beyond m: vectors in order, then a fixed tree.
template <class Value> static inline float row_mean(int64_t n, Value value) {
  V sum = set1(0.0f);
  for (int64_t j = 0; j < n; j += LANES) sum = sum + value(j, n - j < LANES ? n - j : LANES);
  return reduce_add(sum) / (float)n;
}

// 1 / sqrt(variance + epsilon) of a row with this mean.
static inline float over_deviation(const float* row, int64_t n, float mean) {
  const V shift = set1(mean);
  const float variance = row_mean(n, [&](int64_t j, int64_t m) {
    const V d = (get<V>(row + j, m) - shift) * get<V>(ONES, m);
    return d * d;
  });
  return 1.0f / __builtin_sqrtf(variance + NORM_EPSILON);
}

static void lnlstm_forward(const ForwardArgs& a, Team team) {
  Split mine = split_by_rows(a, team);
  mine.prefetch = a.W.K * a.W.N * 4 > L2_bytes();
  const int64_t H = a.H, G = 6 * H;
  const float *start[BLOCK], *alpha = a.parameters[0].value, *beta = a.parameters[1].value;
  for (int64_t k = 0; k < a.tau; k++) {
    const int64_t t = a.reverse ? a.tau - 1 - k : k;
    const float* h_seen = h_for_product(a, mine, t, team);
    const int64_t past = before(a, t), now = after(a, t);
    float* gates = a.tape__tBT + t * a.B * G;
    for (int64_t b = mine.rows.begin; b < mine.rows.end; b += BLOCK) {
      const int64_t n = mine.rows.end - b < BLOCK ? mine.rows.end - b : BLOCK;
      start_rows(a, t, b, n, start);
      Product p = product_with_W(a, mine, h_seen + b * H, n, k % 2 == 1);
      p.start = start;
      p.C = gates + b * G, p.ldc = G;
      gate_panels(p, mine, 0, 4, [&] { product(p); });
      for (int64_t r = b; r < b + n; r++) {
        float* row = gates + r * G;
        const float* s_past = a.ss__tBH + past + r * H;
        float *h_now = a.hs__tBH + now + r * H, *s_now = a.ss__tBH + now + r * H;
        if (!alive(a, t, r)) {
          copy_units(mine, h_now, a.hs__tBH + past + r * H);
          copy_units(mine, s_now, s_past);
          continue;
        }
        along(0, H, [&](auto kind, int64_t j, int64_t m) {
          using T = decltype(kind);
          const T di = sigmoid_below(get<T>(row + j, m)), df = sigmoid_below(get<T>(row + H + j, m));
          const T dO = sigmoid_below(get<T>(row + 3 * H + j, m));
          const Fraction<T> t = tanh_fraction(get<T>(row + 2 * H + j, m));
          const T left = di * df, right = dO * t.below;  // four gates, one division
          const T over = all<T>(1.0f) / (left * right), over_left = over * right, over_right = over * left;
          const T i = over_left * df, f = over_left * di, g = over_right * dO * t.above;
          put(row + j, m, i);
          put(row + H + j, m, f);
          put(row + 2 * H + j, m, g);
          put(row + 3 * H + j, m, over_right * t.below);
          put(s_now + j, m, fma(f, get<T>(s_past + j, m), i * g));
        });
        const float mean = row_mean(H, [&](int64_t j, int64_t m) { return get<V>(s_now + j, m); });
        const float over = over_deviation(s_now, H, mean);
        along(0, H, [&](auto kind, int64_t j, int64_t m) {
          using T = decltype(kind);
          const T norm = (get<T>(s_now + j, m) - all<T>(mean)) * all<T>(over);
          const T squashed = tanh(fma(get<T>(alpha + j, m), norm, get<T>(beta + j, m)));
          put(row + 4 * H + j, m, norm);
          put(row + 5 * H + j, m, squashed);
          put(h_now + j, m, get<T>(row + 3 * H + j, m) * squashed);
        });
      }
    }
  }
}

static void lnlstm_backward(const BackwardArgs& a, Team team) {
  Split mine = split_by_rows(a, team);
  mine.prefetch = a.W.K * a.W.N * 4 > L2_bytes();
  const int64_t H = a.H, G = 6 * H;
  const float* alpha = a.parameters[0].value;
  float *running = a.dh_start__BH, *running_s = a.ds_start__BH;
  load_final_gradient(a, mine, a.dh_end__BH, running);
  load_final_gradient(a, mine, a.ds_end__BH, running_s);
  for (int64_t k = a.tau - 1; k >= 0; k--) {
    const int64_t t = a.reverse ? a.tau - 1 - k : k;
    float* da_t = a.da__tBA + t * a.B * G;
    for (int64_t b = mine.rows.begin; b < mine.rows.end; b++) {
      const float* row = a.tape__tBT + (t * a.B + b) * G;
      const float *s_past = a.ss__tBH + before(a, t) + b * H, *s_now = a.ss__tBH + after(a, t) + b * H;
      const float* out = a.dh__tBH ? a.dh__tBH + (t * a.B + b) * H : nullptr;
      float *da = da_t + b * G, *dh_at = running + b * H, *ds_at = running_s + b * H, *dn = a.cell_scratch__BS + b * 2 * H;
      if (!alive(a, t, b)) {
        along(0, H, [&](auto kind, int64_t j, int64_t m) {
          using T = decltype(kind);
          for (int g = 0; g < 6; g++) put(da + g * H + j, m, all<T>(0.0f));
          if (out) put(dh_at + j, m, flush(get<T>(dh_at + j, m) + get<T>(out + j, m)));
        });
        continue;
      }
      const float mean = row_mean(H, [&](int64_t j, int64_t m) { return get<V>(s_now + j, m); });
      const float over = over_deviation(s_now, H, mean);
      along(0, H, [&](auto kind, int64_t j, int64_t m) {  // the gradient of alpha n + beta, of n, and of o
        using T = decltype(kind);
        T dh = get<T>(dh_at + j, m);
        if (out) dh = dh + get<T>(out + j, m);
        dh = flush(dh);
        const T o = get<T>(row + 3 * H + j, m), norm = get<T>(row + 4 * H + j, m), squashed = get<T>(row + 5 * H + j, m);
        const T inner = dh * o * fnma(squashed, squashed, all<T>(1.0f));
        put(da + 3 * H + j, m, dh * squashed * fnma(o, o, o));
        put(dn + j, m, inner * get<T>(alpha + j, m));
        put(dn + H + j, m, norm);
        put(da + 4 * H + j, m, inner * norm);
        put(da + 5 * H + j, m, inner);
      });
      const float mean_dn = row_mean(H, [&](int64_t j, int64_t m) { return get<V>(dn + j, m); });
      const float mean_dn_n = row_mean(H, [&](int64_t j, int64_t m) { return get<V>(dn + j, m) * get<V>(dn + H + j, m); });
      along(0, H, [&](auto kind, int64_t j, int64_t m) {
        using T = decltype(kind);
        const T one = all<T>(1.0f), i = get<T>(row + j, m), f = get<T>(row + H + j, m), g = get<T>(row + 2 * H + j, m);
        const T centred = fnma(get<T>(dn + H + j, m), all<T>(mean_dn_n), get<T>(dn + j, m) - all<T>(mean_dn));
        const T ds = fma(centred, all<T>(over), get<T>(ds_at + j, m));
        put(da + j, m, ds * g * fnma(i, i, i));
        put(da + H + j, m, ds * get<T>(s_past + j, m) * fnma(f, f, f));
        put(da + 2 * H + j, m, ds * i * fnma(g, g, one));
        put(ds_at + j, m, flush(ds * f));
        put(dh_at + j, m, all<T>(0.0f));
      });
    }
    carry_back(a, mine, {{da_t, 0, 4 * H}}, G, a.recurrent_mask__BH ? a.scratch__BH : running, a.recurrent_mask__BH || !a.lengths__B, k % 2 == 1);
    if (a.recurrent_mask__BH) carry_back_masked(a, mine);
    if (a.xi__tB) multiply_by_xi(a, mine, t, running);
    if (a.xi__tB) multiply_by_xi(a, mine, t, running_s);
  }
}

static constexpr Cell lnlstm_cell() {
  Cell cell{};
  cell.name = "lnlstm";
  cell.gates = 4;
  cell.has_W = true;
  cell.has_cell_state = true;
  cell.tape = {6, 0};  // i f g o, n, tanh(…)
  cell.da = {6, 0};    // i f g o, alpha, beta
  cell.scratch = {2, 0};
  cell.W_gap_at = 4;
  cell.da_over = Cell::TAPE;
  cell.parameter_count = 2;
  for (int i = 0; i < 2; i++) {
    cell.parameters[i].name = i ? "beta" : "alpha";
    cell.parameters[i].rows = {1, 0};
    cell.parameters[i].da = {4 + i, 0};
  }
  cell.parameters[0].read_by_backward = true;
  cell.forward = lnlstm_forward;
  cell.backward = lnlstm_backward;
  return cell;
}

}  // namespace unspool::UNSPOOL_SET
