// Blocks of memory, aligned to a cache line. Released blocks go to a free list: a new block from the system costs a page
// fault for every 4 KiB, and a training step would pay for them again and again.
#pragma once
#include <cstddef>
#include <cstdint>

namespace unspool {

void* allocate_memory(size_t& bytes);            // at least `bytes`, which becomes the actual size; throws std::bad_alloc
void release_memory(void* block, size_t bytes);  // `bytes`: the actual size
void lock_memory();                          // around fork
void unlock_memory();

// A block that lives as long as this value.
struct Block {
  Block() = default;
  explicit Block(int64_t floats) : bytes((size_t)floats * 4), at((float*)allocate_memory(bytes)) {}
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  Block(Block&& other) noexcept : bytes(other.bytes), at(other.at) { other.at = nullptr; }
  Block& operator=(Block&& other) noexcept {
    if (this != &other) {
      if (at) release_memory(at, bytes);
      bytes = other.bytes;
      at = other.at;
      other.at = nullptr;
    }
    return *this;
  }
  ~Block() { if (at) release_memory(at, bytes); }
  size_t bytes = 0;
  float* at = nullptr;
};

}  // namespace unspool
