// One sequence, token by token: logits, states, and tokens that are drawn from them.
#include "hashes.h"
#include "runtime/caches.h"
#include "runtime/philox.h"
#include "stream.h"

namespace unspool {

// The arrays and packed matrices that a stream points into.
struct Network {
  std::vector<std::vector<float>> vectors;
  std::vector<Matrix> matrices;
};

static StreamLayer layer_of(int position, int64_t H, int64_t below, int64_t tokens, Precision precision, Network& network, Numbers& numbers) {
  const Cell& cell = products(precision).cells[position];
  const auto vector = [&](int64_t n) { return network.vectors.emplace_back(numbers.floats(n)).data(); };
  const auto matrix = [&](int64_t rows, int64_t columns, int64_t groups) {
    return network.matrices.emplace_back(numbers.floats(rows * columns, -1), columns, rows, true, groups, precision).packed;
  };
  StreamLayer layer{};
  layer.cell = position, layer.activation = 0;
  layer.H = H, layer.P = cell.gates ? cell.gates * H : below;
  if (cell.has_W) layer.W = matrix(layer.P, H, cell.gates);
  if (tokens) {
    layer.table = vector(tokens * layer.P);
  } else if (cell.gates) {
    layer.U = matrix(layer.P, below, 1), layer.X = below;
    layer.b = vector(layer.P);
  }
  for (int i = 0; i < cell.parameter_count; i++) {
    const int64_t rows = cell.parameters[i].rows.of(H, layer.P), columns = cell.parameters[i].columns.of(H, layer.P);
    if (columns) layer.parameters[i].packed = matrix(rows, columns, 1);
    else layer.parameters[i].value = vector(rows);
  }
  return layer;
}

static void hash_stream(int position, int64_t H, int64_t K, Precision precision) {
  Numbers numbers((uint32_t)(position * 1000 + H));
  Network network;
  Stream stream;
  stream.layers.push_back(layer_of(position, H, H, K, precision, network, numbers));
  stream.layers.push_back(layer_of(position, H + 3, H, 0, precision, network, numbers));
  const Matrix V(numbers.floats((H + 3) * K, 1), H + 3, K, true, 1, precision);
  const std::vector<float> c = numbers.floats(K);
  stream.Vt = V.packed, stream.c = c.data();
  stream.K = stream.inputs = K;
  stream.prepare();
  Hash& hash = hash_of(std::string("stream ") + products(precision).cells[position].name + " " + name_of(precision));
  int32_t id = 1;
  for (uint64_t i = 0; i < 24; i++) {
    stream.step(id);
    hash.add(stream.o.at, K);
    const float temperature = i % 4 ? 0.5f * (float)(i % 4) : 0.0f;
    id = stream.draw(temperature, i % 3 ? 0 : 5, i % 5 ? 1.0f : 0.8f, uniform(7, i));
    hash.add((uint32_t)id);
    id = id < 0 ? 0 : id;
  }
  for (const StreamLayer& layer : stream.layers) hash.add(layer.h.at, layer.H), hash.add(layer.s.at, layer.H);
}

void hash_streams(Precision precision) {
  for (int position = 0; position < products(precision).cell_count; position++)
    for (const int64_t H : {1, 17, 64}) {
      set_L2_bytes(H == 64 ? 1 : 1 << 20);  // W exceeds the cache: threads split the units
      hash_stream(position, H, 50, precision);
    }
}

}  // namespace unspool
