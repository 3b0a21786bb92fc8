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

// The limit of the free list: 2 GiB, or an eighth of the memory if that is less.
size_t memory_of_machine() {
  size_t bytes = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
  if (std::FILE* file = std::fopen("/sys/fs/cgroup/memory.max", "r")) {  // the limit of a container
    unsigned long long limit = 0;
    if (std::fscanf(file, "%llu", &limit) == 1 && limit < bytes) bytes = (size_t)limit;
    std::fclose(file);
  }
  return bytes;
}
size_t free_list_limit() {
#if defined(UNSPOOL_SANITIZE)
  return 0;  // a block on the free list would hide its misuse
#else
  static const size_t bytes = std::min(memory_of_machine() / 8, size_t(1) << 31);
  return bytes;
#endif
}

struct FreeBlock { size_t bytes; void* at; };
std::mutex guard;
std::deque<FreeBlock>& free_list() {  // the least recently used first; never destroyed, since arrays may outlive it
  static auto* blocks = new std::deque<FreeBlock>;
  return *blocks;
}
size_t free_bytes = 0;

size_t unit_of(size_t bytes) { return bytes < (size_t(1) << 16) ? LINE : bytes < 16 * HUGE_PAGE ? PAGE : HUGE_PAGE; }

size_t rounded(size_t bytes) {
  const size_t unit = unit_of(bytes);
  return bytes == 0 ? LINE : (bytes + unit - 1) / unit * unit;
}

}  // namespace

void* allocate_memory(size_t& bytes) {
  if (bytes > (size_t(1) << 46)) throw std::bad_alloc();
  bytes = rounded(bytes);
  {
    std::lock_guard<std::mutex> lock(guard);
    // A block of the same size if there is one: an array then gets the cache lines that it had, in the cache of the core
    // that wrote them. Else one that is up to a quarter larger, for windows of different lengths.
    for (const size_t larger : {size_t(0), bytes / 4})
      for (auto block = free_list().rbegin(); block != free_list().rend(); ++block)
        if (block->bytes >= bytes && block->bytes <= bytes + larger) {
          void* at = block->at;
          bytes = block->bytes;
          free_bytes -= bytes;
          free_list().erase(std::next(block).base());
          return at;
        }
  }
  void* at = std::aligned_alloc(unit_of(bytes), bytes);
  if (!at) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
  if (unit_of(bytes) == HUGE_PAGE) madvise(at, bytes, MADV_HUGEPAGE);  // a hint
#endif
  return at;
}

void release_memory(void* at, size_t bytes) {
  std::lock_guard<std::mutex> lock(guard);
  free_list().push_back({bytes, at});
  free_bytes += bytes;
  while (free_bytes > free_list_limit()) {
    free_bytes -= free_list().front().bytes;
    std::free(free_list().front().at);
    free_list().pop_front();
  }
}

void lock_memory() { guard.lock(); }
void unlock_memory() { guard.unlock(); }

}  // namespace unspool
