// What many small tensors wait for in one launch, a row of blocks for each of them: AdamW of small
// weights, and running statistics of batch norms.
#include "plimsoll/kernels/cuda/elements.cuh"

namespace plimsoll::kernels::cuda {
namespace {

constexpr int kElementsOfThread = 4;

template <typename G>
__global__ void __launch_bounds__(kBlockThreads)
    adamw_of_group(AdamWGroup group, AdamWFactors factors, const std::int64_t* step) {
  const int weight = static_cast<int>(blockIdx.y);
  const int count = group.count[weight];
  if (static_cast<int>(blockIdx.x) * kBlockThreads >= count) return;
  const auto t = static_cast<double>(*step);
  const auto step_size = static_cast<float>(factors.rate / -expm1(t * factors.log_beta1));
  const auto root_bias = static_cast<float>(1 / sqrt(-expm1(t * factors.log_beta2)));
  const auto* gradient = static_cast<const G*>(group.gradient[weight]);
  const float* w = group.weight[weight];
  const float* m = group.first[weight];
  const float* v = group.second[weight];
  for (int i = blockIdx.x * kBlockThreads + threadIdx.x; i < count;
       i += gridDim.x * kBlockThreads) {
    const float g = wide(gradient[i]);
    const float first = factors.beta1 * m[i] + factors.rest1 * g;
    const float second = factors.beta2 * v[i] + factors.rest2 * g * g;
    const float moved = step_size * first / (sqrtf(second) * root_bias + factors.epsilon);
    group.to_weight[weight][i] = w[i] * factors.shrink - moved;
    group.to_first[weight][i] = first;
    group.to_second[weight][i] = second;
  }
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

void adamw_group(Element gradient, const AdamWGroup& group, const AdamWFactors& factors,
                 const std::int64_t* step, cudaStream_t stream) {
  int most = 0;
  for (const int count : group.count) most = count > most ? count : most;
  if (most == 0) return;
  constexpr int kOfBlock = kBlockThreads * kElementsOfThread;
  const dim3 grid(static_cast<unsigned>((most + kOfBlock - 1) / kOfBlock), AdamWGroup::kWeights);
  for_float(gradient, [&](auto element) {
    adamw_of_group<decltype(element)><<<grid, kBlockThreads, 0, stream>>>(group, factors, step);
  });
}

}  // namespace plimsoll::kernels::cuda
