// The mean cross-entropy of rows of logits and its gradient: one pass over the logits each. The
// largest logit and the sum of exponentials are found together: a thread scales its sum down
// whenever it meets a larger logit.
//
// Rows begin `step` elements apart (their end may be padding, which nobody reads or writes), and
// are loaded 16 bytes at a time where they begin at multiples of that.
#include <cmath>

#include "plimsoll/kernels/cuda/vectors.cuh"

namespace plimsoll::kernels::cuda {
namespace {

constexpr std::int64_t kIgnoredLabel = -1;
constexpr std::int64_t kNoClass = -2;

// The label, or why there is none.
__device__ __forceinline__ std::int64_t label_of(const LossRows& rows, const void* labels,
                                                 std::int64_t row) {
  const std::int64_t label = rows.wide_labels ? static_cast<const std::int64_t*>(labels)[row]
                                              : static_cast<const std::int32_t*>(labels)[row];
  if (label == rows.ignore) return kIgnoredLabel;
  return label >= 0 && label < rows.classes ? label : kNoClass;
}

constexpr float kLog2OfE = 1.4426950408889634F;

// exp(x): for numbers that were rounded to 16 bits, to some 20 bits.
template <typename T>
__device__ __forceinline__ float exponential(float x) {
  if constexpr (sizeof(T) == 4) {
    return expf(x);
  } else {
    float out;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x * kLog2OfE));
    return out;
  }
}

// The sum of exp(x - largest).
struct Exponentials {
  float largest, sum;
};
struct AddExponentials {
  __device__ Exponentials operator()(const Exponentials& a, const Exponentials& b) const {
    const float largest = Larger()(a.largest, b.largest);
    return {largest, scaled(a, largest) + scaled(b, largest)};
  }
  // Nothing is left of a sum of nothing, whatever the difference of infinities is.
  static __device__ float scaled(const Exponentials& one, float largest) {
    return one.largest == -INFINITY ? 0 : one.sum * expf(one.largest - largest);
  }
};

template <typename T, int count>
__device__ __forceinline__ Exponentials with(const Exponentials& so_far, const float* x) {
  float largest = so_far.largest;
#pragma unroll
  for (int v = 0; v < count; ++v) largest = Larger()(largest, x[v]);
  if (largest == -INFINITY) return so_far;
  float sum = AddExponentials::scaled(so_far, largest);
#pragma unroll
  for (int v = 0; v < count; ++v) sum += exponential<T>(x[v] - largest);
  return {largest, sum};
}

// sums[row] = the row's loss, sums[rows + row] = whether it counts.
template <typename T, bool vectors>
__global__ void __launch_bounds__(kBlockThreads)
    loss_of_rows(LossRows rows, const T* logits, const void* labels, float* lse, float* sums) {
  constexpr int kSize = vectors ? kVectorSize<T> : 1;
  __shared__ Exponentials shared[kBlockThreads / 32];
  const std::int64_t row = blockIdx.x;
  const T* x = logits + row * rows.step;
  Exponentials mine{-INFINITY, 0};
  const std::int64_t whole = rows.classes / kSize * kSize;
#pragma unroll 4  // loads of several at once
  for (std::int64_t i = threadIdx.x * kSize; i < whole; i += kBlockThreads * kSize) {
    float values[kSize];
    if constexpr (vectors) {
      Vector<T> part;
      part.load(x + i);
#pragma unroll
      for (int v = 0; v < kSize; ++v) values[v] = part.at(v);
    } else {
      values[0] = wide(x[i]);
    }
    mine = with<T, kSize>(mine, values);
  }
  for (std::int64_t i = whole + threadIdx.x; i < rows.classes; i += kBlockThreads) {
    const float value = wide(x[i]);
    mine = with<T, 1>(mine, &value);
  }
  const Exponentials all = merge_block(mine, shared, AddExponentials());
  if (threadIdx.x != 0) return;
  const float total = isinf(all.largest) ? all.largest : all.largest + logf(all.sum);
  lse[row] = total;
  const std::int64_t label = label_of(rows, labels, row);
  sums[row] = label >= 0 ? total - wide(x[label]) : label == kNoClass ? NAN : 0;
  sums[rows.rows + row] = label == kIgnoredLabel ? 0 : 1;
}

template <typename Body>
__device__ float sum_over(std::int64_t count, float* shared, const Body& body) {
  float mine = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += kBlockThreads) mine += body(i);
  return merge_block(mine, shared, Plus());
}

// One block.
__global__ void mean_loss(LossRows rows, const float* sums, float* loss) {
  __shared__ float shared[kBlockThreads / 32];
  const float sum = sum_over(rows.rows, shared, [&](std::int64_t i) { return sums[i]; });
  const float count =
      sum_over(rows.rows, shared, [&](std::int64_t i) { return sums[rows.rows + i]; });
  if (threadIdx.x == 0) *loss = sum / count;
}

// One block.
__global__ void count_rows(LossRows rows, const void* labels, float* count) {
  __shared__ float shared[kBlockThreads / 32];
  const float total = sum_over(rows.rows, shared, [&](std::int64_t i) {
    return label_of(rows, labels, i) == kIgnoredLabel ? 0.0F : 1.0F;
  });
  if (threadIdx.x == 0) *count = total;
}

// One block.
__global__ void mean_of_rows(LossRows rows, const float* losses, const void* labels, float* loss) {
  __shared__ float shared[kBlockThreads / 32];
  const auto counts = [&](std::int64_t i) { return label_of(rows, labels, i) != kIgnoredLabel; };
  const float sum =
      sum_over(rows.rows, shared, [&](std::int64_t i) { return counts(i) ? losses[i] : 0.0F; });
  const float count =
      sum_over(rows.rows, shared, [&](std::int64_t i) { return counts(i) ? 1.0F : 0.0F; });
  if (threadIdx.x == 0) *loss = sum / count;
}

// dlogits may lie over the logits.
template <typename T, bool vectors>
__global__ void __launch_bounds__(kBlockThreads)
    loss_gradient(LossRows rows, const float* dloss, const T* logits, const void* labels,
                  const float* lse, T* dlogits, const float* count) {
  constexpr int kSize = vectors ? kVectorSize<T> : 1;
  constexpr int kAtOnce = 4;
  const std::int64_t row = blockIdx.x;
  const std::int64_t label = label_of(rows, labels, row);
  const float scale = label == kNoClass ? NAN : label == kIgnoredLabel ? 0 : *dloss / *count;
  const float total = lse[row];
  const T* from = logits + row * rows.step;
  T* to = dlogits + row * rows.step;
  const auto slope = [&](std::int64_t i, float x) {
    if (label == kIgnoredLabel) return 0.0F;
    const float out = scale * exponential<T>(x - total);
    return i == label ? out - scale : out;
  };
  std::int64_t i = threadIdx.x * kSize;
  if constexpr (vectors) {
    constexpr std::int64_t kStep = kBlockThreads * kSize;
    const std::int64_t whole = rows.classes / kSize * kSize;
    for (; i < whole; i += kStep * kAtOnce) {
      Vector<T> parts[kAtOnce];
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        if (i + u * kStep < whole) parts[u].load(from + i + u * kStep);
      }
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        const std::int64_t at = i + u * kStep;
        if (at >= whole) continue;
        Vector<T> out;
#pragma unroll
        for (int v = 0; v < kSize; ++v) out.set(v, slope(at + v, parts[u].at(v)));
        out.store(to + at);
      }
    }
    i = whole + threadIdx.x;
  }
  for (; i < rows.classes; i += kBlockThreads) to[i] = narrow<T>(slope(i, wide(from[i])));
}

template <typename T>
bool takes_vectors(const LossRows& rows) {
  return rows.step % kVectorSize<T> == 0;
}

unsigned block_a_row(const LossRows& rows) {
  return static_cast<unsigned>(rows.rows);
}

}  // namespace

void cross_entropy_rows(Element type, const LossRows& rows, const void* logits, const void* labels,
                        float* loss, float* lse, float* sums, cudaStream_t stream) {
  for_float(type, [&](auto element) {
    using T = decltype(element);
    if (rows.rows == 0) return;
    const auto* x = static_cast<const T*>(logits);
    if (takes_vectors<T>(rows)) {
      loss_of_rows<T, true>
          <<<block_a_row(rows), kBlockThreads, 0, stream>>>(rows, x, labels, lse, sums);
    } else {
      loss_of_rows<T, false>
          <<<block_a_row(rows), kBlockThreads, 0, stream>>>(rows, x, labels, lse, sums);
    }
  });
  mean_loss<<<1, kBlockThreads, 0, stream>>>(rows, sums, loss);
}

void mean_of_losses(const LossRows& rows, const float* losses, const void* labels, float* loss,
                    cudaStream_t stream) {
  mean_of_rows<<<1, kBlockThreads, 0, stream>>>(rows, losses, labels, loss);
}

void cross_entropy_gradient_rows(Element type, const LossRows& rows, const CountedLabels& counted,
                                 const float* dloss, const void* logits, const void* labels,
                                 const float* lse, void* dlogits, float* count,
                                 cudaStream_t stream) {
  LossRows all = rows;
  all.rows = counted.rows;
  count_rows<<<1, kBlockThreads, 0, stream>>>(all, counted.labels, count);
  for_float(type, [&](auto element) {
    using T = decltype(element);
    if (rows.rows == 0) return;
    const auto* x = static_cast<const T*>(logits);
    auto* dx = static_cast<T*>(dlogits);
    if (takes_vectors<T>(rows)) {
      loss_gradient<T, true>
          <<<block_a_row(rows), kBlockThreads, 0, stream>>>(rows, dloss, x, labels, lse, dx, count);
    } else {
      loss_gradient<T, false>
          <<<block_a_row(rows), kBlockThreads, 0, stream>>>(rows, dloss, x, labels, lse, dx, count);
    }
  });
}

}  // namespace plimsoll::kernels::cuda
