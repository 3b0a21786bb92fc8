// The LSTM, as PyTorch defines it; gate blocks in the order i f g o. The cell state is s, since c is a bias.
//
//   [i f g o](t) = [sig sig tanh sig](b + W h(t-1) + U x(t))
//   s(t) = f(t) s(t-1) + i(t) g(t)
//   h(t) = o(t) tanh(s(t))

static void lstm_forward(const WindowArgs& a, Team team) {
  const Split s = split(a, 4, team);
  const int64_t H = a.H, G = 4 * H, end = s.units.end;
  const float* start[BLOCK];
  for (int64_t k = 0; k < a.tau; k++) {
    const int64_t t = a.reverse ? a.tau - 1 - k : k;
    const float* h_seen = operand(a, s, t, team);
    const int64_t past = before(a, t), now = after(a, t);
    float* gates = a.gates__tBG + t * a.B * G;
    for (int64_t b = s.rows.begin; b < s.rows.end; b += BLOCK) {
      const int64_t n = s.rows.end - b < BLOCK ? s.rows.end - b : BLOCK;
      start_rows(a, G, t, b, n, start);
      gate_panels(a.W, s, 0, 4, [&](int64_t first, int64_t last) {
        product({n, h_seen + b * H, H, a.W, first, last, start, 0, gates + b * G, G, 0, 0, H, k % 2 == 1});
      });
      for (int64_t r = b; r < b + n; r++) {
        float* row = gates + r * G;
        const float* s_past = a.ss__tBH + past + r * H;
        float *h_now = a.hs__tBH + now + r * H, *s_now = a.ss__tBH + now + r * H;
        if (!alive(a, t, r)) {
          copy_units(s, h_now, a.hs__tBH + past + r * H);
          copy_units(s, s_now, s_past);
          continue;
        }
        for (int64_t j = s.units.begin; j < end; j += LANES) {
          const V di = sigmoid_below(load_to(row, j, end)), df = sigmoid_below(load_to(row + H, j, end));
          const V dO = sigmoid_below(load_to(row + 3 * H, j, end));
          const Fraction t = tanh_fraction(load_to(row + 2 * H, j, end));
          const V left = di * df, right = dO * t.below;          // the four gates share one division
          const V over = set1(1.0f) / (left * right), over_left = over * right, over_right = over * left;
          const V i = over_left * df, f = over_left * di;
          const V o = over_right * t.below, g = over_right * dO * t.above;
          const V cell = fma(f, load_to(s_past, j, end), i * g);
          store_to(row, j, end, i);
          store_to(row + H, j, end, f);
          store_to(row + 2 * H, j, end, g);
          store_to(row + 3 * H, j, end, o);
          store_to(s_now, j, end, cell);
          store_to(h_now, j, end, o * tanh(cell));
        }
      }
    }
    meet(s, team);
  }
}

static void lstm_backward(const WindowArgs& a, Team team) {
  const Split s = split(a, 4, team);
  const int64_t H = a.H, G = 4 * H, end = s.units.end;
  const V one = set1(1.0f);
  float *running = a.dh_start__BH, *running_s = a.ds_start__BH;
  arrive(a, s, a.dh_end__BH, running);
  arrive(a, s, a.ds_end__BH, running_s);
  for (int64_t k = a.tau - 1; k >= 0; k--) {
    const int64_t t = a.reverse ? a.tau - 1 - k : k;
    float* da_t = a.da__tBG + t * a.B * G;
    for (int64_t b = s.rows.begin; b < s.rows.end; b++) {
      const float* row = a.gates__tBG + (t * a.B + b) * G;
      const float *s_past = a.ss__tBH + before(a, t) + b * H, *s_now = a.ss__tBH + after(a, t) + b * H;
      const float* out = a.dh__tBH ? a.dh__tBH + (t * a.B + b) * H : nullptr;
      const bool live = alive(a, t, b);
      float *da = da_t + b * G, *dh_at = running + b * H, *ds_at = running_s + b * H;
      for (int64_t j = s.units.begin; j < end; j += LANES) {
        V dh = load_to(dh_at, j, end);
        if (out) dh = dh + load_to(out, j, end);
        dh = flush(dh);
        if (!live) {
          for (int g = 0; g < 4; g++) store_to(da + g * H, j, end, zero());
          store_to(dh_at, j, end, dh);
          continue;
        }
        const V i = load_to(row, j, end), f = load_to(row + H, j, end);
        const V g = load_to(row + 2 * H, j, end), o = load_to(row + 3 * H, j, end);
        const V squashed = tanh(load_to(s_now, j, end));
        const V ds = fma(dh * o, fnma(squashed, squashed, one), load_to(ds_at, j, end));
        store_to(da, j, end, ds * g * fnma(i, i, i));
        store_to(da + H, j, end, ds * load_to(s_past, j, end) * fnma(f, f, f));
        store_to(da + 2 * H, j, end, ds * i * fnma(g, g, one));
        store_to(da + 3 * H, j, end, dh * squashed * fnma(o, o, o));
        store_to(ds_at, j, end, flush(ds * f));
        store_to(dh_at, j, end, zero());
      }
    }
    meet(s, team);
    carry_back(a, s, da_t, G, 0, G, a.keep__BH ? a.spare__BH : running, a.keep__BH != nullptr, k % 2 == 1);
    if (a.keep__BH) carry_kept(a, s);
  }
}
