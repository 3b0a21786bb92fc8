// Matrix products, sums over rows and tables.
#include "bindings/arrays.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

namespace unspool {
namespace {

Array rows_product(Matrix A, const Panels& B, std::optional<Floats> start) {
  const int64_t M = (int64_t)A.shape(0), K = (int64_t)A.shape(1), N = B.shape.N;
  require(K == B.shape.K, "the product's sides do not meet: " + std::to_string(K) + " columns against " +
                              std::to_string(B.shape.K) + " rows");
  require(B.shape.cut == 0, "B must be packed with cut=0");
  const int64_t lda = row_stride(A, "A");
  const bool one_row = start && start->ndim() == 1;
  const float* from = !start ? nullptr : one_row ? checked(*start, "start", {N}) : checked(*start, "start", {M, N});
  Array C = array({(size_t)M, (size_t)N});
  RowsArgs args;
  args.M = M;
  args.A = A.data(), args.lda = lda;
  args.B = B.shape;
  args.start = from, args.start_stride = one_row ? 0 : N;
  args.C = C.data(), args.ldc = N;
  const int most = threads();
  args.rounded_floats = rounded_floats(K);
  Block rounded = rounded_block(B.shape.precision, args.rounded_floats, most);
  args.rounded = rounded.at;
  GilReleased released;
  parallel([&, body = products(B.shape).rows](Team team) { body(args, team); }, std::min(most, at_most_threads((double)M * N * K)));
  return C;
}

// All columns of A but the `gap` ones from `gap_at` on are multiplied with B. All but the last `gap` ones are added to the
// table, and those beyond the gap are summed into `sum`.
Array outer_product(Matrix A, Matrix B, std::optional<Written> onto, bool accumulate, std::optional<WrittenMatrix> table,
                    std::optional<Ids> ids, bool accumulate_table, int64_t gap_at, int64_t gap, std::optional<Written> sum,
                    bool accumulate_sum, bool bf16) {
  const int64_t R = (int64_t)A.shape(0), N = (int64_t)B.shape(1), columns = (int64_t)A.shape(1), M = columns - gap;
  require((int64_t)B.shape(0) == R, "the product's sides do not meet: " + std::to_string(R) + " rows against " +
                                        std::to_string(B.shape(0)) + " rows");
  require(gap >= 0 && gap_at >= 0 && gap_at <= M, "a gap of " + std::to_string(gap) + " columns at " + std::to_string(gap_at) +
                                                      " does not fit into the " + std::to_string(columns) + " columns of A");
  require(!sum || M >= N, "with sum, A must have no fewer columns than B");
  const int64_t lda = row_stride(A, "A"), ldb = row_stride(B, "B");
  float* to = checked(onto, "out", {M, N});
  Array C = onto ? Array() : array({(size_t)M, (size_t)N});
  const int most = threads();  // read once: another Python thread may change it, and the scratch memory is for this many
  const Precision precision = bf16 ? Precision::BF16 : Precision::FLOAT32;
  Block work = scratch_block(outer_scratch(N, precision) * most);
  OuterArgs args;
  args.R = R, args.M = M, args.N = N;
  args.A = A.data(), args.lda = lda;
  args.B = B.data(), args.ldb = ldb;
  args.C = onto ? to : C.data(), args.ldc = N;
  args.accumulate = (bool)onto && accumulate;
  args.scratch = work.at;
  args.gap_at = gap ? gap_at : M, args.gap = gap;
  args.sum = checked(sum, "sum", {M - args.gap_at}), args.zero_sum = sum && !accumulate_sum;
  std::optional<CopiedIds> copied;
  if (table) {
    require(ids && (int64_t)ids->size() == R, "ids must hold one token for each of the " + std::to_string(R) + " rows");
    require((int64_t)table->shape(1) == M && M >= N && N >= 1, "table must have " + std::to_string(M) + " columns, no fewer than B");
    copied.emplace(*ids);
    check_ids(copied->data(), R, (int64_t)table->shape(0), "ids");
    args.table = table->data(), args.table_stride = row_stride(*table, "table");
    args.table_rows = (int64_t)table->shape(0);
    args.zero_table = !accumulate_table;
    args.ids = copied->data();
  }
  GilReleased released;
  parallel([&, body = products(precision).outer](Team team) { body(args, team); }, std::min(most, at_most_threads((double)M * N * R)));
  return C;
}

Array column_sum(Matrix A, std::optional<Written> onto, bool accumulate) {
  const int64_t R = (int64_t)A.shape(0), N = (int64_t)A.shape(1);
  float* to = checked(onto, "out", {N});
  Array s = onto ? Array() : array({(size_t)N});
  ColumnSumArgs args;
  args.R = R, args.N = N;
  args.A = A.data(), args.lda = row_stride(A, "A");
  args.s = onto ? to : s.data();
  args.accumulate = (bool)onto && accumulate;
  GilReleased released;
  parallel([&, body = kernels().column_sum](Team team) { body(args, team); }, at_most_threads((double)R * N));
  return s;
}

Array gather(Matrix table, Ids ids) {
  const int64_t K = (int64_t)table.shape(0), N = (int64_t)table.shape(1), R = (int64_t)ids.size();
  const CopiedIds copied(ids);
  check_ids(copied.data(), R, K, "ids");
  Array out = array({(size_t)R, (size_t)N});
  GatherArgs args{};
  args.R = R, args.N = N;
  args.ids = copied.data();
  args.table = table.data(), args.table_stride = row_stride(table, "table");
  args.rows = out.data();
  GilReleased released;
  parallel([&, body = kernels().gather](Team team) { body(args, team); }, at_most_threads((double)R * N));
  return out;
}

void scatter_add(WrittenMatrix table, Ids ids, Matrix rows, bool accumulate) {
  const int64_t K = (int64_t)table.shape(0), N = (int64_t)table.shape(1), R = (int64_t)ids.size();
  require((int64_t)rows.shape(0) == R && (int64_t)rows.shape(1) == N,
          "rows has shape (" + std::to_string(rows.shape(0)) + ", " + std::to_string(rows.shape(1)) + "); expected (" +
              std::to_string(R) + ", " + std::to_string(N) + ")");
  const CopiedIds copied(ids);
  check_ids(copied.data(), R, K, "ids");
  ScatterArgs args{};
  args.R = R, args.N = N, args.K = K;
  args.ids = copied.data();
  args.table = table.data(), args.table_stride = row_stride(table, "table");
  args.rows = rows.data(), args.row_stride = row_stride(rows, "rows");
  args.zero_table = !accumulate;
  GilReleased released;
  parallel([&, body = kernels().scatter_add](Team team) { body(args, team); }, at_most_threads((double)R * N));
}

}  // namespace

void bind_products(nb::module_& m) {
  nb::class_<Panels>(m, "Panels")
      .def(nb::init<Matrix, bool, int64_t, bool, int64_t>(), "source"_a.noconvert(), "transposed"_a, "groups"_a = 1, "bf16"_a = false, "cut"_a = 0)
      .def_prop_ro("shape", [](const Panels& p) { return std::make_tuple(p.shape.K, p.shape.N); });
  m.def("rows_product", &rows_product, "A"_a.noconvert(), "B"_a, "start"_a.noconvert().none());
  m.def("outer_product", &outer_product, "A"_a.noconvert(), "B"_a.noconvert(), "onto"_a.noconvert().none(),
        "accumulate"_a, "table"_a.noconvert().none(), "ids"_a.noconvert().none(), "accumulate_table"_a,
        "gap_at"_a, "gap"_a, "sum"_a.noconvert().none(), "accumulate_sum"_a, "bf16"_a = false);
  m.def("column_sum", &column_sum, "A"_a.noconvert(), "onto"_a.noconvert().none(), "accumulate"_a);
  m.def("gather", &gather, "table"_a.noconvert(), "ids"_a.noconvert());
  m.def("scatter_add", &scatter_add, "table"_a.noconvert(), "ids"_a.noconvert(), "rows"_a.noconvert(), "accumulate"_a);
}

}  // namespace unspool
