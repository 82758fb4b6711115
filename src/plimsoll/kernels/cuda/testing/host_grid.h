// The words of CUDA that coded_blocks.cuh uses, on the host: a thread of a block is a fiber, they
// take turns where they meet, and blocks run one after the other. So kernels are tested where there
// is no card. For tests only, before a .cuh that includes nothing of CUDA's.
#pragma once

#include <ucontext.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

// NOLINTBEGIN(bugprone-reserved-identifier): the names are CUDA's.
#define __global__
#define __device__
#define __shared__ static

namespace plimsoll::kernels::cuda {

struct Dim {
  unsigned x = 0;
};
inline Dim threadIdx;
inline Dim blockIdx;
inline Dim blockDim;

struct alignas(16) uint4 {
  std::array<std::uint32_t, 4> words;
};

// Where so many threads meet.
struct Meeting {
  unsigned wanted = 0;
  unsigned here = 0;
  unsigned round = 0;
};

// The threads of a block.
struct HostBlock {
  static constexpr unsigned kThreads = 64;
  static constexpr std::size_t kStackBytes = 256 << 10;
  std::function<void()> body;
  ucontext_t turns{};
  std::array<ucontext_t, kThreads> threads{};
  std::array<bool, kThreads> over{};
  std::vector<std::byte> stacks = std::vector<std::byte>(kThreads * kStackBytes);
  Meeting all{kThreads};
  std::array<Meeting, kThreads / 32> warps{Meeting{32}, Meeting{32}};
  std::array<std::array<std::uint32_t, 32>, kThreads / 32> lanes{};
  int vote = 0;
};
inline HostBlock* host_block = nullptr;

inline void meet(Meeting& at) {
  const unsigned round = at.round;
  if (++at.here == at.wanted) {
    at.here = 0;
    ++at.round;
    return;
  }
  while (at.round == round) {
    const unsigned self = threadIdx.x;
    swapcontext(&host_block->threads[self], &host_block->turns);
  }
}

inline void __syncthreads() {
  meet(host_block->all);
}
inline int __syncthreads_or(int mine) {
  __syncthreads();
  if (threadIdx.x == 0) host_block->vote = 0;
  __syncthreads();
  host_block->vote |= mine;
  __syncthreads();
  return host_block->vote;
}

// Every lane's word, as it is now.
inline std::array<std::uint32_t, 32> lanes_of_warp(std::uint32_t mine) {
  const unsigned warp = threadIdx.x / 32;
  host_block->lanes[warp][threadIdx.x % 32] = mine;
  meet(host_block->warps[warp]);
  const std::array<std::uint32_t, 32> out = host_block->lanes[warp];
  meet(host_block->warps[warp]);
  return out;
}
inline unsigned __ballot_sync(unsigned, bool mine) {
  unsigned out = 0;
  const auto lanes = lanes_of_warp(mine ? 1 : 0);
  for (unsigned lane = 0; lane < 32; ++lane) out |= lanes[lane] << lane;
  return out;
}
inline std::uint32_t __shfl_xor_sync(unsigned, std::uint32_t mine, int distance) {
  return lanes_of_warp(mine)[threadIdx.x % 32 ^ static_cast<unsigned>(distance)];
}
inline std::uint32_t __shfl_up_sync(unsigned, std::uint32_t mine, int distance) {
  const auto lane = static_cast<int>(threadIdx.x % 32);
  const auto lanes = lanes_of_warp(mine);
  return lanes[static_cast<std::size_t>(lane < distance ? lane : lane - distance)];
}
inline int __popc(unsigned bits) {
  return std::popcount(bits);
}

template <typename T>
void atomicAdd(T* to, T more) {
  *to += more;
}
inline void atomicOr(unsigned* to, unsigned more) {
  *to |= more;
}
inline void atomicMax(unsigned* to, unsigned other) {
  *to = other > *to ? other : *to;
}
inline unsigned atomicCAS(unsigned* to, unsigned is, unsigned then) {
  const unsigned found = *to;
  if (found == is) *to = then;
  return found;
}

inline float __uint_as_float(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}
inline std::uint32_t __float_as_uint(float value) {
  return std::bit_cast<std::uint32_t>(value);
}
inline float __fmul_rn(float a, float b) {
  return a * b;
}
inline float __fdiv_rn(float a, float b) {
  return a / b;
}
inline int __float2int_rn(float value) {
  return static_cast<int>(std::lrint(value));
}
using std::fabs;
using std::isfinite;

inline void run_thread() {
  const unsigned self = threadIdx.x;
  host_block->body();
  host_block->over[self] = true;
  swapcontext(&host_block->threads[self], &host_block->turns);
}

inline void run_grid(unsigned blocks, const std::function<void()>& kernel) {
  constexpr unsigned kThreads = HostBlock::kThreads;
  HostBlock block;
  block.body = kernel;
  host_block = &block;
  blockDim.x = kThreads;
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
    for (unsigned t = 0; t < kThreads; ++t) {
      block.over[t] = false;
      getcontext(&block.threads[t]);
      block.threads[t].uc_stack.ss_sp = block.stacks.data() + t * HostBlock::kStackBytes;
      block.threads[t].uc_stack.ss_size = HostBlock::kStackBytes;
      makecontext(&block.threads[t], run_thread, 0);
    }
    for (unsigned left = kThreads; left > 0;) {
      for (unsigned t = 0; t < kThreads; ++t) {
        if (block.over[t]) continue;
        threadIdx.x = t;
        swapcontext(&block.turns, &block.threads[t]);
        left -= block.over[t] ? 1 : 0;
      }
    }
  }
  host_block = nullptr;
}

}  // namespace plimsoll::kernels::cuda
// NOLINTEND(bugprone-reserved-identifier)
