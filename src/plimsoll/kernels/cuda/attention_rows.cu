// Rows of attention scores: mask, softmax and its gradient. The products around them are cuBLASLt's
// (attention.cpp).
#include <cmath>

#include "plimsoll/kernels/cuda/elements.cuh"

namespace plimsoll::kernels::cuda {
namespace {

// The lse of a row is kept in fp32; further out than this a gradient rebuilds the row's
// probabilities from its own scores (ops/products/attention_sizes.h).
constexpr float kFarLse = 1024;

struct RowOfScores {
  std::int64_t first;    // its place in the scores
  std::int64_t visible;  // columns
  std::int64_t mask;     // its place in the mask
};

__device__ RowOfScores row_of(const ScoreRows& rows, std::int64_t index) {
  const std::int64_t row = index % rows.rows;
  std::int64_t visible = rows.columns;
  if (rows.causal) {
    visible = row + rows.shift;
    visible = visible < 0 ? 0 : visible > rows.columns ? rows.columns : visible;
  }
  return {index * rows.columns, visible, index / rows.rows * rows.mask_head + row * rows.mask_row};
}

template <typename M>
__device__ float score(const ScoreRows& rows, const RowOfScores& row, const float* scores,
                       std::int64_t j) {
  const float own = scores[row.first + j];
  if (rows.mask == nullptr) return own;
  return own + wide(static_cast<const M*>(rows.mask)[row.mask + j * rows.mask_column]);
}

template <typename M>
__device__ float largest_score(const ScoreRows& rows, const RowOfScores& row, const float* scores,
                               float* shared) {
  float mine = -INFINITY;
  for (std::int64_t j = threadIdx.x; j < row.visible; j += blockDim.x)
    mine = Larger()(mine, score<M>(rows, row, scores, j));
  return merge_block(mine, shared, Larger());
}

template <typename M>
__device__ float sum_of_exponentials(const ScoreRows& rows, const RowOfScores& row,
                                     const float* scores, float largest, float* shared) {
  float mine = 0;
  for (std::int64_t j = threadIdx.x; j < row.visible; j += blockDim.x)
    mine += expf(score<M>(rows, row, scores, j) - largest);
  return merge_block(mine, shared, Plus());
}

// Every element of the row: exp(score - shift) * factor, 0 where nothing is seen. In fp32 the
// probabilities lie over the scores: a thread reads what it writes.
template <typename T, typename M>
__device__ void write_row(const ScoreRows& rows, const RowOfScores& row, const float* scores,
                          float shift, float factor, bool sees_nothing, T* probabilities) {
  for (std::int64_t j = threadIdx.x; j < rows.columns; j += blockDim.x) {
    float value = 0;
    if (!sees_nothing && j < row.visible)
      value = expf(score<M>(rows, row, scores, j) - shift) * factor;
    probabilities[row.first + j] = narrow<T>(value);
  }
}

template <typename T, typename M>
__global__ void attend(ScoreRows rows, const float* scores, T* probabilities, float* lse) {
  __shared__ float shared[kBlockThreads / 32];
  const RowOfScores row = row_of(rows, blockIdx.x);
  const float largest = largest_score<M>(rows, row, scores, shared);
  const bool sees_nothing = largest == -INFINITY;
  const float sum = sees_nothing ? 1 : sum_of_exponentials<M>(rows, row, scores, largest, shared);
  if (threadIdx.x == 0) lse[blockIdx.x] = sees_nothing ? largest : largest + logf(sum);
  write_row<T, M>(rows, row, scores, largest, 1 / sum, sees_nothing, probabilities);
}

template <typename T, typename M>
__global__ void attend_again(ScoreRows rows, const float* scores, T* probabilities,
                             const float* lse) {
  __shared__ float shared[kBlockThreads / 32];
  const RowOfScores row = row_of(rows, blockIdx.x);
  const float stored = lse[blockIdx.x];
  float shift = stored;
  float factor = 1;
  const bool sees_nothing = stored == -INFINITY;
  if (!sees_nothing && fabsf(stored) > kFarLse) {
    shift = largest_score<M>(rows, row, scores, shared);
    factor = 1 / sum_of_exponentials<M>(rows, row, scores, shift, shared);
  }
  write_row<T, M>(rows, row, scores, shift, factor, sees_nothing, probabilities);
}

template <typename T>
__global__ void score_gradient(ScoreRows rows, ValueRows values, float scale,
                               const T* probabilities, const float* dprobabilities, const T* dy,
                               const T* y, T* dscores) {
  __shared__ float shared[kBlockThreads / 32];
  const std::int64_t at =
      blockIdx.x / rows.rows * values.head + blockIdx.x % rows.rows * values.row;
  float mine = 0;
  for (std::int64_t i = threadIdx.x; i < values.width; i += blockDim.x)
    mine += wide(dy[at + i]) * wide(y[at + i]);
  const float mean = merge_block(mine, shared, Plus());
  const RowOfScores row = row_of(rows, blockIdx.x);
  for (std::int64_t j = threadIdx.x; j < rows.columns; j += blockDim.x) {
    const float probability = wide(probabilities[row.first + j]);
    const float slope = dprobabilities[row.first + j] - mean;
    // Where nothing flows, nothing does, whatever the other factor.
    dscores[row.first + j] =
        narrow<T>(j < row.visible && probability != 0 ? scale * probability * slope : 0.0F);
  }
}

template <typename Make>
void for_mask(Element type, const ScoreRows& rows, const Make& make) {
  for_float(type, [&](auto element) {
    if (rows.mask != nullptr && rows.mask_type == type) {
      make(element, element);
    } else {
      make(element, float());
    }
  });
}

unsigned grid(const ScoreRows& rows) {
  return static_cast<unsigned>(rows.heads * rows.rows);
}

}  // namespace

void attend_rows(Element type, const ScoreRows& rows, float* scores, void* probabilities,
                 float* lse, cudaStream_t stream) {
  for_mask(type, rows, [&](auto element, auto mask) {
    using T = decltype(element);
    attend<T, decltype(mask)><<<grid(rows), kBlockThreads, 0, stream>>>(
        rows, scores, static_cast<T*>(probabilities), lse);
  });
}

void attend_rows_again(Element type, const ScoreRows& rows, const float* scores,
                       void* probabilities, const float* lse, cudaStream_t stream) {
  for_mask(type, rows, [&](auto element, auto mask) {
    using T = decltype(element);
    attend_again<T, decltype(mask)><<<grid(rows), kBlockThreads, 0, stream>>>(
        rows, scores, static_cast<T*>(probabilities), lse);
  });
}

void score_gradient_rows(Element type, const ScoreRows& rows, const ValueRows& values, double scale,
                         const void* probabilities, float* dprobabilities, const void* dy,
                         const void* y, void* dscores, cudaStream_t stream) {
  for_float(type, [&](auto element) {
    using T = decltype(element);
    score_gradient<T><<<grid(rows), kBlockThreads, 0, stream>>>(
        rows, values, static_cast<float>(scale), static_cast<const T*>(probabilities),
        dprobabilities, static_cast<const T*>(dy), static_cast<const T*>(y),
        static_cast<T*>(dscores));
  });
}

}  // namespace plimsoll::kernels::cuda
