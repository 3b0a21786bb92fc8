// The table of cells, as the bindings use it: names, own parameters.
#pragma once
#include "bindings/arrays.h"

namespace unspool {

inline void check_activation(int activation) {
  require(activation >= 0 && activation <= 3, "activation must be 0 (tanh), 1 (relu), 2 (sigmoid) or 3 (identity)");
}

// The position of a cell in the table: the same for every instruction set.
inline int find_cell(const std::string& name) {
  const Products& k = products(Precision::FLOAT32);
  std::string names;
  for (int i = 0; i < k.cell_count; i++) {
    if (name == k.cells[i].name) return i;
    names += (i ? ", " : "") + std::string(k.cells[i].name);
  }
  throw Refused("cell is '" + name + "'; expected one of " + names);
}

inline void check_W(const Cell& cell, const Panels* W, bool transposed) {
  require((W != nullptr) == cell.has_W, std::string(cell.name) + (cell.has_W ? " needs W" : " has no W; pass None"));
  if (!W) return;
  const int64_t G = cell.gates, H = transposed ? W->shape.K : W->shape.N, columns = transposed ? W->shape.N : W->shape.K;
  require(H >= 1 && columns == G * H && W->shape.groups == (transposed ? G : 1),
          "W must be packed from shape (" + std::to_string(G * H) + ", " + std::to_string(H) + ") " +
              (transposed ? "in " + std::to_string(G) + " groups" : "as it is"));
  const int64_t cut = !transposed && cell.W_gap && W->shape.precision == Precision::BF16 ? cell.W_gap_at * H : 0;
  require(W->shape.cut == cut, "W must be packed with cut=" + std::to_string(cut));
}

// The extra parameters of a cell, checked; what `to` points into lives as long as this value.
class OwnParameters {
 public:
  OwnParameters(const Cell& cell, const nb::list& values, int64_t H, int64_t P, bool forward, const Packed& like, Parameter* to) {
    require((int)values.size() == cell.parameter_count, std::string(cell.name) + " has " + std::to_string(cell.parameter_count) +
                                                            " extra parameters; got " + std::to_string(values.size()));
    for (int i = 0; i < cell.parameter_count; i++) {
      const ParameterSpec& spec = cell.parameters[i];
      const int64_t rows = spec.rows.of(H, P), columns = spec.columns.of(H, P);
      nb::object value = values[i];
      if (value.is_none()) {
        require(!forward && !spec.read_by_backward, std::string(cell.name) + " needs " + spec.name);
      } else if (columns == 0) {
        arrays.push_back(without_conversion(value, spec.name));
        to[i].value = checked(arrays.back(), spec.name, {rows});
      } else {
        require(nb::isinstance<Panels>(value), std::string(spec.name) + " must be packed");
        to[i].packed = nb::cast<const Panels&>(value).shape;
        require(to[i].packed.packed_like(like), std::string(spec.name) + " must be packed in the precision of W, for the same instruction set");
        require(to[i].packed.K == (forward ? columns : rows) && to[i].packed.N == (forward ? rows : columns),
                std::string(spec.name) + " must be packed from shape (" + std::to_string(rows) + ", " + std::to_string(columns) + ")");
        objects.push_back(value);
      }
    }
  }

 private:
  std::vector<Floats> arrays;
  std::vector<nb::object> objects;
};

}  // namespace unspool
