// Transposes of matrices by tiles of 32 x 32 in shared memory: both sides are read and written in
// whole rows.
#include "plimsoll/kernels/cuda/elements.cuh"

namespace plimsoll::kernels::cuda {
namespace {

constexpr int kTile = 32;
constexpr int kTileRows = 8;

template <typename Word>
__global__ void transpose(TiledTranspose shape, std::int64_t tiles_across, const Word* from,
                          Word* to) {
  __shared__ Word tile[kTile][kTile + 1];
  const std::int64_t batch = blockIdx.y;
  const std::int64_t row = blockIdx.x / tiles_across * kTile;
  const std::int64_t column = blockIdx.x % tiles_across * kTile;
  from += batch * shape.from_batch;
  to += batch * shape.to_batch;
  for (int i = threadIdx.y; i < kTile; i += kTileRows) {
    const std::int64_t c = column + i;
    const std::int64_t r = row + threadIdx.x;
    if (c < shape.columns && r < shape.rows) tile[i][threadIdx.x] = from[c * shape.from_column + r];
  }
  __syncthreads();
  for (int i = threadIdx.y; i < kTile; i += kTileRows) {
    const std::int64_t r = row + i;
    const std::int64_t c = column + threadIdx.x;
    if (c < shape.columns && r < shape.rows) to[r * shape.to_row + c] = tile[threadIdx.x][i];
  }
}

}  // namespace

void transpose_tiles(const TiledTranspose& shape, std::int64_t width, const void* from, void* to,
                     cudaStream_t stream) {
  constexpr std::int64_t kMostBatches = 65535;
  const std::int64_t across = (shape.columns + kTile - 1) / kTile;
  const std::int64_t down = (shape.rows + kTile - 1) / kTile;
  for (std::int64_t first = 0; first < shape.batch; first += kMostBatches) {
    const std::int64_t batches =
        shape.batch - first < kMostBatches ? shape.batch - first : kMostBatches;
    for_width(width, [&](auto word) {
      using Word = decltype(word);
      transpose<Word><<<dim3(static_cast<unsigned>(across * down), static_cast<unsigned>(batches)),
                        dim3(kTile, kTileRows), 0, stream>>>(
          shape, across, static_cast<const Word*>(from) + first * shape.from_batch,
          static_cast<Word*>(to) + first * shape.to_batch);
    });
  }
}

}  // namespace plimsoll::kernels::cuda
