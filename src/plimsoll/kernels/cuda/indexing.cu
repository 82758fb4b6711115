// Gathers, scatters and the gradient of gather. An index outside names nothing: a gather gives 0
// there, a scatter does nothing. What meets at one place is combined in the order of the indices.
#include <cub/device/device_radix_sort.cuh>

#include "plimsoll/kernels/cuda/elements.cuh"

namespace plimsoll::kernels::cuda {
namespace {

constexpr std::int64_t kAlign = 256;

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kAlign - 1) / kAlign * kAlign;
}

__device__ __forceinline__ std::int64_t index_at(bool wide_indices, const void* indices,
                                                 std::int64_t i) {
  return wide_indices ? static_cast<const std::int64_t*>(indices)[i]
                      : static_cast<const std::int32_t*>(indices)[i];
}

// The place an index names in an extent of n, or -1 when it is outside.
__device__ __forceinline__ std::int64_t resolve(std::int64_t index, std::int64_t n) {
  if (index < -n || index >= n) return -1;
  return index < 0 ? index + n : index;
}

template <typename Word>
__global__ void gather_words(GatherShape s, const Word* data, const void* indices, Word* y) {
  PLIMSOLL_GRID_LOOP(i, s.outer * s.count * s.inner) {
    const std::int64_t k = i % s.inner;
    const std::int64_t row = i / s.inner;
    const std::int64_t place = resolve(index_at(s.wide_indices, indices, row % s.count), s.extent);
    y[i] = place < 0 ? Word{} : data[(row / s.count * s.extent + place) * s.inner + k];
  }
}

// The gradient of gather: the indices are sorted with their places (a stable sort, so equal indices
// stay in order).

__global__ void keys_of(GatherShape s, const void* indices, std::uint32_t* keys,
                        std::uint32_t* places) {
  PLIMSOLL_GRID_LOOP(i, s.count) {
    const std::int64_t place = resolve(index_at(s.wide_indices, indices, i), s.extent);
    keys[i] = static_cast<std::uint32_t>(place < 0 ? s.extent : place);
    places[i] = static_cast<std::uint32_t>(i);
  }
}

// Sorted rows are summed in chunks: a run of equal indices that lies in one chunk is added to its
// row there; of longer ones each chunk leaves its part in scratch, and they are joined in order.
constexpr int kChunkRows = 64;
constexpr int kRowsAtOnce = 8;

// What a chunk leaves: the part of a run that began before it, or of one that only begins in it.
__device__ __forceinline__ std::int64_t part_at(const GatherShape& s, std::int64_t chunk,
                                                bool begins) {
  const std::int64_t chunks = (s.count + kChunkRows - 1) / kChunkRows;
  return ((blockIdx.y * chunks + chunk) * 2 + (begins ? 1 : 0)) * s.inner;
}

template <typename T>
__global__ void sum_chunks(GatherShape s, const std::uint32_t* keys, const std::uint32_t* places,
                           const T* dy, T* dx, float* parts) {
  const std::int64_t chunk = blockIdx.x;
  const std::int64_t first = chunk * kChunkRows;
  const int rows = static_cast<int>(s.count - first < kChunkRows ? s.count - first : kChunkRows);
  const std::int64_t o = blockIdx.y;
  const std::uint32_t* own = keys + first;
  const bool continues = first > 0 && own[-1] == own[0];
  const bool goes_on = first + rows < s.count && own[rows] == own[rows - 1];
  for (std::int64_t k = threadIdx.x; k < s.inner; k += blockDim.x) {
    float sum = 0;
    int begin = 0;
    const auto deliver = [&](int end) {
      const std::uint32_t key = own[begin];
      if (key == s.extent) return;
      const bool is_left = begin == 0 && continues;
      if (is_left || (end == rows && goes_on)) {
        parts[part_at(s, chunk, !is_left) + k] = sum;
      } else {
        T* to = dx + (o * s.extent + key) * s.inner + k;
        *to = narrow<T>(wide(*to) + sum);
      }
    };
    for (int i = 0; i < rows; i += kRowsAtOnce) {
      float values[kRowsAtOnce];
#pragma unroll
      for (int u = 0; u < kRowsAtOnce; ++u) {
        values[u] =
            i + u < rows ? wide(dy[(o * s.count + places[first + i + u]) * s.inner + k]) : 0;
      }
#pragma unroll
      for (int u = 0; u < kRowsAtOnce; ++u) {
        if (i + u >= rows) break;
        if (i + u > 0 && own[i + u] != own[i + u - 1]) {
          deliver(i + u);
          sum = 0;
          begin = i + u;
        }
        sum += values[u];
      }
    }
    deliver(rows);
  }
}

// A block for each chunk in which a run begins that does not end there.
template <typename T>
__global__ void join_chunks(GatherShape s, const std::uint32_t* keys, T* dx, const float* parts) {
  const std::int64_t chunk = blockIdx.x;
  const std::int64_t first = chunk * kChunkRows;
  const std::int64_t end = first + kChunkRows;
  if (end >= s.count) return;
  const std::uint32_t key = keys[end - 1];
  if (key == s.extent || keys[end] != key) return;
  if (keys[first] == key && first > 0 && keys[first - 1] == key) return;  // it began before
  std::int64_t last = chunk + 1;  // the chunk in which it ends
  while ((last + 1) * kChunkRows < s.count && keys[(last + 1) * kChunkRows] == key) ++last;
  const std::int64_t o = blockIdx.y;
  for (std::int64_t k = threadIdx.x; k < s.inner; k += blockDim.x) {
    T* to = dx + (o * s.extent + key) * s.inner + k;
    float sum = wide(*to) + parts[part_at(s, chunk, true) + k];
#pragma unroll 8
    for (std::int64_t next = chunk + 1; next <= last; ++next)
      sum += parts[part_at(s, next, false) + k];
    *to = narrow<T>(sum);
  }
}

struct SortScratch {
  std::int64_t keys, places, sorted_keys, sorted_places, parts, temporary, total;
  std::size_t temporary_bytes;
};

int key_bits(std::int64_t extent) {
  int bits = 1;
  while (bits < 32 && (std::int64_t{1} << bits) <= extent) ++bits;
  return bits;
}

SortScratch sort_scratch(const GatherShape& s) {
  SortScratch out{};
  const std::int64_t each = aligned(s.count * 4);
  out.places = each;
  out.sorted_keys = 2 * each;
  out.sorted_places = 3 * each;
  out.parts = 4 * each;
  const std::int64_t chunks = (s.count + kChunkRows - 1) / kChunkRows;
  out.temporary = out.parts + aligned(s.outer * chunks * 2 * s.inner * 4);
  const std::uint32_t* in = nullptr;
  std::uint32_t* to = nullptr;
  cub::DeviceRadixSort::SortPairs(nullptr, out.temporary_bytes, in, to, in, to,
                                  static_cast<int>(s.count), 0, key_bits(s.extent));
  out.total = out.temporary + aligned(static_cast<std::int64_t>(out.temporary_bytes));
  return out;
}

// Elements ----------------------------------------------------------------------------------------

// Coordinates of i in the indices; the place in the data without its axis.
struct ElementPlace {
  std::int64_t base, step;
};
__device__ ElementPlace element_place(const ElementIndexShape& s, const std::int64_t* extents,
                                      std::int64_t i) {
  ElementPlace out{0, 1};
  std::int64_t step = 1;
  for (int axis = s.rank - 1; axis >= 0; --axis) {
    const std::int64_t here = i % extents[axis];
    i /= extents[axis];
    if (axis == s.axis) {
      out.step = step;
    } else {
      out.base += here * step;
    }
    step *= s.data[axis];
  }
  return out;
}

template <typename Word>
__global__ void gather_element_words(ElementIndexShape s, std::int64_t count, const Word* data,
                                     const void* indices, Word* y) {
  PLIMSOLL_GRID_LOOP(i, count) {
    const ElementPlace at = element_place(s, s.indices, i);
    const std::int64_t place = resolve(index_at(s.wide_indices, indices, i), s.data[s.axis]);
    y[i] = place < 0 ? Word(0) : data[at.base + place * at.step];
  }
}

template <typename T>
__device__ T combined(Combine how, T a, T b) {
  const auto x = wide(a);
  const auto y = wide(b);
  switch (how) {
    case Combine::kAdd:
      return narrow<T>(x + y);
    case Combine::kMultiply:
      return narrow<T>(x * y);
    case Combine::kMax:
      return x < y ? b : a;
    case Combine::kMin:
      return y < x ? b : a;
    default:
      return b;
  }
}

// A thread to a line along the axis: what meets, meets in order.
template <typename T>
__global__ void scatter_lines(Combine how, ElementIndexShape s, std::int64_t lines,
                              const void* indices, const T* updates, T* y) {
  std::int64_t inner = 1;
  for (int axis = s.axis + 1; axis < s.rank; ++axis) inner *= s.indices[axis];
  const std::int64_t length = s.indices[s.axis];
  PLIMSOLL_GRID_LOOP(line, lines) {
    const std::int64_t first = line / inner * inner * length + line % inner;
    const ElementPlace at = element_place(s, s.indices, first);
    for (std::int64_t j = 0; j < length; ++j) {
      const std::int64_t i = first + j * inner;
      const std::int64_t place = resolve(index_at(s.wide_indices, indices, i), s.data[s.axis]);
      if (place < 0) continue;
      T* to = y + at.base + place * at.step;
      *to = combined(how, *to, updates[i]);
    }
  }
}

// Blocks ------------------------------------------------------------------------------------------

__device__ std::int64_t block_place(const NdShape& s, const void* indices, std::int64_t row) {
  std::int64_t at = row / s.rows_each * s.batch_size;
  for (int d = 0; d < s.depth; ++d) {
    const std::int64_t place =
        resolve(index_at(s.wide_indices, indices, row * s.depth + d), s.extents[d]);
    if (place < 0) return -1;
    at += place * s.steps[d];
  }
  return at;
}

template <typename Word>
__global__ void gather_block_words(NdShape s, const Word* data, const void* indices, Word* y) {
  PLIMSOLL_GRID_LOOP(i, s.rows * s.block) {
    const std::int64_t at = block_place(s, indices, i / s.block);
    y[i] = at < 0 ? Word(0) : data[at + i % s.block];
  }
}

// A thread to an element of the blocks and a batch, row after row.
template <typename T>
__global__ void scatter_block_rows(Combine how, NdShape s, const void* indices, const T* updates,
                                   T* y) {
  const std::int64_t batches = s.rows / s.rows_each;
  PLIMSOLL_GRID_LOOP(i, batches * s.block) {
    const std::int64_t k = i % s.block;
    const std::int64_t first = i / s.block * s.rows_each;
    for (std::int64_t row = first; row < first + s.rows_each; ++row) {
      const std::int64_t at = block_place(s, indices, row);
      if (at >= 0) y[at + k] = combined(how, y[at + k], updates[row * s.block + k]);
    }
  }
}

}  // namespace

void gather(const GatherShape& s, std::int64_t width, const void* data, const void* indices,
            void* y, cudaStream_t stream) {
  constexpr std::int64_t kVectorBytes = 16;
  if (s.inner * width % kVectorBytes == 0) {
    GatherShape vectors = s;
    vectors.inner = s.inner * width / kVectorBytes;
    const std::int64_t count = s.outer * s.count * vectors.inner;
    gather_words<uint4><<<blocks_for(count), kBlockThreads, 0, stream>>>(
        vectors, static_cast<const uint4*>(data), indices, static_cast<uint4*>(y));
    return;
  }
  for_width(width, [&](auto word) {
    using Word = decltype(word);
    gather_words<Word><<<blocks_for(s.outer * s.count * s.inner), kBlockThreads, 0, stream>>>(
        s, static_cast<const Word*>(data), indices, static_cast<Word*>(y));
  });
}

std::int64_t gather_gradient_scratch(const GatherShape& s) {
  return s.count == 0 ? 0 : sort_scratch(s).total;
}

void gather_gradient(Element type, const GatherShape& s, const void* dy, const void* indices,
                     const void* so_far, void* dx, void* scratch, cudaStream_t stream) {
  const std::int64_t each = type == Element::kF32 ? 4 : 2;
  const auto bytes = static_cast<std::size_t>(s.outer * s.extent * s.inner * each);
  if (so_far == nullptr) {
    cudaMemsetAsync(dx, 0, bytes, stream);
  } else if (so_far != dx) {
    cudaMemcpyAsync(dx, so_far, bytes, cudaMemcpyDeviceToDevice, stream);
  }
  if (s.count == 0) return;
  SortScratch layout = sort_scratch(s);
  auto* bytes_of = static_cast<unsigned char*>(scratch);
  auto* keys = reinterpret_cast<std::uint32_t*>(bytes_of);
  auto* places = reinterpret_cast<std::uint32_t*>(bytes_of + layout.places);
  auto* sorted_keys = reinterpret_cast<std::uint32_t*>(bytes_of + layout.sorted_keys);
  auto* sorted_places = reinterpret_cast<std::uint32_t*>(bytes_of + layout.sorted_places);
  keys_of<<<blocks_for(s.count), kBlockThreads, 0, stream>>>(s, indices, keys, places);
  cub::DeviceRadixSort::SortPairs(bytes_of + layout.temporary, layout.temporary_bytes,
                                  const_cast<const std::uint32_t*>(keys), sorted_keys,
                                  const_cast<const std::uint32_t*>(places), sorted_places,
                                  static_cast<int>(s.count), 0, key_bits(s.extent), stream);
  for_float(type, [&](auto element) {
    using T = decltype(element);
    const dim3 chunks(static_cast<unsigned>((s.count + kChunkRows - 1) / kChunkRows),
                      static_cast<unsigned>(s.outer));
    auto* parts = reinterpret_cast<float*>(bytes_of + layout.parts);
    auto* to = static_cast<T*>(dx);
    sum_chunks<T><<<chunks, kBlockThreads, 0, stream>>>(s, sorted_keys, sorted_places,
                                                        static_cast<const T*>(dy), to, parts);
    join_chunks<T><<<chunks, kBlockThreads, 0, stream>>>(s, sorted_keys, to, parts);
  });
}

void gather_elements(const ElementIndexShape& s, std::int64_t width, const void* data,
                     const void* indices, void* y, cudaStream_t stream) {
  std::int64_t count = 1;
  for (int axis = 0; axis < s.rank; ++axis) count *= s.indices[axis];
  for_width(width, [&](auto word) {
    using Word = decltype(word);
    gather_element_words<Word><<<blocks_for(count), kBlockThreads, 0, stream>>>(
        s, count, static_cast<const Word*>(data), indices, static_cast<Word*>(y));
  });
}

void scatter_elements(Element type, Combine how, const ElementIndexShape& s, const void* indices,
                      const void* updates, void* y, cudaStream_t stream) {
  std::int64_t lines = 1;
  for (int axis = 0; axis < s.rank; ++axis) lines *= axis == s.axis ? 1 : s.indices[axis];
  if (lines == 0 || s.indices[s.axis] == 0) return;
  for_element(type, [&](auto element) {
    using T = decltype(element);
    scatter_lines<T><<<blocks_for(lines), kBlockThreads, 0, stream>>>(
        how, s, lines, indices, static_cast<const T*>(updates), static_cast<T*>(y));
  });
}

void gather_blocks(const NdShape& s, std::int64_t width, const void* data, const void* indices,
                   void* y, cudaStream_t stream) {
  for_width(width, [&](auto word) {
    using Word = decltype(word);
    gather_block_words<Word><<<blocks_for(s.rows * s.block), kBlockThreads, 0, stream>>>(
        s, static_cast<const Word*>(data), indices, static_cast<Word*>(y));
  });
}

void scatter_blocks(Element type, Combine how, const NdShape& s, const void* indices,
                    const void* updates, void* y, cudaStream_t stream) {
  if (s.rows == 0 || s.block == 0) return;
  for_element(type, [&](auto element) {
    using T = decltype(element);
    scatter_block_rows<T><<<blocks_for(s.rows / s.rows_each * s.block), kBlockThreads, 0, stream>>>(
        how, s, indices, static_cast<const T*>(updates), static_cast<T*>(y));
  });
}

}  // namespace plimsoll::kernels::cuda
