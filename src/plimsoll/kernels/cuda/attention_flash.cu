// Attention on tensor cores (bf16, fp16, and fp32 rounded to TF32) without scores in memory: a
// block keeps 64 queries (or, in the gradient, 64 keys) in registers and walks over the others,
// tile by tile.
//
// Scores and probabilities live in the registers that mma leaves them in. In 16 bits those of two
// neighbouring tiles of 8 columns are, without moving anything, the left operand of the next
// product; in TF32 those of one tile are, with the columns of the sum in another order (column 2t
// where the operand has t, 2t + 1 where it has t + 4), which a sum does not mind. The gradient is
// two kernels, one that owns keys (dk, dv) and one that owns queries (dq): each sums in its own
// order, so nothing is added by atomics and every run has the same bits. That costs two products
// more than one kernel would.
//
// Cards of compute capability 9.0 multiply faster from shared memory: attention_hopper.cu.
#include "plimsoll/kernels/cuda/attention_tiles.cuh"

namespace plimsoll::kernels::cuda {
namespace {

constexpr int kFlashThreads = 128;
// Bytes behind a row of a tile: neighbouring rows begin in other banks.
constexpr int kPaddingBytes = 16;

__device__ __forceinline__ void multiply(__nv_bfloat16, float* c, const unsigned* a, unsigned b0,
                                         unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void multiply(__half, float* c, const unsigned* a, unsigned b0,
                                         unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void multiply(float, float* c, const unsigned* a, unsigned b0,
                                         unsigned b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ unsigned rounded(float x) {
  unsigned out;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(out) : "f"(x));
  return out;
}

// Columns of the left operand of one instruction: 32 bytes.
template <typename T>
constexpr int kDepth = 32 / sizeof(T);

// 64 rows of one head in shared memory.
template <typename T, int D>
struct Tile {
  static constexpr int kPerWord = 4 / sizeof(T);  // elements of a register
  T at[kTileRows64][D + kPaddingBytes / sizeof(T)];

  // Rows behind `rows` are zero; fp32 is rounded to TF32.
  __device__ void load(const T* from, std::int64_t step, std::int64_t first, std::int64_t rows) {
    constexpr int kChunk = 16 / sizeof(T);
    for (int i = threadIdx.x; i < kTileRows64 * (D / kChunk); i += kFlashThreads) {
      const int row = i / (D / kChunk);
      const int column = i % (D / kChunk) * kChunk;
      uint4 value = make_uint4(0, 0, 0, 0);
      if (first + row < rows)
        value = *reinterpret_cast<const uint4*>(from + (first + row) * step + column);
      if constexpr (sizeof(T) == 4) {
        value = make_uint4(rounded(__uint_as_float(value.x)), rounded(__uint_as_float(value.y)),
                           rounded(__uint_as_float(value.z)), rounded(__uint_as_float(value.w)));
      }
      *reinterpret_cast<uint4*>(&at[row][column]) = value;
    }
  }
  // The same for 16 bits without waiting: the tile is there after arrival() and a barrier.
  __device__ void begin_load(const T* from, std::int64_t step, std::int64_t first,
                             std::int64_t rows) {
    constexpr int kChunk = 16 / sizeof(T);
#pragma unroll
    for (int i = 0; i < kTileRows64 * (D / kChunk) / kFlashThreads; ++i) {
      const int chunk = i * kFlashThreads + static_cast<int>(threadIdx.x);
      const int row = chunk / (D / kChunk);
      const int column = chunk % (D / kChunk) * kChunk;
      const bool inside = first + row < rows;
      const T* source = from + (inside ? (first + row) * step + column : 0);
      const auto to = static_cast<unsigned>(__cvta_generic_to_shared(&at[row][column]));
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(source),
                   "r"(inside ? 16 : 0));
    }
  }
  __device__ unsigned word(int row, int column) const {
    return *reinterpret_cast<const unsigned*>(&at[row][column]);
  }
  // Rows [row, row + 16) x columns [column, column + kDepth) as a left operand.
  __device__ void left(int row, int column, unsigned* a) const {
    const int g = threadIdx.x % 32 / 4;
    const int t = threadIdx.x % 4 * kPerWord;
    a[0] = word(row + g, column + t);
    a[1] = word(row + g + 8, column + t);
    a[2] = word(row + g, column + t + kDepth<T> / 2);
    a[3] = word(row + g + 8, column + t + kDepth<T> / 2);
  }
  // Columns [k, k + 2 kDepth) of rows [n, n + 8), turned: the right operands of two products with
  // rows.
  __device__ void right_of_rows(int n, int k, unsigned (&b)[4]) const {
    const int lane = threadIdx.x % 32;
    constexpr int kSixteenBytes = 16 / sizeof(T);
    const auto address = static_cast<unsigned>(
        __cvta_generic_to_shared(&at[n + lane % 8][k + lane / 8 * kSixteenBytes]));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                 : "r"(address));
  }
  // Rows [k, k + kDepth) x columns [n, n + 16): the right operands of two products as they lie.
  __device__ void right(int k, int n, unsigned (&b)[4]) const {
    if constexpr (sizeof(T) == 4) {
      const int g = threadIdx.x % 32 / 4;
      const int t = threadIdx.x % 4;
      b[0] = word(k + 2 * t, n + g);
      b[1] = word(k + 2 * t + 1, n + g);
      b[2] = word(k + 2 * t, n + 8 + g);
      b[3] = word(k + 2 * t + 1, n + 8 + g);
    } else {
      const int lane = threadIdx.x % 32;
      const auto address =
          static_cast<unsigned>(__cvta_generic_to_shared(&at[k + lane % 16][n + lane / 16 * 8]));
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                   : "r"(address));
    }
  }
};

// Two tensors' tiles; in 16 bits twice, so that the next two arrive while these are computed with.
template <typename T, int D>
struct Stages {
  static constexpr int kCount = sizeof(T) == 2 ? 2 : 1;
  Tile<T, D> left[kCount];
  Tile<T, D> right[kCount];
};

// Calls load(at, stage) and compute(at, stage) for the tiles of [begin, end). Whoever calls it has
// passed a barrier since the stages were last read.
template <typename T, int D, typename Load, typename Compute>
__device__ __forceinline__ void over_tiles(std::int64_t begin, std::int64_t end, const Load& load,
                                           const Compute& compute) {
  if constexpr (Stages<T, D>::kCount == 1) {
    for (std::int64_t at = begin; at < end; at += kTileRows64) {
      load(at, 0);
      __syncthreads();
      compute(at, 0);
      __syncthreads();
    }
  } else {
    if (begin >= end) return;
    load(begin, 0);
    asm volatile("cp.async.commit_group;");
    int stage = 0;
    for (std::int64_t at = begin; at < end; at += kTileRows64, stage ^= 1) {
      if (at + kTileRows64 < end) load(at + kTileRows64, stage ^ 1);
      asm volatile("cp.async.commit_group;");
      asm volatile("cp.async.wait_group 1;" ::: "memory");
      __syncthreads();
      compute(at, stage);
      __syncthreads();
    }
  }
}

template <typename T, int D>
__device__ __forceinline__ void load_tile(Tile<T, D>& tile, const T* from, std::int64_t step,
                                          std::int64_t first, std::int64_t rows) {
  if constexpr (Stages<T, D>::kCount == 1) {
    tile.load(from, step, first, rows);
  } else {
    tile.begin_load(from, step, first, rows);
  }
}

// Sixteen rows of a tile in registers.
template <typename T, int D>
struct OwnRows {
  unsigned at[D / kDepth<T>][4];
  __device__ void take(const Tile<T, D>& tile) {
#pragma unroll
    for (int i = 0; i < D / kDepth<T>; ++i) tile.left(threadIdx.x / 32 * 16, i * kDepth<T>, at[i]);
  }
};

// out[16 x 64] = own[16 x D] times the tile's rows, turned.
template <typename T, int D>
__device__ void times_rows(const OwnRows<T, D>& own, const Tile<T, D>& tile, Lane4 (&out)[kTiles]) {
  // Four sums at a time: neighbouring instructions do not wait for each other.
  constexpr int kAtOnce = 4;
#pragma unroll
  for (int j = 0; j < kTiles; j += kAtOnce) {
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      for (float& value : out[j + i]) value = 0;
    }
#pragma unroll
    for (int k = 0; k < D / kDepth<T>; k += 2) {
      unsigned b[kAtOnce][4];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) tile.right_of_rows((j + i) * 8, k * kDepth<T>, b[i]);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) multiply(T(), out[j + i], own.at[k], b[i][0], b[i][1]);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) multiply(T(), out[j + i], own.at[k + 1], b[i][2], b[i][3]);
    }
  }
}

// The left operand for columns [k * kDepth, (k + 1) * kDepth) of numbers in registers.
template <typename T>
__device__ __forceinline__ void left_of(T, const Lane4 (&what)[kTiles], int k, unsigned (&a)[4]) {
  a[0] = packed(T(), what[2 * k][0], what[2 * k][1]);
  a[1] = packed(T(), what[2 * k][2], what[2 * k][3]);
  a[2] = packed(T(), what[2 * k + 1][0], what[2 * k + 1][1]);
  a[3] = packed(T(), what[2 * k + 1][2], what[2 * k + 1][3]);
}
__device__ __forceinline__ void left_of(float, const Lane4 (&what)[kTiles], int k,
                                        unsigned (&a)[4]) {
  a[0] = rounded(what[k][0]);
  a[1] = rounded(what[k][2]);
  a[2] = rounded(what[k][1]);
  a[3] = rounded(what[k][3]);
}

// out[16 x D] += what[16 x 64] times the tile.
template <typename T, int D>
__device__ void add_times(const Lane4 (&what)[kTiles], const Tile<T, D>& tile,
                          Lane4 (&out)[D / 8]) {
#pragma unroll
  for (int k = 0; k < kTileRows64 / kDepth<T>; ++k) {
    unsigned a[4];
    left_of(T(), what, k, a);
#pragma unroll
    for (int n = 0; n < D / 8; n += 2) {
      unsigned b[4];
      tile.right(k * kDepth<T>, n * 8, b);
      multiply(T(), out[n], a, b[0], b[1]);
      multiply(T(), out[n + 1], a, b[2], b[3]);
    }
  }
}

template <typename T, int D>
__global__ void __launch_bounds__(kFlashThreads, sizeof(T) == 2 ? 4 : 2)
    flash_forward(FlashShape s, const T* q, const T* k, const T* v, T* y, float* lse) {
  __shared__ alignas(16) Stages<T, D> stages;
  const std::int64_t first = first_of_block(s.causal);
  OwnRows<T, D> own;
  stages.left[0].load(head_of(q, s.q), s.q.row, first, s.rows);
  __syncthreads();
  own.take(stages.left[0]);
  __syncthreads();
  Lane4 sums[D / 8] = {};
  float largest[2] = {-INFINITY, -INFINITY};
  float total[2] = {0, 0};
  const float scale = s.scale * kLog2E;  // positive; scaled scores are powers of two
  const std::int64_t end = end_of_columns(s, first);
  const auto load = [&](std::int64_t column, int stage) {
    load_tile(stages.left[stage], head_of(k, s.k), s.k.row, column, s.columns);
    load_tile(stages.right[stage], head_of(v, s.v), s.v.row, column, s.columns);
  };
  over_tiles<T, D>(0, end, load, [&](std::int64_t column, int stage) {
    Lane4 scores[kTiles];
    times_rows(own, stages.left[stage], scores);
    for_lane<false>(Sight(s, first, column), [&](int j, int e, bool visible) {
      if (!visible) scores[j][e] = -INFINITY;
    });
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float most = -INFINITY;
      for (int j = 0; j < kTiles; ++j)
        most = fmaxf(most, fmaxf(scores[j][2 * half], scores[j][2 * half + 1]));
      const float next = fmaxf(largest[half], over_quad(most, false));
      const float shift = next == -INFINITY ? 0 : next;  // nothing seen yet
      const float factor = power_of_two<T>((largest[half] - shift) * scale);
      largest[half] = next;
      total[half] *= factor;
      for (int n = 0; n < D / 8; ++n) {
        sums[n][2 * half] *= factor;
        sums[n][2 * half + 1] *= factor;
      }
      for (int j = 0; j < kTiles; ++j) {
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          scores[j][e] = power_of_two<T>(scores[j][e] * scale - shift * scale);
          total[half] += scores[j][e];
        }
      }
    }
    add_times(scores, stages.right[stage], sums);
  });
  float factor[2];
  for (int half = 0; half < 2; ++half) {
    total[half] = over_quad(total[half], true);
    factor[half] = total[half] == 0 ? 0 : 1 / total[half];
    const LanePlace place = lane_place(0, half * 2);
    if (threadIdx.x % 4 == 0 && first + place.row < s.rows) {
      lse[statistics_of(s) + first + place.row] =
          total[half] == 0 ? -INFINITY : (largest[half] * scale + log2f(total[half])) * kLn2;
    }
  }
  write_rows<T, D>(sums, factor, head_of(y, s.y), s.y.row, first, s.rows);
}

// dot(dy, y) of every row: a warp to a row.
template <typename T, int D>
__global__ void flash_means(FlashShape s, const T* dy, const T* y, float* means) {
  const std::int64_t row =
      blockIdx.x * static_cast<std::int64_t>(blockDim.x / 32) + threadIdx.x / 32;
  if (row >= s.rows) return;
  const T* left = head_of(dy, s.y) + row * s.y.row;
  const T* right = head_of(y, s.y) + row * s.y.row;
  float sum = 0;
  for (int i = threadIdx.x % 32; i < D; i += 32) sum += wide(left[i]) * wide(right[i]);
  for (int distance = 16; distance > 0; distance /= 2)
    sum += __shfl_xor_sync(0xffffffffU, sum, distance);
  if (threadIdx.x % 32 == 0) means[statistics_of(s) + row] = sum;
}

template <typename T, int D>
__global__ void __launch_bounds__(kFlashThreads, sizeof(T) == 2 ? 3 : 2)
    flash_keys(FlashShape s, const T* dy, const T* q, const T* k, const T* v, const float* lse,
               const float* means, T* dk, T* dv) {
  __shared__ alignas(16) Stages<T, D> stages;
  __shared__ float row_lse[Stages<T, D>::kCount][kTileRows64];
  __shared__ float row_mean[Stages<T, D>::kCount][kTileRows64];
  const std::int64_t first = blockIdx.x * static_cast<std::int64_t>(kTileRows64);
  stages.left[0].load(head_of(k, s.k), s.k.row, first, s.columns);
  stages.right[0].load(head_of(v, s.v), s.v.row, first, s.columns);
  __syncthreads();
  OwnRows<T, D> own_k;
  OwnRows<T, D> own_v;
  own_k.take(stages.left[0]);
  own_v.take(stages.right[0]);
  __syncthreads();
  Lane4 to_k[D / 8] = {};
  Lane4 to_v[D / 8] = {};
  const float scale = s.scale * kLog2E;
  std::int64_t row = s.causal ? first - (s.columns - s.rows) : 0;  // the first that sees a key
  row = row < 0 ? 0 : row / kTileRows64 * kTileRows64;
  const auto load = [&](std::int64_t at_row, int stage) {
    load_tile(stages.left[stage], head_of(q, s.q), s.q.row, at_row, s.rows);
    load_tile(stages.right[stage], head_of(dy, s.y), s.y.row, at_row, s.rows);
    if (threadIdx.x < kTileRows64) {
      const bool inside = at_row + threadIdx.x < s.rows;
      const std::int64_t at = statistics_of(s) + at_row + threadIdx.x;
      row_lse[stage][threadIdx.x] = inside ? lse[at] * kLog2E : 0;
      row_mean[stage][threadIdx.x] = inside ? means[at] : 0;
    }
  };
  over_tiles<T, D>(row, s.rows, load, [&](std::int64_t at_row, int stage) {
    Lane4 weights[kTiles];
    Lane4 slopes[kTiles];
    times_rows(own_k, stages.left[stage], weights);
    times_rows(own_v, stages.right[stage], slopes);
    for_lane<true>(Sight(s, at_row, first), [&](int j, int e, bool visible) {
      const int query = lane_place(j, e).column;
      const float weight =
          visible ? power_of_two<T>(weights[j][e] * scale - row_lse[stage][query]) : 0.0F;
      weights[j][e] = weight;
      slopes[j][e] = visible ? weight * (slopes[j][e] - row_mean[stage][query]) : 0.0F;
    });
    add_times(weights, stages.right[stage], to_v);
    add_times(slopes, stages.left[stage], to_k);
  });
  const float ones[2] = {1, 1};
  const float scales[2] = {s.scale, s.scale};
  write_rows<T, D>(to_v, ones, head_of(dv, s.v), s.v.row, first, s.columns);
  write_rows<T, D>(to_k, scales, head_of(dk, s.k), s.k.row, first, s.columns);
}

template <typename T, int D>
__global__ void __launch_bounds__(kFlashThreads, sizeof(T) == 2 ? 3 : 2)
    flash_queries(FlashShape s, const T* dy, const T* q, const T* k, const T* v, const float* lse,
                  const float* means, T* dq) {
  __shared__ alignas(16) Stages<T, D> stages;
  const std::int64_t first = first_of_block(s.causal);
  stages.left[0].load(head_of(q, s.q), s.q.row, first, s.rows);
  stages.right[0].load(head_of(dy, s.y), s.y.row, first, s.rows);
  __syncthreads();
  OwnRows<T, D> own_q;
  OwnRows<T, D> own_dy;
  own_q.take(stages.left[0]);
  own_dy.take(stages.right[0]);
  __syncthreads();
  float own_lse[2];
  float own_mean[2];
  for (int half = 0; half < 2; ++half) {
    const std::int64_t row = first + lane_place(0, half * 2).row;
    own_lse[half] = row < s.rows ? lse[statistics_of(s) + row] * kLog2E : 0;
    own_mean[half] = row < s.rows ? means[statistics_of(s) + row] : 0;
  }
  Lane4 sums[D / 8] = {};
  const float scale = s.scale * kLog2E;
  const std::int64_t end = end_of_columns(s, first);
  const auto load = [&](std::int64_t column, int stage) {
    load_tile(stages.left[stage], head_of(k, s.k), s.k.row, column, s.columns);
    load_tile(stages.right[stage], head_of(v, s.v), s.v.row, column, s.columns);
  };
  over_tiles<T, D>(0, end, load, [&](std::int64_t column, int stage) {
    Lane4 weights[kTiles];
    Lane4 slopes[kTiles];
    times_rows(own_q, stages.left[stage], weights);
    times_rows(own_dy, stages.right[stage], slopes);
    for_lane<false>(Sight(s, first, column), [&](int j, int e, bool visible) {
      const float weight = visible ? power_of_two<T>(weights[j][e] * scale - own_lse[e / 2]) : 0.0F;
      slopes[j][e] = visible ? weight * (slopes[j][e] - own_mean[e / 2]) : 0.0F;
    });
    add_times(slopes, stages.left[stage], sums);
  });
  const float scales[2] = {s.scale, s.scale};
  write_rows<T, D>(sums, scales, head_of(dq, s.q), s.q.row, first, s.rows);
}

dim3 flash_grid(const FlashShape& s, std::int64_t positions) {
  return dim3(static_cast<unsigned>((positions + kTileRows64 - 1) / kTileRows64),
              static_cast<unsigned>(s.heads), static_cast<unsigned>(s.batch));
}

template <typename T, int D>
void attend_flash(const FlashShape& s, const void* q, const void* k, const void* v, void* y,
                  float* lse, cudaStream_t stream) {
  flash_forward<T, D><<<flash_grid(s, s.rows), kFlashThreads, 0, stream>>>(
      s, static_cast<const T*>(q), static_cast<const T*>(k), static_cast<const T*>(v),
      static_cast<T*>(y), lse);
}

template <typename T, int D>
void flow_flash(const FlashShape& s, const FlashGradient& g, cudaStream_t stream) {
  const auto* dy = static_cast<const T*>(g.dy);
  const auto* q = static_cast<const T*>(g.q);
  const auto* k = static_cast<const T*>(g.k);
  const auto* v = static_cast<const T*>(g.v);
  constexpr int kWarps = kFlashThreads / 32;
  const dim3 rows(static_cast<unsigned>((s.rows + kWarps - 1) / kWarps),
                  static_cast<unsigned>(s.heads), static_cast<unsigned>(s.batch));
  flash_means<T, D><<<rows, kFlashThreads, 0, stream>>>(s, dy, static_cast<const T*>(g.y), g.means);
  flash_keys<T, D><<<flash_grid(s, s.columns), kFlashThreads, 0, stream>>>(
      s, dy, q, k, v, g.lse, g.means, static_cast<T*>(g.dk), static_cast<T*>(g.dv));
  flash_queries<T, D><<<flash_grid(s, s.rows), kFlashThreads, 0, stream>>>(
      s, dy, q, k, v, g.lse, g.means, static_cast<T*>(g.dq));
}

}  // namespace

void flash_attention(Element type, const FlashShape& s, const void* q, const void* k, const void* v,
                     void* y, float* lse, cudaStream_t stream) {
  for_float(type, [&](auto element) {
    using T = decltype(element);
    (s.width == 32 ? attend_flash<T, 32> : attend_flash<T, 64>)(s, q, k, v, y, lse, stream);
  });
}

void flash_attention_gradient(Element type, const FlashShape& s, const FlashGradient& gradient,
                              cudaStream_t stream) {
  for_float(type, [&](auto element) {
    using T = decltype(element);
    (s.width == 32 ? flow_flash<T, 32> : flow_flash<T, 64>)(s, gradient, stream);
  });
}

}  // namespace plimsoll::kernels::cuda
