// Attention in 16 bits on cards of compute capability 9.0, whose tensor cores multiply by tiles
// that they read from shared memory themselves (wgmma), while the warps compute something else.
//
// The walk is that of attention_flash.cu: a group of four warps keeps 64 queries (or, in the
// gradient, 64 keys) in registers, and the others pass by in tiles of 64. What differs:
//   - forward, two groups of a block share the tiles that pass by: the L2 cache is the limit;
//   - a tile arrives two tiles ahead in a ring of four, so a tile is never written while the
//     product of a tile before it is still being computed, and one barrier a tile is enough;
//   - the next scores are computed during the products of these (forward), and scores, slopes and
//     sums overlap with exponentials (gradient).
// Nothing is added by atomics and every sum has one order, so every run has the same bits.
//
// A tile is 64 rows of 128 bytes. Its 16-byte chunks lie at chunk ^ (row % 8), the order that
// the card calls a swizzle of 128 bytes: with it a tile is a right operand as it lies and turned.
//
// Compiled for sm_90a alone. Fences: registers that a product reads or writes are touched
// by nothing between its start and the wait for it, which settle() tells the compiler.
#include "plimsoll/kernels/cuda/attention_tiles.cuh"

namespace plimsoll::kernels::cuda {
namespace {

constexpr int kGroupThreads = 128;
constexpr int kHeadWidth = 64;
constexpr int kRowBytes = 128;
constexpr int kTileBytes = kTileRows64 * kRowBytes;
constexpr int kRing = 4;  // pairs of tiles
constexpr int kPairBytes = 2 * kTileBytes;
constexpr int kDeep = kHeadWidth / 16;  // instructions of a product

using Scores = Lane4[kTiles];            // 64 x 64 of a group
using LeftOperand = unsigned[kDeep][4];  // 64 x 64 in 16 bits

// What a row's gradient needs of it: lse in powers of two, and dot(dy, y).
struct RowNumbers {
  float lse, mean;
};

__device__ __forceinline__ unsigned shared_address(const void* at) {
  return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

// The card's description of a tile: groups of eight rows are 1024 bytes apart.
__device__ __forceinline__ std::uint64_t description(unsigned address) {
  constexpr std::uint64_t kGroupStep = 1024 >> 4;
  constexpr std::uint64_t kSwizzle128 = 1;
  return static_cast<std::uint64_t>((address & 0x3FFFFU) >> 4) | kGroupStep << 16 |
         kGroupStep << 32 | kSwizzle128 << 62;
}

#define PLIMSOLL_WGMMA(type)                                                                      \
  asm volatile(                                                                                   \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"                                                \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type                                 \
      " {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,"  \
      "%24,%25,%26,%27,%28,%29,%30,%31}, {%32,%33,%34,%35}, %36, p, 1, 1, %38;\n}\n"              \
      : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), \
        "+f"(c[1][2]), "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), \
        "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]), \
        "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]), \
        "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), "+f"(c[7][0]), "+f"(c[7][1]), \
        "+f"(c[7][2]), "+f"(c[7][3])                                                              \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(tile), "r"(adds), "n"(as_it_lies))

// c (+)= a times sixteen columns of a tile's rows, turned, or sixteen rows of it as they lie.
template <int as_it_lies>
__device__ __forceinline__ void start_multiply(__nv_bfloat16, Scores& c, const unsigned (&a)[4],
                                               std::uint64_t tile, int adds) {
  PLIMSOLL_WGMMA("bf16");
}
template <int as_it_lies>
__device__ __forceinline__ void start_multiply(__half, Scores& c, const unsigned (&a)[4],
                                               std::uint64_t tile, int adds) {
  PLIMSOLL_WGMMA("f16");
}
#undef PLIMSOLL_WGMMA

__device__ __forceinline__ void before_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void end_of_product() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Until all but the last `pending` products are done.
template <int pending>
__device__ __forceinline__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}
__device__ __forceinline__ void settle(Scores& what) {
#pragma unroll
  for (auto& four : what) {
#pragma unroll
    for (float& value : four) asm volatile("" : "+f"(value)::"memory");
  }
}
__device__ __forceinline__ void settle(LeftOperand& what) {
#pragma unroll
  for (auto& four : what) {
#pragma unroll
    for (unsigned& value : four) asm volatile("" : "+r"(value)::"memory");
  }
}

// out = own times the tile's rows, turned.
template <typename T>
__device__ __forceinline__ void start_times_rows(const LeftOperand& own, unsigned tile,
                                                 Scores& out) {
  const std::uint64_t begin = description(tile);
#pragma unroll
  for (int k = 0; k < kDeep; ++k)
    start_multiply<0>(T(), out, own[k], begin + k * (32 >> 4), k == 0 ? 0 : 1);
  end_of_product();
}
// out += what times the tile.
template <typename T>
__device__ __forceinline__ void start_add_times(const LeftOperand& what, unsigned tile,
                                                Scores& out) {
  const std::uint64_t begin = description(tile);
#pragma unroll
  for (int k = 0; k < kDeep; ++k)
    start_multiply<1>(T(), out, what[k], begin + k * (16 * kRowBytes >> 4), 1);
  end_of_product();
}

template <typename T>
__device__ __forceinline__ void pack(const Scores& from, LeftOperand& to) {
#pragma unroll
  for (int k = 0; k < kDeep; ++k) {
    to[k][0] = packed(T(), from[2 * k][0], from[2 * k][1]);
    to[k][1] = packed(T(), from[2 * k][2], from[2 * k][3]);
    to[k][2] = packed(T(), from[2 * k + 1][0], from[2 * k + 1][1]);
    to[k][3] = packed(T(), from[2 * k + 1][2], from[2 * k + 1][3]);
  }
}

// A group's 64 rows as a left operand, straight from memory; rows behind the end are zero.
template <typename T>
__device__ __forceinline__ void take_rows(const T* from, std::int64_t step, std::int64_t first,
                                          std::int64_t rows, LeftOperand& to) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const LanePlace place = lane_place(0, half * 2);
    const bool inside = first + place.row < rows;
    const T* row = from + (inside ? (first + place.row) * step : 0) + place.column;
#pragma unroll
    for (int i = 0; i < kHeadWidth / 8; ++i)
      to[i / 2][i % 2 * 2 + half] = inside ? *reinterpret_cast<const unsigned*>(row + i * 8) : 0U;
  }
}

// The ring of tiles in shared memory: two tensors' rows [64 j, 64 j + 64) as tile j.
template <typename T, int kGroups>
struct Ring {
  static constexpr int kThreads = kGroups * kGroupThreads;
  const T *left_rows, *right_rows;
  std::int64_t left_step, right_step, rows;  // elements between rows; rows that exist
  std::int64_t begin;                        // the row of tile 0
  int tiles;
  unsigned memory;
  const RowNumbers* numbers = nullptr;  // of the rows, where they are wanted beside the tiles
  unsigned numbers_memory = 0;

  __device__ unsigned left(int tile) const { return memory + tile % kRing * kPairBytes; }
  __device__ unsigned right(int tile) const { return left(tile) + kTileBytes; }

  __device__ void start_all() const {
    start(0);
    start(1);
  }
  // Waits until every thread's part of the tile is there, and starts the tile after the next.
  __device__ void arrive(int tile) const {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("bar.sync 0;" ::: "memory");
    start(tile + 2);
  }

 private:
  __device__ void start(int tile) const {
    if (tile < tiles) {
      const std::int64_t first = begin + tile * static_cast<std::int64_t>(kTileRows64);
      start_rows(left(tile), left_rows, left_step, first);
      start_rows(right(tile), right_rows, right_step, first);
      if (numbers != nullptr && threadIdx.x < kTileRows64) {
        const bool inside = first + threadIdx.x < rows;
        const RowNumbers* source = numbers + (inside ? first + threadIdx.x : 0);
        const unsigned to =
            numbers_memory + (tile % kRing * kTileRows64 + threadIdx.x) * sizeof(RowNumbers);
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(source),
                     "r"(inside ? 8 : 0)
                     : "memory");
      }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  __device__ void start_rows(unsigned to, const T* from, std::int64_t step,
                             std::int64_t first) const {
    constexpr int kChunks = kRowBytes / 16;
#pragma unroll
    for (int i = 0; i < (kTileRows64 * kChunks + kThreads - 1) / kThreads; ++i) {
      const int chunk = i * kThreads + static_cast<int>(threadIdx.x);
      if (kTileRows64 * kChunks % kThreads != 0 && chunk >= kTileRows64 * kChunks) break;
      const int row = chunk / kChunks;
      const int column = chunk % kChunks;
      const bool inside = first + row < rows;
      const T* source = from + (inside ? (first + row) * step + column * 8 : 0);
      const unsigned at = to + row * kRowBytes + ((column ^ row % 8) << 4);
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(source),
                   "r"(inside ? 16 : 0)
                   : "memory");
    }
  }
};

__device__ __forceinline__ int tiles_of(std::int64_t rows) {
  return static_cast<int>((rows + kTileRows64 - 1) / kTileRows64);
}

// A group's queries: the tiles of keys that they see, of those that the block's queries see.
__device__ __forceinline__ int tiles_seen(const FlashShape& s, std::int64_t first) {
  return first < s.rows ? tiles_of(end_of_columns(s, first)) : 0;
}

// Scores become powers of two, relative to the largest that was ever seen in their row.
template <typename T>
__device__ __forceinline__ void soften(const Sight& sight, float scale, Scores& scores,
                                       float (&largest)[2], float (&total)[2], float (&factor)[2]) {
  if (!sight.whole()) {
    for_lane<false>(sight, [&](int j, int e, bool visible) {
      if (!visible) scores[j][e] = -INFINITY;
    });
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float most = -INFINITY;
#pragma unroll
    for (int j = 0; j < kTiles; ++j)
      most = fmaxf(most, fmaxf(scores[j][2 * half], scores[j][2 * half + 1]));
    const float next = fmaxf(largest[half], over_quad(most, false));
    const float shift = next == -INFINITY ? 0 : next * scale;  // nothing seen yet
    factor[half] = power_of_two<T>(largest[half] * scale - shift);
    largest[half] = next;
    float sum = 0;
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
#pragma unroll
      for (int e = 2 * half; e < 2 * half + 2; ++e) {
        scores[j][e] = power_of_two<T>(scores[j][e] * scale - shift);
        sum += scores[j][e];
      }
    }
    total[half] = total[half] * factor[half] + sum;
  }
}

template <typename T, int kGroups, int kBlocks>
__global__ void __launch_bounds__(kGroups* kGroupThreads, kBlocks)
    hopper_forward(FlashShape s, const T* q, const T* k, const T* v, T* y, float* lse) {
  extern __shared__ __align__(1024) unsigned char shared[];
  constexpr int kRows = kGroups * kTileRows64;
  const std::int64_t block_first = first_of_block(s.causal, kRows);
  const std::int64_t first = block_first + threadIdx.x / kGroupThreads * kTileRows64;
  const int tiles = tiles_of(end_of_columns(s, block_first, kRows));
  const int seen = tiles_seen(s, first);
  const Ring<T, kGroups> ring{
      head_of(k, s.k), head_of(v, s.v),       s.k.row, s.v.row, s.columns, 0,
      tiles,           shared_address(shared)};
  const float scale = s.scale * kLog2E;  // positive; scaled scores are powers of two
  ring.start_all();
  LeftOperand own;
  take_rows(head_of(q, s.q), s.q.row, first, s.rows, own);
  Scores sums = {};
  float largest[2] = {-INFINITY, -INFINITY};
  float total[2] = {0, 0};
  float factor[2];
  Scores scores;
  LeftOperand weights;
  if (tiles > 0) ring.arrive(0);
  if (seen > 0) {
    settle(own);
    before_products();
    start_times_rows<T>(own, ring.left(0), scores);
    wait_for_products<0>();
    settle(scores);
    soften<T>(Sight(s, first, 0), scale, scores, largest, total, factor);
    pack<T>(scores, weights);
    for (int tile = 0; tile + 1 < seen; ++tile) {
      ring.arrive(tile + 1);
      settle(weights);
      settle(sums);
      before_products();
      start_times_rows<T>(own, ring.left(tile + 1), scores);
      start_add_times<T>(weights, ring.right(tile), sums);
      wait_for_products<1>();
      settle(scores);
      soften<T>(Sight(s, first, (tile + 1) * static_cast<std::int64_t>(kTileRows64)), scale, scores,
                largest, total, factor);
      wait_for_products<0>();
      settle(sums);
#pragma unroll
      for (auto& four : sums) {
#pragma unroll
        for (int e = 0; e < 4; ++e) four[e] *= factor[e / 2];
      }
      pack<T>(scores, weights);
    }
    settle(weights);
    settle(sums);
    before_products();
    start_add_times<T>(weights, ring.right(seen - 1), sums);
    wait_for_products<0>();
    settle(sums);
  }
  for (int tile = seen > 1 ? seen : 1; tile < tiles; ++tile) ring.arrive(tile);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    total[half] = over_quad(total[half], true);
    factor[half] = total[half] == 0 ? 0 : 1 / total[half];
    const LanePlace place = lane_place(0, half * 2);
    if (threadIdx.x % 4 == 0 && first + place.row < s.rows) {
      lse[statistics_of(s) + first + place.row] =
          total[half] == 0 ? -INFINITY : (largest[half] * scale + log2f(total[half])) * kLn2;
    }
  }
  write_rows<T, kHeadWidth>(sums, factor, head_of(y, s.y), s.y.row, first, s.rows);
}

// Eight lanes to a row.
template <typename T>
__global__ void hopper_rows(FlashShape s, const T* dy, const T* y, const float* lse,
                            RowNumbers* numbers) {
  constexpr int kLanes = kHeadWidth / 8;
  const std::int64_t row =
      blockIdx.x * static_cast<std::int64_t>(blockDim.x / kLanes) + threadIdx.x / kLanes;
  const bool inside = row < s.rows;
  float sum = 0;
  if (inside) {
    const std::int64_t at = row * s.y.row + threadIdx.x % kLanes * 8;
    const uint4 left = *reinterpret_cast<const uint4*>(head_of(dy, s.y) + at);
    const uint4 right = *reinterpret_cast<const uint4*>(head_of(y, s.y) + at);
    const T* a = reinterpret_cast<const T*>(&left);
    const T* b = reinterpret_cast<const T*>(&right);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum += wide(a[i]) * wide(b[i]);
  }
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2)
    sum += __shfl_xor_sync(0xffffffffU, sum, distance);
  if (inside && threadIdx.x % kLanes == 0) {
    const std::int64_t at = statistics_of(s) + row;
    numbers[at] = {lse[at] * kLog2E, sum};
  }
}

template <typename T, int kGroups, int kBlocks>
__global__ void __launch_bounds__(kGroups* kGroupThreads, kBlocks)
    hopper_keys(FlashShape s, const T* dy, const T* q, const T* k, const T* v,
                const RowNumbers* numbers, T* dk, T* dv) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const auto* row_numbers = reinterpret_cast<const RowNumbers*>(shared + kRing * kPairBytes);
  const std::int64_t block_first = blockIdx.x * static_cast<std::int64_t>(kGroups * kTileRows64);
  const std::int64_t first = block_first + threadIdx.x / kGroupThreads * kTileRows64;
  // The first query that sees a key, in whole tiles.
  const auto first_query = [&](std::int64_t key) {
    const std::int64_t row = s.causal ? key - (s.columns - s.rows) : 0;
    return row < 0 ? 0 : row / kTileRows64 * kTileRows64;
  };
  const std::int64_t begin = first_query(block_first);
  const int tiles = begin < s.rows ? tiles_of(s.rows - begin) : 0;
  int unseen = static_cast<int>((first_query(first) - begin) / kTileRows64);
  unseen = first < s.columns && unseen < tiles ? unseen : tiles;
  const Ring<T, kGroups> ring{head_of(q, s.q),
                              head_of(dy, s.y),
                              s.q.row,
                              s.y.row,
                              s.rows,
                              begin,
                              tiles,
                              shared_address(shared),
                              numbers + statistics_of(s),
                              shared_address(row_numbers)};
  const float scale = s.scale * kLog2E;
  ring.start_all();
  LeftOperand own_k;
  LeftOperand own_v;
  take_rows(head_of(k, s.k), s.k.row, first, s.columns, own_k);
  take_rows(head_of(v, s.v), s.v.row, first, s.columns, own_v);
  Scores to_k = {};
  Scores to_v = {};
  Scores weights;
  Scores slopes;
  LeftOperand left_weights;
  LeftOperand left_slopes;
  for (int tile = 0; tile < unseen; ++tile) ring.arrive(tile);
  settle(own_k);
  settle(own_v);
  settle(to_k);
  settle(to_v);
  for (int tile = unseen; tile < tiles; ++tile) {
    ring.arrive(tile);
    before_products();
    start_times_rows<T>(own_k, ring.left(tile), weights);
    start_times_rows<T>(own_v, ring.right(tile), slopes);
    const Sight sight(s, begin + tile * static_cast<std::int64_t>(kTileRows64), first);
    const auto* own_numbers = reinterpret_cast<const float4*>(
        row_numbers + tile % kRing * kTileRows64 + threadIdx.x % 4 * 2);
    wait_for_products<1>();  // the weights, and everything of the tile before
    settle(weights);
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
      const float4 two = own_numbers[j * 4];  // of queries 8 j + 2 t and the next
#pragma unroll
      for (int e = 0; e < 4; ++e)
        weights[j][e] = power_of_two<T>(weights[j][e] * scale - (e % 2 == 0 ? two.x : two.z));
    }
    if (!sight.whole()) {
      for_lane<true>(sight, [&](int j, int e, bool visible) {
        if (!visible) weights[j][e] = 0;
      });
    }
    pack<T>(weights, left_weights);
    settle(left_weights);
    before_products();
    start_add_times<T>(left_weights, ring.right(tile), to_v);
    wait_for_products<1>();  // the slopes
    settle(slopes);
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
      const float4 two = own_numbers[j * 4];
#pragma unroll
      for (int e = 0; e < 4; ++e)
        slopes[j][e] = weights[j][e] * (slopes[j][e] - (e % 2 == 0 ? two.y : two.w));
    }
    pack<T>(slopes, left_slopes);
    settle(left_slopes);
    before_products();
    start_add_times<T>(left_slopes, ring.left(tile), to_k);
  }
  wait_for_products<0>();
  settle(to_k);
  settle(to_v);
  const float ones[2] = {1, 1};
  const float scales[2] = {s.scale, s.scale};
  write_rows<T, kHeadWidth>(to_v, ones, head_of(dv, s.v), s.v.row, first, s.columns);
  write_rows<T, kHeadWidth>(to_k, scales, head_of(dk, s.k), s.k.row, first, s.columns);
}

template <typename T, int kGroups, int kBlocks>
__global__ void __launch_bounds__(kGroups* kGroupThreads, kBlocks)
    hopper_queries(FlashShape s, const T* dy, const T* q, const T* k, const T* v,
                   const RowNumbers* numbers, T* dq) {
  extern __shared__ __align__(1024) unsigned char shared[];
  constexpr int kRows = kGroups * kTileRows64;
  const std::int64_t block_first = first_of_block(s.causal, kRows);
  const std::int64_t first = block_first + threadIdx.x / kGroupThreads * kTileRows64;
  const int tiles = tiles_of(end_of_columns(s, block_first, kRows));
  const int seen = tiles_seen(s, first);
  const Ring<T, kGroups> ring{
      head_of(k, s.k), head_of(v, s.v),       s.k.row, s.v.row, s.columns, 0,
      tiles,           shared_address(shared)};
  const float scale = s.scale * kLog2E;
  ring.start_all();
  LeftOperand own_q;
  LeftOperand own_dy;
  take_rows(head_of(q, s.q), s.q.row, first, s.rows, own_q);
  take_rows(head_of(dy, s.y), s.y.row, first, s.rows, own_dy);
  RowNumbers own[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::int64_t row = first + lane_place(0, half * 2).row;
    own[half] = row < s.rows ? numbers[statistics_of(s) + row] : RowNumbers{0, 0};
  }
  Scores sums = {};
  Scores weights;
  Scores slopes;
  LeftOperand left_slopes;
  settle(own_q);
  settle(own_dy);
  settle(sums);
  for (int tile = 0; tile < seen; ++tile) {
    ring.arrive(tile);
    before_products();
    start_times_rows<T>(own_q, ring.left(tile), weights);
    start_times_rows<T>(own_dy, ring.right(tile), slopes);
    const Sight sight(s, first, tile * static_cast<std::int64_t>(kTileRows64));
    wait_for_products<1>();  // the weights, and the sums of the tile before
    settle(weights);
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e)
        weights[j][e] = power_of_two<T>(weights[j][e] * scale - own[e / 2].lse);
    }
    if (!sight.whole()) {
      for_lane<false>(sight, [&](int j, int e, bool visible) {
        if (!visible) weights[j][e] = 0;
      });
    }
    wait_for_products<0>();
    settle(slopes);
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) slopes[j][e] = weights[j][e] * (slopes[j][e] - own[e / 2].mean);
    }
    pack<T>(slopes, left_slopes);
    settle(left_slopes);
    before_products();
    start_add_times<T>(left_slopes, ring.left(tile), sums);
  }
  wait_for_products<0>();
  settle(sums);
  for (int tile = seen; tile < tiles; ++tile) ring.arrive(tile);
  const float scales[2] = {s.scale, s.scale};
  write_rows<T, kHeadWidth>(sums, scales, head_of(dq, s.q), s.q.row, first, s.rows);
}

dim3 hopper_grid(const FlashShape& s, std::int64_t positions, int rows) {
  return dim3(static_cast<unsigned>((positions + rows - 1) / rows), static_cast<unsigned>(s.heads),
              static_cast<unsigned>(s.batch));
}

// How many groups of warps a block has, and how many blocks an SM, as measured on an H200: one
// group more a block spares the L2 cache, one block more hides more waiting, and registers end
// both.
constexpr int kForwardGroups = 2;
constexpr int kGradientGroups = 1;
constexpr int kBlocksOfSm = 2;

constexpr int kSharedOfQueries = kRing * kPairBytes;
constexpr int kSharedOfKeys =
    kSharedOfQueries + kRing * kTileRows64 * static_cast<int>(sizeof(RowNumbers));

// Blocks may have more than 48 KiB of shared memory when they ask for it.
template <typename Kernel>
void allow_shared(Kernel* kernel, int bytes) {
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}

template <typename T>
void attend_hopper(const FlashShape& s, const void* q, const void* k, const void* v, void* y,
                   float* lse, cudaStream_t stream) {
  auto* const kernel = hopper_forward<T, kForwardGroups, kBlocksOfSm>;
  allow_shared(kernel, kSharedOfQueries);
  kernel<<<hopper_grid(s, s.rows, kForwardGroups * kTileRows64), kForwardGroups * kGroupThreads,
           kSharedOfQueries, stream>>>(s, static_cast<const T*>(q), static_cast<const T*>(k),
                                       static_cast<const T*>(v), static_cast<T*>(y), lse);
}

template <typename T>
void flow_hopper(const FlashShape& s, const FlashGradient& g, cudaStream_t stream) {
  const auto* dy = static_cast<const T*>(g.dy);
  const auto* q = static_cast<const T*>(g.q);
  const auto* k = static_cast<const T*>(g.k);
  const auto* v = static_cast<const T*>(g.v);
  auto* const numbers = reinterpret_cast<RowNumbers*>(g.means);
  constexpr int kRowsAtOnce = kGroupThreads / (kHeadWidth / 8);
  hopper_rows<T><<<hopper_grid(s, s.rows, kRowsAtOnce), kGroupThreads, 0, stream>>>(
      s, dy, static_cast<const T*>(g.y), g.lse, numbers);
  constexpr int kThreads = kGradientGroups * kGroupThreads;
  constexpr int kRows = kGradientGroups * kTileRows64;
  auto* const keys = hopper_keys<T, kGradientGroups, kBlocksOfSm>;
  allow_shared(keys, kSharedOfKeys);
  keys<<<hopper_grid(s, s.columns, kRows), kThreads, kSharedOfKeys, stream>>>(
      s, dy, q, k, v, numbers, static_cast<T*>(g.dk), static_cast<T*>(g.dv));
  auto* const queries = hopper_queries<T, kGradientGroups, kBlocksOfSm>;
  allow_shared(queries, kSharedOfQueries);
  queries<<<hopper_grid(s, s.rows, kRows), kThreads, kSharedOfQueries, stream>>>(
      s, dy, q, k, v, numbers, static_cast<T*>(g.dq));
}

}  // namespace

void hopper_attention(Element type, const FlashShape& s, const void* q, const void* k,
                      const void* v, void* y, float* lse, cudaStream_t stream) {
  (type == Element::kBF16 ? attend_hopper<__nv_bfloat16> : attend_hopper<__half>)(s, q, k, v, y,
                                                                                  lse, stream);
}

void hopper_attention_gradient(Element type, const FlashShape& s, const FlashGradient& gradient,
                               cudaStream_t stream) {
  (type == Element::kBF16 ? flow_hopper<__nv_bfloat16> : flow_hopper<__half>)(s, gradient, stream);
}

}  // namespace plimsoll::kernels::cuda
