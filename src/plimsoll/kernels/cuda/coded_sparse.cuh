// The form `sparse` (codec/sparse.h), as coded_blocks.cuh has the others.
//
// Parts of 4,096 values are looked at first: how many are not zero, the largest, how many lie
// outside the window below it. With that the block's size is known, and its place claimed from the
// counter in the last bytes of the buffer. Then each part is put together in shared memory, as far
// from a multiple of 16 as it will lie, and goes out 16 bytes at a time.
#pragma once

#include "plimsoll/kernels/cuda/coded_blocks.cuh"

namespace plimsoll::kernels::cuda {
namespace {

constexpr int kSparsePart = 4096;
constexpr int kWords = kSparsePart / 32;
constexpr std::uint32_t kWindow = 1U << 27;
constexpr std::uint32_t kSignedFlag = 1;
constexpr std::uint32_t kPlainFlag = 2;
constexpr int kSparseHeader = 12;
constexpr int kSparsePadding = 64;

// Where the parts of what 4096 values become lie.
struct SparseLayout {
  int planes, plane_bytes, low, escapes;

  __device__ SparseLayout(int count, int nonzero, bool any_negative)
      : planes(kSparseHeader + (count + 7) / 8), plane_bytes((nonzero + 7) / 8) {
    low = planes + (any_negative ? 4 : 3) * plane_bytes;
    escapes = low + 3 * nonzero;
  }
};

// What is known of 4096 values before they are written.
struct SparseFacts {
  int nonzero, escapes;
  unsigned negative, largest;

  __device__ std::uint32_t base() const {
    const std::uint32_t top = largest >> 23;
    return (top + 1 > 16 ? top + 1 - 16 : 0) << 23;
  }
  // Bytes; negative where they are kept plain.
  __device__ int bytes(int count) const {
    const int most = kSparseHeader + 4 * count;
    const int all = SparseLayout(count, nonzero, negative != 0).escapes + 8 * escapes;
    return all <= most ? all : -most;
  }
};

// Of a warp's lanes, those before this one.
__device__ inline unsigned lanes_before() {
  return (1U << (threadIdx.x % 32)) - 1;
}

// counts[i] becomes the sum of those before it; counts[kWords] that of all. By the first warp.
__device__ inline void sums_before(unsigned* counts) {
  __syncthreads();
  if (threadIdx.x < 32) {
    unsigned mine[kWords / 32];
    unsigned sum = 0;
    for (int k = 0; k < kWords / 32; ++k) {
      mine[k] = sum;
      sum += counts[threadIdx.x * (kWords / 32) + k];
    }
    unsigned before = sum;
    for (int distance = 1; distance < 32; distance *= 2) {
      const unsigned other = __shfl_up_sync(kAll, before, distance);
      if (static_cast<int>(threadIdx.x) >= distance) before += other;
    }
    if (threadIdx.x == 31) counts[kWords] = before;
    for (int k = 0; k < kWords / 32; ++k)
      counts[threadIdx.x * (kWords / 32) + k] = before - sum + mine[k];
  }
  __syncthreads();
}

__device__ inline void look_at_values(const std::uint32_t* values, int count, SparseFacts& facts) {
  unsigned any = 0;
  unsigned largest = 0;
  int nonzero = 0;
  for (int i = threadIdx.x; i < kSparsePart; i += blockDim.x) {
    const std::uint32_t value = i < count ? values[i] : 0;
    const std::uint32_t magnitude = value & kMagnitude;
    nonzero += __popc(__ballot_sync(kAll, value != 0));
    any |= value >> 31;
    largest = magnitude > largest ? magnitude : largest;
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    const unsigned other = __shfl_xor_sync(kAll, largest, distance);
    largest = other > largest ? other : largest;
  }
  any = __ballot_sync(kAll, any != 0);
  if (threadIdx.x % 32 == 0) {
    atomicAdd(&facts.nonzero, nonzero);
    atomicMax(&facts.largest, largest);
    if (any != 0) atomicOr(&facts.negative, 1U);
  }
  __syncthreads();
  const std::uint32_t base = facts.base();
  int escapes = 0;
  for (int i = threadIdx.x; i < kSparsePart; i += blockDim.x) {
    const std::uint32_t value = i < count ? values[i] : 0;
    const bool outside = value != 0 && (value & kMagnitude) - base >= kWindow;
    escapes += __popc(__ballot_sync(kAll, outside));
  }
  if (threadIdx.x % 32 == 0 && escapes > 0) atomicAdd(&facts.escapes, escapes);
  __syncthreads();
}

struct SparseRoom {
  std::uint32_t nonzero[kSparsePart];
  unsigned before[kWords + 1];
  unsigned bits[kWords];
  // as the bytes will lie, from the next 16 below on
  alignas(16) std::uint8_t staged[kSparseHeader + 4 * kSparsePart + 16 + 4];
};

__device__ inline void put_word(std::uint8_t* to, std::uint32_t word) {
  for (int k = 0; k < 4; ++k) to[k] = static_cast<std::uint8_t>(word >> (8 * k));
}
__device__ inline std::uint32_t word_at(const std::uint8_t* from) {
  return from[0] | static_cast<std::uint32_t>(from[1]) << 8 |
         static_cast<std::uint32_t>(from[2]) << 16 | static_cast<std::uint32_t>(from[3]) << 24;
}
// 32 bits of a mask that has so many bytes.
__device__ inline void put_bits(std::uint8_t* mask, int word, int bytes, unsigned bits) {
  for (int k = 0; k < 4 && 4 * word + k < bytes; ++k)
    mask[4 * word + k] = static_cast<std::uint8_t>(bits >> (8 * k));
}
__device__ inline unsigned bits_of(const std::uint8_t* mask, int word, int bytes) {
  unsigned out = 0;
  for (int k = 0; k < 4 && 4 * word + k < bytes; ++k)
    out |= static_cast<unsigned>(mask[4 * word + k]) << (8 * k);
  return out;
}

// Those that are not zero, in order; and the bitmap.
__device__ inline void take_nonzero(const std::uint32_t* values, int count, SparseRoom& room,
                                    std::uint8_t* bitmap) {
  for (int i = threadIdx.x; i < kSparsePart; i += blockDim.x) {
    const unsigned bits = __ballot_sync(kAll, i < count && values[i] != 0);
    if (i % 32 != 0) continue;
    room.bits[i / 32] = bits;
    room.before[i / 32] = __popc(bits);
    put_bits(bitmap, i / 32, (count + 7) / 8, bits);
  }
  sums_before(room.before);
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    if (values[i] == 0) continue;
    room.nonzero[room.before[i / 32] + __popc(room.bits[i / 32] & lanes_before())] = values[i];
  }
  __syncthreads();
}

// Bytes and planes of those that are not zero, and what lies outside the window in full.
__device__ inline void take_apart(const SparseFacts& facts, const SparseLayout& layout,
                                  SparseRoom& room, std::uint8_t* to) {
  const std::uint32_t base = facts.base();
  for (int i = threadIdx.x; i < kSparsePart; i += blockDim.x) {
    const bool there = i < facts.nonzero;
    const std::uint32_t value = there ? room.nonzero[i] : base;
    const std::uint32_t distance = (value & kMagnitude) - base;
    for (int p = 0; p < 3; ++p) {
      const unsigned plane = __ballot_sync(kAll, there && (distance >> (24 + p) & 1) != 0);
      if (i % 32 == 0)
        put_bits(to + layout.planes + p * layout.plane_bytes, i / 32, layout.plane_bytes, plane);
    }
    const unsigned signs = __ballot_sync(kAll, there && value >> 31 != 0);
    if (i % 32 == 0 && facts.negative != 0)
      put_bits(to + layout.planes + 3 * layout.plane_bytes, i / 32, layout.plane_bytes, signs);
    const unsigned outside = __ballot_sync(kAll, there && distance >= kWindow);
    if (i % 32 == 0) {
      room.bits[i / 32] = outside;
      room.before[i / 32] = __popc(outside);
    }
    if (!there) continue;
    for (int k = 0; k < 3; ++k)
      to[layout.low + 3 * i + k] = static_cast<std::uint8_t>(distance >> (8 * k));
  }
  if (facts.escapes == 0) return;
  sums_before(room.before);
  for (int i = threadIdx.x; i < facts.nonzero; i += blockDim.x) {
    const unsigned bits = room.bits[i / 32];
    if ((bits >> (i % 32) & 1) == 0) continue;
    std::uint8_t* const escape =
        to + layout.escapes + 8 * (room.before[i / 32] + __popc(bits & lanes_before()));
    put_word(escape, static_cast<std::uint32_t>(i));
    put_word(escape + 4, room.nonzero[i]);
  }
}

__device__ inline void write_sparse(const std::uint32_t* values, int count,
                                    const SparseFacts& facts, SparseRoom& room, std::uint8_t* to) {
  const int size = facts.bytes(count);
  const auto skew = static_cast<int>(reinterpret_cast<std::uintptr_t>(to) % 16);
  std::uint8_t* const staged = room.staged + skew;
  const SparseLayout layout(count, facts.nonzero, facts.negative != 0);
  if (threadIdx.x == 0) {
    const std::uint32_t flags = facts.negative != 0 ? kSignedFlag : 0;
    put_word(staged, size < 0 ? 0U : static_cast<std::uint32_t>(facts.nonzero));
    put_word(staged + 4, size < 0 ? kPlainFlag : facts.base() | flags);
    put_word(staged + 8, size < 0 ? 0U : static_cast<std::uint32_t>(facts.escapes));
  }
  if (size < 0) {
    for (int i = threadIdx.x; i < count; i += blockDim.x)
      put_word(staged + kSparseHeader + 4 * i, values[i]);
  } else {
    take_nonzero(values, count, room, staged + kSparseHeader);
    take_apart(facts, layout, room, staged);
  }
  __syncthreads();
  const int end = skew + (size < 0 ? -size : size);
  const int first_whole = (skew + 15) / 16;
  const int end_whole = end / 16;
  std::uint8_t* const out = to - skew;
  for (int i = first_whole + static_cast<int>(threadIdx.x); i < end_whole; i += blockDim.x)
    reinterpret_cast<uint4*>(out)[i] = reinterpret_cast<const uint4*>(room.staged)[i];
  const int head_end = first_whole * 16 < end ? first_whole * 16 : end;
  for (int i = skew + static_cast<int>(threadIdx.x); i < head_end; i += blockDim.x)
    out[i] = room.staged[i];
  const int tail = end_whole * 16 > head_end ? end_whole * 16 : head_end;
  for (int i = tail + static_cast<int>(threadIdx.x); i < end; i += blockDim.x)
    out[i] = room.staged[i];
  __syncthreads();
}

// So many bytes of the buffer from now on; null: they are not left.
__device__ inline std::uint8_t* claim(const CodedPart& part, int bytes) {
  const std::int64_t last = (part.of.buffer_bytes - kUnit) / kUnit;
  const auto first = static_cast<std::int64_t>(part.entries() / kUnit);
  if (last < first) return nullptr;
  auto* const counter = reinterpret_cast<unsigned*>(part.of.buffer + last * kUnit);
  const auto units = static_cast<unsigned>((bytes + kUnit - 1) / kUnit);
  unsigned taken = 0;
  for (;;) {
    if (first + taken + units > last) return nullptr;
    const unsigned found = atomicCAS(counter, taken, taken + units);
    if (found == taken) return part.of.buffer + (first + taken) * kUnit;
    taken = found;
  }
}

__global__ void encode_sparse(CodedActivation a) {
  constexpr int kParts = kCodedBlock / kSparsePart;
  __shared__ SparseFacts facts[kParts];
  __shared__ SparseRoom room;
  __shared__ std::uint8_t* place;
  const CodedPart part(a, blockIdx.x);
  if (threadIdx.x < kParts) facts[threadIdx.x] = {0, 0, 0, 0};
  __syncthreads();
  int bytes = kSparsePadding;
  for (int p = 0; p * kSparsePart < part.count; ++p) {
    const int rest = part.count - p * kSparsePart;
    const int count = rest < kSparsePart ? rest : kSparsePart;
    look_at_values(part.words() + p * kSparsePart, count, facts[p]);
    const int its = facts[p].bytes(count);
    bytes += its < 0 ? -its : its;
  }
  if (threadIdx.x == 0) place = claim(part, bytes);
  __syncthreads();
  std::uint8_t* to = place;
  if (to != nullptr) {
    for (int p = 0; p * kSparsePart < part.count; ++p) {
      const int rest = part.count - p * kSparsePart;
      const int count = rest < kSparsePart ? rest : kSparsePart;
      write_sparse(part.words() + p * kSparsePart, count, facts[p], room, to);
      const int its = facts[p].bytes(count);
      to += its < 0 ? -its : its;
    }
    for (int i = threadIdx.x; i < kSparsePadding; i += blockDim.x) to[i] = 0;
  }
  end_block<std::uint32_t>(part, place, bytes);
}

// Bytes read; 0: they are not what an encoder wrote.
__device__ inline int read_sparse(const std::uint8_t* from, std::int64_t available, int count,
                                  SparseRoom& room, std::uint32_t* values) {
  if (available < kSparseHeader) return 0;
  const std::uint32_t nonzero = word_at(from);
  const std::uint32_t base = word_at(from + 4);
  const std::uint32_t escapes = word_at(from + 8);
  if ((base & kPlainFlag) != 0) {
    if (available < kSparseHeader + 4 * count) return 0;
    for (int i = threadIdx.x; i < count; i += blockDim.x)
      values[i] = word_at(from + kSparseHeader + 4 * i);
    return kSparseHeader + 4 * count;
  }
  if (nonzero > static_cast<unsigned>(count) || escapes > nonzero) return 0;
  const bool any_negative = (base & kSignedFlag) != 0;
  const SparseLayout layout(count, static_cast<int>(nonzero), any_negative);
  const int end = layout.escapes + 8 * static_cast<int>(escapes);
  if (available < end) return 0;
  const std::uint32_t window = base & ~(kSignedFlag | kPlainFlag);
  for (unsigned i = threadIdx.x; i < nonzero; i += blockDim.x) {
    const std::uint8_t* const low = from + layout.low + 3 * i;
    std::uint32_t distance =
        low[0] | static_cast<std::uint32_t>(low[1]) << 8 | static_cast<std::uint32_t>(low[2]) << 16;
    std::uint32_t sign = 0;
    for (int p = 0; p < (any_negative ? 4 : 3); ++p) {
      const std::uint32_t bit =
          from[layout.planes + p * layout.plane_bytes + i / 8] >> (i % 8) & 1U;
      if (p < 3) distance |= bit << (24 + p);
      if (p == 3) sign = bit << 31;
    }
    room.nonzero[i] = (distance + window) | sign;
  }
  bool damaged = false;
  __syncthreads();
  for (unsigned e = threadIdx.x; e < escapes; e += blockDim.x) {
    const std::uint8_t* const escape = from + layout.escapes + 8 * e;
    const std::uint32_t place = word_at(escape);
    damaged = damaged || place >= nonzero;
    if (place < nonzero) room.nonzero[place] = word_at(escape + 4);
  }
  for (int w = threadIdx.x; w < kWords; w += blockDim.x) {
    const int left = count - 32 * w;
    unsigned bits = left > 0 ? bits_of(from + kSparseHeader, w, (count + 7) / 8) : 0U;
    if (left > 0 && left < 32) bits &= (1U << left) - 1;
    room.bits[w] = bits;
    room.before[w] = __popc(bits);
  }
  sums_before(room.before);
  if (__syncthreads_or(damaged || room.before[kWords] != nonzero ? 1 : 0) != 0) return 0;
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    const unsigned bits = room.bits[i / 32];
    const bool there = (bits >> (i % 32) & 1) != 0;
    values[i] = there ? room.nonzero[room.before[i / 32] + __popc(bits & lanes_before())] : 0U;
  }
  __syncthreads();
  return end;
}

__global__ void decode_sparse(CodedActivation a) {
  __shared__ SparseRoom room;
  const CodedPart part(a, blockIdx.x);
  const std::uint8_t* from = begin_block<std::uint32_t>(part, -1);
  if (from == nullptr) return;
  std::int64_t left = std::int64_t{part.entry().bytes} - kSparsePadding;
  for (int p = 0; p * kSparsePart < part.count && left >= 0; ++p) {
    const int rest = part.count - p * kSparsePart;
    const int count = rest < kSparsePart ? rest : kSparsePart;
    const int read = read_sparse(from, left, count, room, part.words() + p * kSparsePart);
    left = read == 0 ? -1 : left - read;
    from += read;
  }
  if (left == 0) return;
  for (int i = threadIdx.x; i < part.count; i += blockDim.x) part.words()[i] = ~0U;
}

}  // namespace
}  // namespace plimsoll::kernels::cuda
