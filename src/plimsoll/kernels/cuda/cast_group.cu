// Casts of many tensors to 16 bits in one launch: a row of blocks for each of them.
#include "plimsoll/kernels/cuda/elements.cuh"

namespace plimsoll::kernels::cuda {
namespace {

constexpr int kAtATime = 4;
constexpr std::int64_t kMostBlocks = 264;  // of one tensor

template <typename T>
struct alignas(sizeof(T) * kAtATime) Four {
  T at[kAtATime];
};

template <typename T>
__global__ void __launch_bounds__(kBlockThreads) cast_tensors(CastGroup group) {
  const int tensor = static_cast<int>(blockIdx.y);
  const std::int64_t count = group.count[tensor];
  const float* from = group.from[tensor];
  auto* to = static_cast<T*>(group.to[tensor]);
  const std::int64_t whole = count / kAtATime;
  PLIMSOLL_GRID_LOOP(i, whole) {
    const float4 x = reinterpret_cast<const float4*>(from)[i];
    reinterpret_cast<Four<T>*>(to)[i] = {narrow<T>(x.x), narrow<T>(x.y), narrow<T>(x.z),
                                         narrow<T>(x.w)};
  }
  const std::int64_t rest = whole * kAtATime + threadIdx.x;
  if (blockIdx.x == 0 && rest < count) to[rest] = narrow<T>(from[rest]);
}

}  // namespace

void cast_group(Element to, const CastGroup& group, cudaStream_t stream) {
  std::int64_t most = 0;
  for (const std::int64_t count : group.count) most = count > most ? count : most;
  if (most == 0) return;
  const std::int64_t each = kBlockThreads * kAtATime;
  const std::int64_t blocks = (most + each - 1) / each;
  const dim3 grid(static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks),
                  CastGroup::kTensors);
  if (to == Element::kBF16) {
    cast_tensors<__nv_bfloat16><<<grid, kBlockThreads, 0, stream>>>(group);
  } else {
    cast_tensors<__half><<<grid, kBlockThreads, 0, stream>>>(group);
  }
}

}  // namespace plimsoll::kernels::cuda
