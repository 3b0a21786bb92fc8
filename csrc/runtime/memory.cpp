#include "runtime/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iterator>
#include <mutex>
#include <new>

namespace unspool {
namespace {

const size_t LINE = 64, PAGE = 4096, HUGE_PAGE = size_t(1) << 21;

// How much is kept for the next caller: two gibibytes, or an eighth of the memory where that is less.
size_t memory_of_machine() {
  size_t bytes = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
  if (std::FILE* file = std::fopen("/sys/fs/cgroup/memory.max", "r")) {  // a container may have less
    unsigned long long limit = 0;
    if (std::fscanf(file, "%llu", &limit) == 1 && limit < bytes) bytes = (size_t)limit;
    std::fclose(file);
  }
  return bytes;
}
size_t to_keep() {
#if defined(UNSPOOL_SANITIZE)
  return 0;  // a kept block would hide its misuse
#else
  static const size_t bytes = std::min(memory_of_machine() / 8, size_t(1) << 31);
  return bytes;
#endif
}

struct Kept { size_t bytes; void* at; };
std::mutex guard;
std::deque<Kept>& kept() {  // the longest unused first; never destroyed, since arrays may outlive it
  static auto* blocks = new std::deque<Kept>;
  return *blocks;
}
size_t kept_bytes = 0;

size_t unit_of(size_t bytes) { return bytes < (size_t(1) << 16) ? LINE : bytes < 16 * HUGE_PAGE ? PAGE : HUGE_PAGE; }

size_t rounded(size_t bytes) {
  const size_t unit = unit_of(bytes);
  return bytes == 0 ? LINE : (bytes + unit - 1) / unit * unit;
}

}  // namespace

void* take_memory(size_t& bytes) {
  if (bytes > (size_t(1) << 46)) throw std::bad_alloc();
  bytes = rounded(bytes);
  {
    std::lock_guard<std::mutex> lock(guard);
    // Of the same size where there is one: an array then gets the lines that it had, in the cache of the core that wrote
    // them. Else a little larger: windows of different lengths share.
    for (const size_t larger : {size_t(0), bytes / 4})
      for (auto block = kept().rbegin(); block != kept().rend(); ++block)
        if (block->bytes >= bytes && block->bytes <= bytes + larger) {
          void* at = block->at;
          bytes = block->bytes;
          kept_bytes -= bytes;
          kept().erase(std::next(block).base());
          return at;
        }
  }
  void* at = std::aligned_alloc(unit_of(bytes), bytes);
  if (!at) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
  if (unit_of(bytes) == HUGE_PAGE) madvise(at, bytes, MADV_HUGEPAGE);  // a wish, not a need
#endif
  return at;
}

void give_memory(void* at, size_t bytes) {
  std::lock_guard<std::mutex> lock(guard);
  kept().push_back({bytes, at});
  kept_bytes += bytes;
  while (kept_bytes > to_keep()) {
    kept_bytes -= kept().front().bytes;
    std::free(kept().front().at);
    kept().pop_front();
  }
}

void lock_memory() { guard.lock(); }
void unlock_memory() { guard.unlock(); }

}  // namespace unspool
