// The output layer, softmax and negative log-likelihood, forwards and backwards in one pass.
//
//   o(t) = c + V h(t)                                              (10.10)
//   y_hat(t) = softmax(o(t))                                       (10.11)
//   L(t) = -log y_hat(t)[y(t)]                                     (10.14)
//   do(t) = y_hat(t) - 1_y(t)                                      (10.18)

// The largest of a row. A NaN may pass unseen here; it is seen in the sum.
static inline float largest(const float* o, int64_t K) {
  V tops = set1(o[0]);
  int64_t j = 0;
  for (; j + LANES <= K; j += LANES) tops = greater(load(o + j), tops);
  float most = reduce_max(tops);
  for (; j < K; j++) most = most < o[j] ? o[j] : most;
  return most;
}

// Turns a row of logits into its gradient, in place; returns the sum of exp(o - most).
static inline float softmax_row(float* o, int64_t K, int32_t y, float most, float scale) {
  const V shift = set1(most);
  V sums = zero();
  int64_t j = 0;
  for (; j + LANES <= K; j += LANES) {
    const V e = exp(load(o + j) - shift);
    store(o + j, e);
    sums = sums + e;
  }
  if (j < K) {
    store_to(o, j, K, exp(load_to(o, j, K) - shift));
    sums = sums + load_to(o, j, K);  // lanes beyond the row read as zero
  }
  const float sum = reduce_add(sums);
  const V factor = set1(scale / sum);
  for (j = 0; j < K; j += LANES) store_to(o, j, K, load_to(o, j, K) * factor);
  o[y] = o[y] - scale;
  return sum;
}

// A few rows at a time: their logarithms do not wait for each other.
static inline void softmax_rows(const SoftmaxArgs& a, int64_t base, Range mine) {
  const int64_t FEW = 64;
  for (int64_t first = mine.begin; first < mine.end; first += FEW) {
    const int64_t n = mine.end - first < FEW ? mine.end - first : FEW;
    float sum[FEW];
    double* loss = a.loss__R + base + first;
    for (int64_t i = 0; i < n; i++) {
      float* o = a.o__block_K + (first + i) * a.K;
      const int32_t y = a.y__R[base + first + i];
      if (y < 0) {
        __builtin_memset(o, 0, (size_t)a.K * 4);
        loss[i] = 0.0;
        sum[i] = 1.0f;
        continue;
      }
      const float most = largest(o, a.K);
      loss[i] = (double)most - (double)o[y];
      sum[i] = softmax_row(o, a.K, y, most, a.scale);
    }
    for (int64_t i = 0; i < n; i++) loss[i] = loss[i] + (sum[i] > 0.0f ? log_positive((double)sum[i]) : (double)__builtin_nanf(""));
  }
}

// Of every step, a thread takes the rows of the batch that are its own in the recurrence too: they are in its cache.
static void softmax(const SoftmaxArgs& a, Team team) {
  for (int64_t top = a.R; top > 0; top -= a.block) {
    const int64_t n = top < a.block ? top : a.block, base = top - n;
    const float* h = a.h__RH + base * a.H;
    for (int64_t step = 0; step < n; step += a.B) {
      const Range own = share(n - step < a.B ? n - step : a.B, 1, team.index, team.count);
      const Range mine = {step + own.begin, step + own.end};
      rows_between({n, h, a.H, a.Vt, a.c__K, 0, a.o__block_K, a.K}, mine, 0, a.Vt.panels());
      softmax_rows(a, base, mine);
      if (a.dh__RH) rows_between({n, a.o__block_K, a.K, a.V, nullptr, 0, a.dh__RH + base * a.H, a.H}, mine, 0, a.V.panels());
    }
    team.barrier->wait();  // also before the room is used again: the next block's rows may be divided otherwise
    if (!a.dh__RH) continue;
    outer({n, a.K, a.H, a.o__block_K, a.K, h, a.H, a.dV__KH, a.H, true, a.room, nullptr, nullptr, 0}, team);
    if (a.dc__K) column_sum({n, a.K, a.o__block_K, a.K, a.dc__K, true}, team);
    team.barrier->wait();
  }
}

// Unnormalised probabilities of one row, sharpened by 1/temperature.
static double weigh(const float* o, int64_t K, float sharpness, float* out) {
  const V shift = set1(largest(o, K)), by = set1(sharpness);
  for (int64_t j = 0; j < K; j += LANES) store_to(out, j, K, exp((load_to(o, j, K) - shift) * by));
  double sum = 0.0;
  for (int64_t j = 0; j < K; j++) sum += (double)out[j];
  return sum;
}
