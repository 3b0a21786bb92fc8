// All kernels for one instruction set. Compiled once for each, with UNSPOOL_SET naming the set: everything
// lives in that set's namespace, and nothing from the C++ library is instantiated here, so that no code built
// for a newer machine can be linked into the path of an older one.
#include "kernels.h"

#include <time.h>

#include "philox.h"

#if defined(UNSPOOL_AVX512) || defined(UNSPOOL_AVX2)
#include <immintrin.h>
#elif defined(UNSPOOL_NEON)
#include <arm_neon.h>
#endif

#define UNSPOOL_TEXT_(x) #x
#define UNSPOOL_TEXT(x) UNSPOOL_TEXT_(x)

namespace unspool {
namespace UNSPOOL_SET {

static inline double now_seconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#include "simd.h"
#include "functions.h"
#include "gemm.h"
#include "window.h"
#include "elman.h"
#include "lstm.h"
#include "gru.h"
#include "softmax.h"
#include "update.h"

extern const Kernels table;
const Kernels table = {UNSPOOL_TEXT(UNSPOOL_SET),
                       pack, rows, outer, column_sum, gather, scatter_add,
                       elman_forward, elman_backward, lstm_forward, lstm_backward, gru_forward, gru_backward,
                       softmax, adam, sgd, norm, drop, scale_rows, shift_rows, activate_all, weigh, fma_peak};

}  // namespace UNSPOOL_SET
}  // namespace unspool
