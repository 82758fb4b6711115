// What kernels of attention have in common that keep tiles of 64 queries x 64 keys in registers:
// which element a lane has, which keys a query sees, and how rows are written.
//
//   a lane's part of a tile:  row g = lane / 4 (and g + 8), columns 2t, 2t + 1 with t = lane % 4
#pragma once

#include <cmath>

#include "plimsoll/kernels/cuda/elements.cuh"

namespace plimsoll::kernels::cuda {

constexpr int kTileRows64 = 64;
constexpr int kTiles = kTileRows64 / 8;
constexpr float kLog2E = 1.4426950408889634F;
constexpr float kLn2 = 0.6931471805599453F;

using Lane4 = float[4];

__device__ __forceinline__ unsigned packed(__nv_bfloat16, float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&both);
}
__device__ __forceinline__ unsigned packed(__half, float low, float high) {
  const __half2 both = __floats2half2_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&both);
}

// 2^x: of scores that were rounded to 16 bits as the card has it.
template <typename T>
__device__ __forceinline__ float power_of_two(float x) {
  if constexpr (sizeof(T) == 4) {
    return exp2f(x);
  } else {
    float out;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
    return out;
  }
}

__device__ __forceinline__ void write_pair(float* to, float low, float high) {
  *reinterpret_cast<float2*>(to) = make_float2(low, high);
}
template <typename T>
__device__ __forceinline__ void write_pair(T* to, float low, float high) {
  *reinterpret_cast<unsigned*>(to) = packed(T(), low, high);
}

// Where a lane's element e of column tile j lies in a tile of 64 rows, of which each of four
// neighbouring warps has sixteen.
struct LanePlace {
  int row, column;
};
__device__ __forceinline__ LanePlace lane_place(int j, int e) {
  const int lane = threadIdx.x % 32;
  return {static_cast<int>(threadIdx.x % 128 / 32) * 16 + lane / 4 + e / 2 * 8,
          j * 8 + lane % 4 * 2 + e % 2};
}

template <typename T, int D>
__device__ __forceinline__ void write_rows(const Lane4 (&what)[D / 8], const float (&factor)[2],
                                           T* to, std::int64_t step, std::int64_t first,
                                           std::int64_t rows) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const LanePlace place = lane_place(0, half * 2);
    if (first + place.row >= rows) continue;
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      write_pair(to + (first + place.row) * step + n * 8 + place.column,
                 what[n][2 * half] * factor[half], what[n][2 * half + 1] * factor[half]);
    }
  }
}

template <typename T>
__device__ __forceinline__ T* head_of(T* data, const FlashSteps& steps) {
  return data + blockIdx.z * steps.batch + blockIdx.y * steps.head;
}
__device__ __forceinline__ std::int64_t statistics_of(const FlashShape& s) {
  return (blockIdx.z * s.heads + blockIdx.y) * s.rows;
}

// What is seen of a tile of 64 queries x 64 keys that begins there. Most tiles are seen whole, and
// nothing has to be compared in them.
struct Sight {
  int rows, columns;  // that exist
  int reach;          // the first row sees the keys up to this one
  __device__ Sight(const FlashShape& s, std::int64_t row, std::int64_t column)
      : rows(cut(s.rows - row)),
        columns(cut(s.columns - column)),
        reach(s.causal ? cut(row + s.columns - s.rows - column) : kFar) {}
  __device__ bool whole() const {
    return rows >= kTileRows64 && columns >= kTileRows64 && reach >= kTileRows64 - 1;
  }
  __device__ bool sees(int row, int column) const {
    return row < rows && column < columns && column <= row + reach;
  }

 private:
  static constexpr int kFar = 2 * kTileRows64;
  static __device__ int cut(std::int64_t distance) {
    return static_cast<int>(distance > kFar ? kFar : distance < -kFar ? -kFar : distance);
  }
};

// Calls body(j, e, visible) for a lane's elements of a tile, `turned` where keys are its rows.
template <bool turned, typename Body>
__device__ __forceinline__ void for_lane(const Sight& sight, const Body& body) {
  if (sight.whole()) {
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) body(j, e, true);
    }
    return;
  }
#pragma unroll
  for (int j = 0; j < kTiles; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const LanePlace place = lane_place(j, e);
      body(j, e,
           turned ? sight.sees(place.column, place.row) : sight.sees(place.row, place.column));
    }
  }
}

// Tiles of many columns are begun first: causal queries at the end see most.
__device__ __forceinline__ std::int64_t first_of_block(bool last_first, int rows = kTileRows64) {
  const unsigned block = last_first ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
  return block * static_cast<std::int64_t>(rows);
}

__device__ __forceinline__ float over_quad(float value, bool sums) {
  for (const int distance : {1, 2}) {
    const float other = __shfl_xor_sync(0xffffffffU, value, distance);
    value = sums ? value + other : fmaxf(value, other);
  }
  return value;
}

// Columns that the rows [first, first + rows) see end here.
__device__ __forceinline__ std::int64_t end_of_columns(const FlashShape& s, std::int64_t first,
                                                       int rows = kTileRows64) {
  if (!s.causal) return s.columns;
  const std::int64_t end = first + rows + s.columns - s.rows;
  return end < 0 ? 0 : end < s.columns ? end : s.columns;
}

}  // namespace plimsoll::kernels::cuda
