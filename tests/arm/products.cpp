// Matrix products: packing, rows times a matrix, sums of outer products.
#include "hashes.h"

namespace unspool {

static const int64_t SIZES[][3] = {{1, 1, 1}, {1, 33, 17}, {2, 64, 40}, {3, 31, 16}, {5, 70, 96}, {13, 97, 48}, {67, 515, 33}, {7, 1, 300}, {130, 32, 9}};

// The rows of a product: without a start, from one row, from rows, and from the result itself.
static void hash_rows(const std::vector<float>& A, int64_t M, const Matrix& B, Numbers& numbers) {
  const Precision precision = B.packed.precision;
  const int64_t K = B.packed.K, N = B.packed.N;
  const std::vector<float> begin = numbers.wide(M * N);
  Block rounded = unwritten(rounded_floats(K) * threads());
  for (int way = 0; way < 4; way++) {
    std::vector<float> C = begin;
    RowsArgs a;
    a.M = M;
    a.A = A.data(), a.lda = K;
    a.B = B.packed;
    a.start = way == 0 ? nullptr : way == 3 ? C.data() : begin.data(), a.start_stride = way == 1 ? 0 : N;
    a.C = C.data(), a.ldc = N;
    a.rounded = rounded.at, a.rounded_floats = rounded_floats(K);
    run(products(precision).rows, a);
    hash_of(std::string("rows ") + name_of(precision)).add(C);
  }
}

// Every bf16, and its neighbours in float32, times one on either side. K = 1 in bf16 is the rounding alone.
static void hash_rounding(Precision precision) {
  const int64_t n = 65536;
  const std::vector<float> one(1, 1.0f);
  for (const uint32_t low : {0x0000u, 0x7fffu, 0x8000u, 0x8001u}) {
    std::vector<float> values((size_t)n);
    for (int64_t i = 0; i < n; i++) values[(size_t)i] = float_of((uint32_t)i << 16 | low);
    const Matrix row(values, 1, n, false, 1, precision), single(one, 1, 1, false, 1, precision);
    Block rounded = unwritten(rounded_floats(1) * threads());
    std::vector<float> C((size_t)n);
    RowsArgs a;
    a.C = C.data();
    a.rounded = rounded.at, a.rounded_floats = rounded_floats(1);
    for (const bool left : {false, true}) {
      a.M = left ? n : 1, a.A = left ? values.data() : one.data(), a.lda = 1;
      a.B = left ? single.packed : row.packed, a.ldc = left ? 1 : n;
      run(products(precision).rows, a);
      hash_of(std::string("pack ") + name_of(precision)).add(C);
    }
  }
}

// The gap, the table and the sum of an outer product, for A with no fewer columns than B.
struct Sums {
  std::vector<float> table, sum;
  std::vector<int32_t> ids;
};

// A sum over two segments of rows, the later one first: the second goes on where the first ended.
static void hash_outer(Precision precision, int64_t M, int64_t R, int64_t N, bool special, int64_t gap, Numbers& numbers) {
  const int64_t K = 6, gap_at = gap ? M / 2 : M;
  Sums sums = {numbers.floats(K * M), numbers.floats(M - gap_at), {}};  // in this order, as braces are
  std::vector<float> C = numbers.floats(M * N);
  Block scratch = unwritten(outer_scratch(N, precision) * threads());
  for (const bool second : {false, true}) {
    const int64_t rows = second ? R : 64;
    const auto drawn = [&](int64_t n) { return special ? numbers.special(n) : numbers.wide(n); };
    const std::vector<float> A = drawn(rows * (M + gap)), B = drawn(rows * N);
    sums.ids = numbers.ids(rows, (int32_t)K);
    OuterArgs a;
    a.R = rows, a.M = M, a.N = N;
    a.A = A.data(), a.lda = M + gap;
    a.B = B.data(), a.ldb = N;
    a.C = C.data(), a.ldc = N;
    a.accumulate = second;
    a.scratch = scratch.at;
    a.gap_at = gap_at, a.gap = gap;
    if (gap) {
      a.table = sums.table.data(), a.table_stride = M, a.table_rows = K, a.ids = sums.ids.data();
      a.sum = sums.sum.data();
      a.zero_table = a.zero_sum = !second;
    }
    run(products(precision).outer, a);
    Hash& hash = hash_of(std::string("outer ") + name_of(precision));
    hash.add(C);
    if (gap) hash.add(sums.table), hash.add(sums.sum);
  }
}

void hash_products(Precision precision) {
  hash_rounding(precision);
  for (const auto& [M, K, N] : SIZES) {
    Numbers numbers((uint32_t)(M * 10000 + K * 100 + N));
    for (const bool special : {false, true})
      for (const bool transposed : {false, true}) {
        const auto drawn = [&](int64_t n) { return special ? numbers.special(n) : numbers.wide(n); };
        const int64_t groups = N % 3 == 0 ? 3 : N % 2 == 0 ? 2 : 1;
        const std::vector<float> A = drawn(M * K), B = drawn(K * N);  // in this order: arguments have none
        hash_rows(A, M, Matrix(B, K, N, transposed, transposed ? groups : 1, precision), numbers);
      }
    for (const bool special : {false, true}) {
      hash_outer(precision, M, K, N, special, 0, numbers);
      hash_outer(precision, N, K, M, special, 0, numbers);
      hash_outer(precision, M > N ? M : N, K, M > N ? N : M, special, 11, numbers);
    }
  }
}

}  // namespace unspool
