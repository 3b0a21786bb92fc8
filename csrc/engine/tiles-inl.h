// The tile registers of AMX. One holds 16 rows of 64 bytes; TDPBF16PS adds the product of 16 rows of 32 numbers and of a block of 32
// rows and 16 columns to a tile of sums, in the order of gemm_bf16-inl.h.
//
// The instructions are written out: the intrinsics of GCC 12 name no memory operand, and stores to the configuration got lost.
#pragma once
#include "engine/bf16-inl.h"

namespace unspool::UNSPOOL_SET {

static const int64_t TILE = 16;  // rows; columns of 32 bits

// Palette 1, eight whole tiles.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// If `used`, the tile registers of this thread are in use from the beginning of the scope to its end.
struct Tiles {
  explicit Tiles(bool used) : used(used) {
    const TileConfig config;
    if (used) asm volatile("ldtilecfg %0" : : "m"(config));
  }
  Tiles(const Tiles&) = delete;
  ~Tiles() {
    if (used) asm volatile("tilerelease");
  }
  const bool used;
};

// Rows are `stride` bytes apart.
template <int T> static inline void load_tile(const void* from, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(T) : "memory");
}
template <int T> static inline void store_tile(void* to, int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(T) : "memory");
}
template <int T> static inline void zero_tile() { asm volatile("tilezero %%tmm%c0" : : "i"(T)); }
template <int SUM, int A, int B> static inline void add_tile_product() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(SUM), "i"(A), "i"(B));
}

// Rows of bf16 as the left side of tile products. All distances are in bytes.
struct TileRows {
  const char* at;
  int64_t stride, next_block, next_tile;  // between two rows, two blocks of 32 columns, two tiles of 16 rows
};

// The registers of M tiles of rows and N panels: sums 0 … M N - 1, rows 4 …, panels the rest.
template <int M, int N, int I = 0> static inline void begin_tiles(const float* s, int64_t stride, bool from_zero) {
  if constexpr (I < M * N) {
    if (from_zero) zero_tile<I>();
    else load_tile<I>(s + I / N * TILE * stride + I % N * TILE, stride * 4);
    begin_tiles<M, N, I + 1>(s, stride, from_zero);
  }
}
template <int M, int N, int I = 0> static inline void end_tiles(float* s, int64_t stride) {
  if constexpr (I < M * N) {
    store_tile<I>(s + I / N * TILE * stride + I % N * TILE, stride * 4);
    end_tiles<M, N, I + 1>(s, stride);
  }
}
template <int M, int N, int J = 0> static inline void add_block(const TileRows& a, const uint32_t* b, int64_t panel) {
  if constexpr (J < N) {
    const int B = 4 + M + J % (4 - M);
    load_tile<B>(b + J * panel, 64);
    if constexpr (J == 0) load_tile<4>(a.at, a.stride);
    add_tile_product<J, 4, B>();
    if constexpr (M == 2) {
      if constexpr (J == 0) load_tile<5>(a.at + a.next_tile, a.stride);
      add_tile_product<N + J, 5, B>();
    }
    add_block<M, N, J + 1>(a, b, panel);
  }
}

static const int64_t BLOCK_WORDS = TILE * TILE;  // of a panel, in a block of 32 rows
static const int64_t TILES_AHEAD = 4;            // blocks between prefetching one and multiplying it

// s (+)= A B for M tiles of rows, N panels that are `panel` words apart and some blocks of 32; the rows of s are `stride` floats
// apart. `then` is what follows these blocks and is to be prefetched with them; nullptr: nothing is.
template <int M, int N>
static inline void add_tiles(TileRows a, const uint32_t* b, int64_t panel, int64_t blocks, float* s, int64_t stride, bool from_zero, const uint32_t* then) {
  static_assert(M <= 2 && M * N <= 4, "eight tile registers");
  begin_tiles<M, N>(s, stride, from_zero);
  for (int64_t block = 0; block < blocks; block++, a.at += a.next_block, b += BLOCK_WORDS) {
    if (then) {
      const int64_t left = block + TILES_AHEAD - blocks;
      const uint32_t* ahead = left < 0 ? b + TILES_AHEAD * BLOCK_WORDS : then + left * BLOCK_WORDS;
      for (int j = 0; j < N; j++)
        for (int64_t line = 0; line < BLOCK_WORDS; line += LANES) __builtin_prefetch(ahead + j * panel + line, 0, 2);
    }
    add_block<M, N>(a, b, panel);
  }
  end_tiles<M, N>(s, stride);
}

}  // namespace unspool::UNSPOOL_SET
