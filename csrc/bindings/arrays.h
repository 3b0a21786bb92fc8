// Arrays of Python for the kernels: types, checks of shapes and layout, memory, the GIL. What is refused becomes
// unspool.errors.InputError.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cxxabi.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels.h"
#include "runtime/memory.h"
#include "runtime/pool.h"

namespace unspool {

namespace nb = nanobind;
using namespace nb::literals;

using Floats = nb::ndarray<const float, nb::device::cpu>;  // also read-only arrays
using Matrix = nb::ndarray<const float, nb::ndim<2>, nb::device::cpu>;
using Written = nb::ndarray<float, nb::device::cpu>;
using WrittenMatrix = nb::ndarray<float, nb::ndim<2>, nb::device::cpu>;
using Ids = nb::ndarray<const int32_t, nb::c_contig, nb::device::cpu>;
template <class T> using ArrayOf = nb::ndarray<nb::numpy, T>;
using Array = ArrayOf<float>;
using Vector = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using WrittenVector = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

struct Refused : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};
// The message is built only on failure.
#define require(holds, otherwise) \
  do {                            \
    if (!(holds)) throw Refused(otherwise); \
  } while (0)

template <class Size> std::string text_of(size_t n, Size size) {
  std::string text = "(";
  for (size_t i = 0; i < n; i++) text += (i ? ", " : "") + std::to_string(size(i));
  return text + ")";
}

// A C-contiguous float32 array of exactly this shape.
template <class A> auto checked(const A& a, const char* name, const std::vector<int64_t>& shape) -> decltype(a.data()) {
  bool same = a.ndim() == shape.size();
  for (size_t i = 0; same && i < shape.size(); i++) same = (int64_t)a.shape(i) == shape[i];
  require(same, std::string(name) + " has shape " + text_of(a.ndim(), [&](size_t i) { return a.shape(i); }) + "; expected " +
                    text_of(shape.size(), [&](size_t i) { return shape[i]; }));
  int64_t stride = 1;
  bool contiguous = true;
  for (size_t i = a.ndim(); i-- > 0; stride *= (int64_t)a.shape(i))
    if (a.shape(i) != 1 && a.size() > 0) contiguous = contiguous && a.stride(i) == stride;
  require(contiguous, std::string(name) + " is not C-contiguous; pass numpy.ascontiguousarray(" + name + ")");
  return a.data();
}
template <class A> auto checked(const std::optional<A>& a, const char* name, const std::vector<int64_t>& shape) -> decltype(a->data()) {
  return a ? checked(*a, name, shape) : nullptr;
}

// A matrix whose rows are contiguous, at any distance from each other.
template <class A> int64_t row_stride(const A& a, const char* name) {
  require(a.shape(1) <= 1 || a.size() == 0 || a.stride(1) == 1,
          std::string(name) + " has columns that are not contiguous; pass numpy.ascontiguousarray(" + name + ")");
  require(a.shape(0) <= 1 || a.size() == 0 || a.stride(0) >= (int64_t)a.shape(1),
          std::string(name) + " has rows that overlap; pass a copy of it");
  return a.shape(0) <= 1 ? (int64_t)a.shape(1) : a.stride(0);
}

template <class T = float> ArrayOf<T> array(const std::vector<size_t>& shape) {
  size_t n = 1;
  for (size_t s : shape) {
    require(s == 0 || n <= (size_t(1) << 44) / s, "the result would not fit in memory; use a shorter window or a smaller batch");
    n *= s;
  }
  struct Owned { void* at; size_t bytes; };
  auto* owned = new Owned{nullptr, n * sizeof(T)};
  try {
    owned->at = allocate_memory(owned->bytes);
  } catch (const std::bad_alloc&) {
    delete owned;
    throw Refused("not enough memory for an array of " + std::to_string(n * sizeof(T)) + " bytes; use a shorter window or a smaller batch");
  }
  nb::capsule owner(owned, [](void* p) noexcept {
    auto* k = (Owned*)p;
    release_memory(k->at, k->bytes);
    delete k;
  });
  return ArrayOf<T>(owned->at, shape.size(), shape.data(), owner);
}

// Releases the GIL until the end of the scope. When the interpreter has begun to shut down, PyEval_RestoreThread ends a daemon
// thread with pthread_exit (CPython before 3.14). glibc unwinds the stack for that, and the unwinding would reach destructors
// that may not throw: the process would be terminated. The thread sleeps here instead until the process ends, as from
// CPython 3.14 on.
class GilReleased {
 public:
  GilReleased() : state(PyEval_SaveThread()) {}
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;
  ~GilReleased() {
#if defined(__GLIBCXX__)
    try {
      PyEval_RestoreThread(state);
    } catch (abi::__forced_unwind&) {
      for (;;) pause();
    }
#else
    PyEval_RestoreThread(state);
#endif
  }

 private:
  PyThreadState* state;
};

inline Block scratch_block(int64_t floats) {
  try {
    return Block(floats);
  } catch (const std::bad_alloc&) {
    throw Refused("not enough memory for " + std::to_string(floats * 4) + " bytes of scratch memory; use smaller sizes");
  }
}

// A copy of an array of int32. Other threads may write to the array while a kernel runs, also while the GIL is held here (NumPy
// releases it for long copies): what was checked and what is used as an index must be the same memory.
class CopiedIds {
 public:
  explicit CopiedIds(const Ids& source) : block(scratch_block(std::max<int64_t>(1, (int64_t)source.size()))) {
    if (source.size()) std::memcpy(block.at, source.data(), source.size() * 4);
  }
  const int32_t* data() const { return (const int32_t*)block.at; }

 private:
  Block block;
};

inline void check_ids(const int32_t* ids, int64_t n, int64_t K, const char* name) {
  for (int64_t i = 0; i < n; i++)
    if (ids[i] < 0 || ids[i] >= K)
      throw Refused(std::string(name) + " holds " + std::to_string(ids[i]) + " at position " +
                                           std::to_string(i) + "; expected 0 to " + std::to_string(K - 1));
}

// An array without conversion: a converted copy would be freed while it is in use.
inline Floats without_conversion(nb::handle value, const char* name) {
  Floats array;
  require(nb::try_cast(value, array, false), std::string(name) + " must be an array of float32");
  return array;
}

inline int at_most_threads(double work) { return work < 2e5 ? 1 : 256; }

// Memory for the rounded rows of a product in bf16: so many floats for each thread.
inline Block rounded_block(Precision precision, int64_t floats, int threads) {
  return scratch_block(precision == Precision::BF16 ? floats * threads : 1);
}

// A matrix packed for products with rows on its left.
struct Panels {
  Block block;
  Packed shape;
  Panels(Matrix source, bool transposed, int64_t groups, bool bf16, int64_t cut) {
    const int64_t stride = row_stride(source, "W");
    shape.N = (int64_t)source.shape(transposed ? 0 : 1);
    shape.K = (int64_t)source.shape(transposed ? 1 : 0);
    shape.groups = groups;
    require(groups >= 1 && shape.N % groups == 0, "the " + std::to_string(shape.N) + " columns of W cannot be cut into " + std::to_string(groups) + " equal groups");
    require(cut >= 0 && cut <= shape.K, "cut must be from 0 to " + std::to_string(shape.K) + ", the rows; got " + std::to_string(cut));
    shape.precision = bf16 ? Precision::BF16 : Precision::FLOAT32;
    const Products& by = products(shape.precision);
    shape.pairs = by.pairs;
    shape.cut = cut;
    block = scratch_block(shape.floats());
    shape.at = block.at;
    PackArgs args;
    args.source = source.data(), args.stride = stride, args.transposed = transposed;
    args.to = block.at, args.shape = shape;
    GilReleased released;
    parallel([&, body = by.pack](Team team) { body(args, team); }, shape.floats() < 16384 ? 1 : 256);
  }
};

}  // namespace unspool
