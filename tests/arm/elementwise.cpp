// Kernels without products: tables, elementwise functions, random masks, weights of a draw, optimisers.
#include "hashes.h"

namespace unspool {

static const int64_t LENGTHS[] = {1, 7, 16, 33, 4095, 12345};

void hash_tables() {
  const Kernels& k = kernels();
  for (const int64_t N : {1, 16, 37, 300})
    for (const bool special : {false, true}) {
      Numbers numbers((uint32_t)N);
      const int64_t R = 70, K = 11;
      const std::vector<float> A = special ? numbers.special(R * N) : numbers.floats(R * N);
      const std::vector<int32_t> ids = numbers.ids(R, (int32_t)K);
      std::vector<float> out((size_t)(R * N)), table = numbers.floats(K * N), sum = numbers.floats(N);
      for (const bool again : {false, true}) {
        ColumnSumArgs columns;
        columns.R = R, columns.N = N, columns.A = A.data(), columns.lda = N, columns.s = sum.data(), columns.accumulate = again;
        run(k.column_sum, columns);
        hash_of("column_sum").add(sum);
        run(k.scatter_add, ScatterArgs{R, N, K, ids.data(), table.data(), N, A.data(), N, !again});
        hash_of("scatter_add").add(table);
      }
      run(k.gather, GatherArgs{R, N, ids.data(), table.data(), N, out.data()});
      hash_of("gather").add(out);
      run(k.shift_rows, ShiftRowsArgs{R, N, A.data(), N, sum.data(), out.data()});
      hash_of("shift_rows").add(out);
      run(k.scale_rows, ScaleRowsArgs{7, 10, N, A.data(), table.data(), out.data()});
      hash_of("scale_rows").add(out);
    }
}

// Every bf16 and some numbers between them, and ordinary numbers.
static void hash_activations() {
  std::vector<float> x;
  for (uint32_t i = 0; i < 65536; i++) x.push_back(float_of(i << 16 | i % 251 * 261));
  for (const float each : Numbers(1).floats(20001, 4)) x.push_back(each);
  std::vector<float> out(x.size());
  for (int activation = 0; activation < 4; activation++)
    for (const bool slope : {false, true}) {
      run(kernels().activate, ActivateArgs{(int64_t)x.size(), activation, slope, x.data(), out.data()});
      hash_of("activate").add(out);
    }
}

void hash_elementwise() {
  const Kernels& k = kernels();
  hash_activations();
  for (const int64_t n : LENGTHS) {
    Numbers numbers((uint32_t)n);
    for (const bool special : {false, true}) {
      const std::vector<float> g = special ? numbers.special(n) : numbers.wide(n);
      std::vector<double> squares((size_t)((n + CHUNK - 1) / CHUNK));
      run(k.norm, NormArgs{n, g.data(), squares.data()});
      for (const double each : squares) hash_of("norm").add(each);
    }
    std::vector<float> out((size_t)n);
    for (const float rate : {0.0f, 0.1f, 0.75f}) {
      run(k.drop, DropArgs{n, 0x123456789abcdefu, (uint64_t)n << 33, rate, out.data()});
      hash_of("drop").add(out);
    }
    for (const int exponent : {0, 5, 100})
      for (const float sharpness : {1.0f, 0.3f, 1e30f}) {
        const std::vector<float> o = numbers.floats(n, exponent);
        hash_of("exp_weights").add(k.exp_weights(o.data(), n, sharpness, out.data()));
        hash_of("exp_weights").add(out);
        std::vector<float> logits = o;
        k.log_softmax(logits.data(), n, sharpness);
        hash_of("log_softmax").add(logits);
      }
  }
}

static double setting_of(const std::string& name) {
  if (name == "beta1" || name == "momentum") return 0.9;
  if (name == "beta2") return 0.999;
  if (name == "epsilon") return 1e-8;
  return 0.1;
}

// Three updates of every optimiser, with all its states or only those that it needs.
void hash_optimisers() {
  const Kernels& k = kernels();
  for (const Optimiser* optimiser = k.optimisers; optimiser < k.optimisers + k.optimiser_count; optimiser++)
    for (const int count : {optimiser->required_states, optimiser->state_count})
      for (const int64_t n : LENGTHS) {
        Numbers numbers((uint32_t)n);
        std::vector<float> p = numbers.floats(n);
        std::vector<std::vector<float>> states((size_t)count, std::vector<float>((size_t)n, 0.0f));
        UpdateArgs a{};
        a.n = n, a.p = p.data(), a.scale = 0.7f;
        for (int i = 0; i < count; i++) a.states[i] = states[(size_t)i].data();
        for (int i = 0; i < optimiser->setting_count; i++) a.settings[i] = setting_of(optimiser->settings[i]);
        Hash& hash = hash_of(std::string("update ") + optimiser->name);
        for (int step = 0; step < 3; step++) {
          const std::vector<float> g = step < 2 ? numbers.wide(n) : numbers.special(n);
          a.g = g.data();
          run(optimiser->update, a);
          hash.add(p);
          for (const auto& state : states) hash.add(state);
        }
      }
}

}  // namespace unspool
