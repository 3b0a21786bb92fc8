// The results of all kernels as hashes, to compare instruction sets and machines: `make arm`.
//
//   hashes            the instruction sets of this machine
//   hashes THREADS    one line per kernel with its hash, and one in total; UNSPOOL_ISA chooses the instruction set
//
// The inputs are the same everywhere. So must be the hashes, but for sign and payload of a NaN, which are not hashed.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <utility>

#include "hashes.h"

namespace unspool {

static std::deque<std::pair<std::string, Hash>> lines;  // a deque, since references to its elements stay valid

Hash& hash_of(const std::string& kernel) {
  for (auto& [name, hash] : lines)
    if (name == kernel) return hash;
  return lines.emplace_back(kernel, Hash()).second;
}

static void hash_all() {
  for (const Precision precision : {Precision::FLOAT32, Precision::BF16}) {
    hash_products(precision);
    hash_softmax(precision);
    hash_windows(precision);
    hash_streams(precision);
  }
  hash_tables();
  hash_elementwise();
  hash_optimisers();
  hash_bytes();
}

static void print_all() {
  Hash total;
  for (const auto& [name, hash] : lines) {
    std::printf("%-28s %016" PRIx64 "\n", name.c_str(), hash.value);
    total.add((uint32_t)hash.value);
    total.add((uint32_t)(hash.value >> 32));
  }
  std::printf("%-28s %016" PRIx64 "\n", "total", total.value);
}

}  // namespace unspool

int main(int count, char** arguments) {
  if (count < 2) return std::printf("%s\n", unspool::available_kernels()) < 0;
  const char* wanted = std::getenv("UNSPOOL_ISA");
  if (const char* refusal = wanted ? unspool::choose_kernels(wanted) : nullptr) {
    std::fprintf(stderr, "UNSPOOL_ISA=%s: %s; it has %s\n", wanted, refusal, unspool::available_kernels());
    return 2;
  }
  unspool::set_threads(std::atoi(arguments[1]));
  unspool::hash_all();
  unspool::print_all();
}
