// The output layer, softmax and negative log-likelihood, forwards and backwards in one pass.
//
//   o(t) = c + V h(t)                                              (10.10)
//   y_hat(t) = softmax(o(t))                                       (10.11)
//   L(t) = -log y_hat(t)[y(t)]                                     (10.14)
//   do(t) = y_hat(t) - 1_y(t)                                      (10.18)

// Turns a row of logits into its loss and, in place, its gradient.
static inline double softmax_row(float* o, int64_t K, int32_t y, float scale) {
  if (y < 0) {
    __builtin_memset(o, 0, (size_t)K * 4);
    return 0.0;
  }
  float most = o[0];
  V tops = set1(most);
  int64_t j = 0;
  for (; j + LANES <= K; j += LANES) {
    const V v = load(o + j);
    tops = select(tops < v, v, tops);
  }
  float top[LANES];
  store(top, tops);
  for (int i = 0; i < LANES; i++) most = most < top[i] ? top[i] : most;
  for (; j < K; j++) most = most < o[j] ? o[j] : most;

  const float o_y = o[y];
  const V shift = set1(most);
  V sums = zero();
  for (j = 0; j < K; j += LANES) {
    store_to(o, j, K, exp(load_to(o, j, K) - shift));
    sums = sums + load_to(o, j, K);  // lanes beyond the row read as zero
  }
  const float sum = reduce_add(sums);
  const V factor = set1(scale / sum);
  for (j = 0; j < K; j += LANES) store_to(o, j, K, load_to(o, j, K) * factor);
  o[y] = o[y] - scale;
  return sum > 0.0f ? ((double)most - (double)o_y) + log_positive((double)sum) : (double)__builtin_nanf("");
}

static void softmax(const SoftmaxArgs& a, Team team) {
  for (int64_t top = a.R; top > 0; top -= a.block) {
    const int64_t n = top < a.block ? top : a.block, base = top - n;
    const float* h = a.h__RH + base * a.H;
    rows({n, h, a.H, a.Vt, a.c__K, 0, a.o__block_K, a.K}, team);
    const Range mine = share(n, MR, team.index, team.count);  // the rows this thread has just computed
    for (int64_t r = mine.begin; r < mine.end; r++)
      a.loss__R[base + r] = softmax_row(a.o__block_K + r * a.K, a.K, a.y__R[base + r], a.scale);
    if (!a.dh__RH) {
      team.barrier->wait();  // the last block has fewer rows, and then a thread's are others
      continue;
    }
    rows({n, a.o__block_K, a.K, a.V, nullptr, 0, a.dh__RH + base * a.H, a.H}, team);
    team.barrier->wait();
    outer({n, a.K, a.H, a.o__block_K, a.K, h, a.H, a.dV__KH, a.H, true, a.room}, team);
    if (a.dc__K) column_sum({n, a.K, a.o__block_K, a.K, a.dc__K, true}, team);
    team.barrier->wait();
  }
}

// Unnormalised probabilities of one row, sharpened by 1/temperature.
static double weigh(const float* o, int64_t K, float sharpness, float* out) {
  float most = o[0];
  for (int64_t j = 1; j < K; j++) most = most < o[j] ? o[j] : most;
  const V shift = set1(most), by = set1(sharpness);
  for (int64_t j = 0; j < K; j += LANES) store_to(out, j, K, exp((load_to(o, j, K) - shift) * by));
  double sum = 0.0;
  for (int64_t j = 0; j < K; j++) sum += (double)out[j];
  return sum;
}
