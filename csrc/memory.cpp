#include "memory.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <new>

namespace unspool {
namespace {

const size_t LINE = 64;
#if defined(UNSPOOL_SANITIZE)
const size_t KEEP = 0;  // a kept block would hide its misuse
#else
const size_t KEEP = size_t(1) << 29;
#endif

std::mutex guard;
std::multimap<size_t, void*>& kept() {
  static auto* blocks = new std::multimap<size_t, void*>;
  return *blocks;
}
size_t kept_bytes = 0;

size_t rounded(size_t bytes) {
  const size_t unit = bytes < 65536 ? LINE : 4096;
  return bytes == 0 ? LINE : (bytes + unit - 1) / unit * unit;
}

}  // namespace

void* take_memory(size_t bytes) {
  if (bytes > (size_t(1) << 46)) throw std::bad_alloc();
  bytes = rounded(bytes);
  {
    std::lock_guard<std::mutex> lock(guard);
    auto found = kept().find(bytes);
    if (found != kept().end()) {
      void* block = found->second;
      kept().erase(found);
      kept_bytes -= bytes;
      return block;
    }
  }
  void* block = std::aligned_alloc(bytes < 65536 ? LINE : 4096, bytes);
  if (!block) throw std::bad_alloc();
  return block;
}

void give_memory(void* block, size_t bytes) {
  bytes = rounded(bytes);
  {
    std::lock_guard<std::mutex> lock(guard);
    if (kept_bytes + bytes <= KEEP) {
      kept().emplace(bytes, block);
      kept_bytes += bytes;
      return;
    }
  }
  std::free(block);
}

void lock_memory() { guard.lock(); }
void unlock_memory() { guard.unlock(); }

}  // namespace unspool
