// What many tensors wait for in one launch: AdamW of weights, whose blocks follow each other, and
// running statistics of batch norms, a row of blocks for each.
#include "plimsoll/kernels/cuda/elements.cuh"

namespace plimsoll::kernels::cuda {
namespace {

constexpr int kAtATime = 4;
constexpr int kOfBlock = kBlockThreads * kAtATime;

template <typename T>
struct alignas(sizeof(T) * kAtATime) Four {
  T at[kAtATime];
};

// The blocks of each weight, one after the other.
struct BlocksOfGroup {
  int before[AdamWGroup::kWeights + 1];  // of the weights before it
  bool in_fours[AdamWGroup::kWeights];   // its tensors begin where four elements can be loaded
};

// The same for every element of a step.
struct AdamWStep {
  float size, root_bias;
};
__device__ AdamWStep step_of(const AdamWFactors& factors, std::int64_t step) {
  const auto t = static_cast<double>(step);
  return {static_cast<float>(factors.rate / -expm1(t * factors.log_beta1)),
          static_cast<float>(1 / sqrt(-expm1(t * factors.log_beta2)))};
}

template <typename T>
__device__ __forceinline__ Four<T> load_four(const T* from, int count, bool whole) {
  if (whole) return *reinterpret_cast<const Four<T>*>(from);
  Four<T> out{};
#pragma unroll
  for (int e = 0; e < kAtATime; ++e) {
    if (e < count) out.at[e] = from[e];
  }
  return out;
}
__device__ __forceinline__ void store_four(float* to, int count, bool whole,
                                           const Four<float>& from) {
  if (whole) {
    *reinterpret_cast<Four<float>*>(to) = from;
    return;
  }
#pragma unroll
  for (int e = 0; e < kAtATime; ++e) {
    if (e < count) to[e] = from.at[e];
  }
}

template <typename G>
__global__ void __launch_bounds__(kBlockThreads)
    adamw_of_group(AdamWGroup group, BlocksOfGroup blocks, AdamWFactors factors,
                   const std::int64_t* step) {
  __shared__ AdamWStep now;
  const int block = static_cast<int>(blockIdx.x);
  int weight = 0;
  while (block >= blocks.before[weight + 1]) ++weight;
  const int i = (block - blocks.before[weight]) * kOfBlock + threadIdx.x * kAtATime;
  const int count = group.count[weight] - i;  // none, for the last threads
  const bool whole = blocks.in_fours[weight] && count >= kAtATime;
  // On their way while one thread computes the factors.
  const auto g = load_four(static_cast<const G*>(group.gradient[weight]) + i, count, whole);
  auto w = load_four(group.weight[weight] + i, count, whole);
  auto m = load_four(group.first[weight] + i, count, whole);
  auto v = load_four(group.second[weight] + i, count, whole);
  if (threadIdx.x == 0) now = step_of(factors, *step);
  __syncthreads();
#pragma unroll
  for (int e = 0; e < kAtATime; ++e) {
    const float gradient = wide(g.at[e]);
    m.at[e] = factors.beta1 * m.at[e] + factors.rest1 * gradient;
    v.at[e] = factors.beta2 * v.at[e] + factors.rest2 * gradient * gradient;
    const float moved = now.size * m.at[e] / (sqrtf(v.at[e]) * now.root_bias + factors.epsilon);
    w.at[e] = w.at[e] * factors.shrink - moved;
  }
  store_four(group.to_weight[weight] + i, count, whole, w);
  store_four(group.to_first[weight] + i, count, whole, m);
  store_four(group.to_second[weight] + i, count, whole, v);
}

__global__ void __launch_bounds__(kBlockThreads)
    statistics_of_group(StatisticsGroup group, float keep, float step) {
  const int norm = static_cast<int>(blockIdx.y);
  const int channel = static_cast<int>(blockIdx.x) * kBlockThreads + static_cast<int>(threadIdx.x);
  if (channel >= group.channels[norm]) return;
  group.to_mean[norm][channel] =
      keep * group.running_mean[norm][channel] + step * group.mean[norm][channel];
  group.to_variance[norm][channel] = keep * group.running_variance[norm][channel] +
                                     group.step_of_variance[norm] * group.variance[norm][channel];
}

}  // namespace

void statistics_group(const StatisticsGroup& group, float keep, float step, cudaStream_t stream) {
  int most = 0;
  for (const int channels : group.channels) most = channels > most ? channels : most;
  if (most == 0) return;
  const dim3 grid(static_cast<unsigned>((most + kBlockThreads - 1) / kBlockThreads),
                  StatisticsGroup::kNorms);
  statistics_of_group<<<grid, kBlockThreads, 0, stream>>>(group, keep, step);
}

static bool begins_at_sixteen(const void* at) {
  return reinterpret_cast<std::uintptr_t>(at) % 16 == 0;
}

void adamw_group(Element gradient, const AdamWGroup& group, const AdamWFactors& factors,
                 const std::int64_t* step, cudaStream_t stream) {
  BlocksOfGroup blocks{};
  for (int i = 0; i < AdamWGroup::kWeights; ++i) {
    blocks.before[i + 1] = blocks.before[i] + (group.count[i] + kOfBlock - 1) / kOfBlock;
    blocks.in_fours[i] =
        begins_at_sixteen(group.gradient[i]) && begins_at_sixteen(group.weight[i]) &&
        begins_at_sixteen(group.first[i]) && begins_at_sixteen(group.second[i]) &&
        begins_at_sixteen(group.to_weight[i]) && begins_at_sixteen(group.to_first[i]) &&
        begins_at_sixteen(group.to_second[i]);
  }
  const int all = blocks.before[AdamWGroup::kWeights];
  if (all == 0) return;
  for_float(gradient, [&](auto element) {
    adamw_of_group<decltype(element)>
        <<<static_cast<unsigned>(all), kBlockThreads, 0, stream>>>(group, blocks, factors, step);
  });
}

}  // namespace plimsoll::kernels::cuda
