// Blocks of memory, aligned to a cache line, kept for the next caller: a fresh block from the system costs a
// page fault for every 4 KiB, which a training step would pay again and again.
#pragma once
#include <cstddef>
#include <cstdint>

namespace unspool {

void* take_memory(size_t& bytes);            // at least so many; says how many it is; throws std::bad_alloc
void give_memory(void* block, size_t bytes);  // as many as it was
void lock_memory();                          // around fork
void unlock_memory();

// A block that lives as long as this value.
struct Block {
  Block() = default;
  explicit Block(int64_t floats) : bytes((size_t)floats * 4), at((float*)take_memory(bytes)) {}
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  Block(Block&& other) noexcept : bytes(other.bytes), at(other.at) { other.at = nullptr; }
  Block& operator=(Block&& other) noexcept {
    if (this != &other) {
      if (at) give_memory(at, bytes);
      bytes = other.bytes;
      at = other.at;
      other.at = nullptr;
    }
    return *this;
  }
  ~Block() { if (at) give_memory(at, bytes); }
  size_t bytes = 0;
  float* at = nullptr;
};

}  // namespace unspool
