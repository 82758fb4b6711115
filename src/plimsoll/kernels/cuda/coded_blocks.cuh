// Activations into compressed buffers and out again: the bodies of the kernels that encodings.cu
// launches, in the words of CUDA alone, so that they also run on the host (testing/host_grid.h)
// and are held against the CPU's codecs where there is no card.
//
// A block of threads takes one block of kCodedBlock values (codec/compressed_buffer.h) and writes
// the bytes that the CPU's codec writes for it. Whether it compresses is decided here: one that does
// not goes, as it is, to the host memory that is kept for it, and nobody waits for the host. Forms
// of a fixed size have a fixed place each; blocks of `sparse` claim theirs, in any order, from a
// counter in the last bytes of the buffer. What a buffer holds is never trusted: a decoder reads
// nothing outside it, and makes NaNs of what no encoder wrote.
#pragma once

#include <cstdint>

#include "plimsoll/kernels/cuda/coded_activation.h"

namespace plimsoll::kernels::cuda {
namespace {  // a card's and a host's must not be taken for each other

constexpr int kCodedBlock = 16384;
constexpr int kUnit = 8;     // places in a buffer are multiples of it
constexpr int kGroup = 256;  // values of int8 that share a scale
constexpr unsigned kAll = 0xffffffffU;
constexpr unsigned kMagnitude = 0x7fffffffU;
constexpr unsigned kInfinite = 0x7f800000U;
constexpr unsigned kNoCode = 0xffffffffU;

struct CodedEntry {
  std::uint32_t place;  // in units; 0: the block is incompressible
  std::uint32_t bytes;
};

// What one block of threads works on.
struct CodedPart {
  const CodedActivation& of;
  std::int64_t block;
  std::int64_t begin;
  int count;

  __device__ CodedPart(const CodedActivation& activation, std::int64_t number)
      : of(activation), block(number), begin(number * kCodedBlock) {
    const std::int64_t rest = activation.count - begin;
    count = static_cast<int>(rest < kCodedBlock ? rest : kCodedBlock);
  }
  __device__ std::int64_t entries() const {
    return (of.count + kCodedBlock - 1) / kCodedBlock *
           static_cast<std::int64_t>(sizeof(CodedEntry));
  }
  __device__ CodedEntry& entry() const { return reinterpret_cast<CodedEntry*>(of.buffer)[block]; }
  __device__ float* floats() const { return reinterpret_cast<float*>(of.plain) + begin; }
  __device__ std::uint32_t* words() const {
    return reinterpret_cast<std::uint32_t*>(of.plain) + begin;
  }
  // The place of a form of which a whole block takes so many bytes; null: the buffer ends before.
  __device__ std::uint8_t* fixed_place(int whole, int bytes) const {
    const std::int64_t at = entries() + block * whole;
    return at + bytes <= of.buffer_bytes ? of.buffer + at : nullptr;
  }
  __device__ std::uint64_t seed() const {
    const std::uint64_t all = (of.step[0] ^ of.seed) + static_cast<std::uint64_t>(block);
    return all;
  }
};

__device__ inline std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}
__device__ inline std::uint32_t seed_bits(std::uint64_t seed) {
  return static_cast<std::uint32_t>(mixed(seed));
}
__device__ inline std::uint32_t chance_bits(std::uint32_t seed, std::uint32_t place) {
  std::uint32_t bits = seed + place * 0x9e3779b9U;
  bits = (bits ^ (bits >> 16)) * 0x21f0aaadU;
  bits = (bits ^ (bits >> 15)) * 0xd35a2d97U;
  return bits ^ (bits >> 15);
}

// codec/small_float.h, by bits of exponent and fraction.
template <int kExponentBits, int kFractionBits, bool kHasInfinity>
struct SmallForm {
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int kShift = 23 - kFractionBits;
  static constexpr std::uint32_t kTop = ((1U << kExponentBits) - 1) << kFractionBits;
  static constexpr std::uint32_t kLargest =
      kHasInfinity ? kTop - 1 : kTop | ((1U << kFractionBits) - 2);
  static constexpr std::uint32_t kNan = kTop | ((1U << kFractionBits) - 1);
  static constexpr std::uint32_t kNormal =
      kExponentBits == 8 ? 0U : static_cast<std::uint32_t>(128 - kBias) << 23;
  static constexpr int kBytes = kExponentBits + kFractionBits > 7 ? 2 : 1;

  __device__ static std::uint32_t code_of(std::uint32_t bits, std::uint32_t chance) {
    const std::uint32_t sign = bits >> 31 << (kExponentBits + kFractionBits);
    const std::uint32_t magnitude = bits & kMagnitude;
    if (magnitude > kInfinite) return sign | kNan;
    if (magnitude == kInfinite) return kHasInfinity ? sign | kTop : kNoCode;
    std::uint32_t code = 0;
    if (kExponentBits == 8 || magnitude >= kNormal) {
      code = ((magnitude + (chance >> (32 - kShift))) >> kShift) -
             (static_cast<std::uint32_t>(127 - kBias) << kFractionBits);
    } else {
      const int drop = kShift + 128 - kBias - static_cast<int>(magnitude >> 23);
      if (drop > 31) return sign;
      const std::uint32_t fraction = (magnitude & 0x7fffffU) | 0x800000U;
      code = (fraction + (chance >> (32 - drop))) >> drop;
    }
    return code > kLargest ? kNoCode : sign | code;
  }

  __device__ static float value_of(std::uint32_t code) {
    if (kExponentBits == 8) return __uint_as_float(code << 16);
    constexpr std::uint32_t kFractions = (1U << kFractionBits) - 1;
    const std::uint32_t sign = (code >> (kExponentBits + kFractionBits)) << 31;
    const std::uint32_t exponent = (code >> kFractionBits) & ((1U << kExponentBits) - 1);
    const std::uint32_t fraction = code & kFractions;
    if (exponent == (1U << kExponentBits) - 1) {
      if (kHasInfinity)
        return __uint_as_float(sign | kInfinite | (fraction << (23 - kFractionBits)));
      if (fraction == kFractions) return __uint_as_float(sign | 0x7fc00000U);
    }
    if (exponent == 0) {
      const float unit =
          __uint_as_float(static_cast<std::uint32_t>(127 + 1 - kBias - kFractionBits) << 23);
      return __uint_as_float(sign | __float_as_uint(__fmul_rn(static_cast<float>(fraction), unit)));
    }
    const std::uint32_t wide = exponent + 127 - kBias;
    return __uint_as_float(sign | (wide << 23) | (fraction << (23 - kFractionBits)));
  }
};

using Fp16Form = SmallForm<5, 10, true>;
using Bf16Form = SmallForm<8, 7, true>;
using E5m2Form = SmallForm<5, 2, true>;
using E4m3Form = SmallForm<4, 3, false>;

// Of an fp32 block, what its form lost.
struct LossSums {
  double largest, squares, value_squares;

  __device__ void add(float was, float is) {
    const double value = was;
    const double error = fabs(static_cast<double>(is) - value);
    if (!isfinite(error)) return;  // an infinity or a NaN that came back as one
    largest = error > largest ? error : largest;
    squares += error * error;
    value_squares += value * value;
  }
};

constexpr int kMostThreads = 256;

__device__ inline bool measures_loss(const CodedActivation& a) {
  return a.errors != nullptr && a.step[1] != 0;
}

// In a fixed order: a tree. A block that is kept as it is lost nothing.
__device__ inline void tell_loss(const CodedPart& part, const LossSums& mine, bool refused) {
  __shared__ LossSums sums[kMostThreads];
  sums[threadIdx.x] = refused ? LossSums{0, 0, 0} : mine;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      LossSums& to = sums[threadIdx.x];
      const LossSums& more = sums[threadIdx.x + half];
      to.largest = more.largest > to.largest ? more.largest : to.largest;
      to.squares += more.squares;
      to.value_squares += more.value_squares;
    }
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  double* to = part.of.errors + 3 * part.block;
  to[0] = sums[0].largest;
  to[1] = sums[0].squares;
  to[2] = sums[0].value_squares;
}

// As it is, to where what does not compress waits, or back from there.
template <typename Word>
__device__ void copy_words(Word* to, const Word* from, int count) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) to[i] = from[i];
}

// The block is encoded, at `at`; null: it is not, and waits as it is.
template <typename Element>
__device__ void end_block(const CodedPart& part, const std::uint8_t* at, int bytes) {
  if (threadIdx.x == 0) {
    const bool fits = at != nullptr;
    part.entry() = {fits ? static_cast<std::uint32_t>((at - part.of.buffer) / kUnit) : 0U,
                    static_cast<std::uint32_t>(bytes)};
    part.of.stored[part.block] =
        fits ? static_cast<std::uint32_t>((bytes + kUnit - 1) / kUnit * kUnit) : 0U;
  }
  if (at != nullptr) return;
  copy_words(reinterpret_cast<Element*>(part.of.overflow) + part.begin,
             reinterpret_cast<const Element*>(part.of.plain) + part.begin, part.count);
}

// Where the block lies; null where it waits as it is and was copied back from there, or where the
// buffer is none, of which NaNs (or ones) were made. `bytes`: that it has.
template <typename Element>
__device__ const std::uint8_t* begin_block(const CodedPart& part, std::int64_t bytes) {
  const CodedEntry entry = part.entry();
  Element* const to = reinterpret_cast<Element*>(part.of.plain) + part.begin;
  if (entry.place == 0) {
    copy_words(to, reinterpret_cast<const Element*>(part.of.overflow) + part.begin, part.count);
    return nullptr;
  }
  const std::int64_t at = static_cast<std::int64_t>(entry.place) * kUnit;
  if ((bytes < 0 || entry.bytes == bytes) && at + entry.bytes <= part.of.buffer_bytes)
    return part.of.buffer + at;
  for (int i = threadIdx.x; i < part.count; i += blockDim.x) to[i] = static_cast<Element>(-1);
  return nullptr;
}

template <typename Form>
__global__ void encode_small(CodedActivation a) {
  const CodedPart part(a, blockIdx.x);
  const int bytes = part.count * Form::kBytes;
  std::uint8_t* const to = part.fixed_place(kCodedBlock * Form::kBytes, bytes);
  const std::uint64_t seed = mixed(part.seed());
  const std::uint32_t* const from = part.words();
  const bool measures = measures_loss(a);
  LossSums loss{0, 0, 0};
  bool refused = to == nullptr;
  constexpr int kLine = 1024;  // values that are rounded by a seed of their own
  for (int line = 0; line < part.count && to != nullptr; line += kLine) {
    const std::uint32_t line_seed = seed_bits(seed + static_cast<std::uint64_t>(line));
    for (int i = line + threadIdx.x; i < part.count && i < line + kLine; i += blockDim.x) {
      const std::uint32_t chance = chance_bits(line_seed, static_cast<std::uint32_t>(i - line));
      const std::uint32_t code = Form::code_of(from[i], chance);
      refused = refused || code == kNoCode;
      if (Form::kBytes == 2) {
        reinterpret_cast<std::uint16_t*>(to)[i] = static_cast<std::uint16_t>(code);
      } else {
        to[i] = static_cast<std::uint8_t>(code);
      }
      if (measures && code != kNoCode) loss.add(__uint_as_float(from[i]), Form::value_of(code));
    }
  }
  refused = __syncthreads_or(refused ? 1 : 0) != 0;
  if (measures) tell_loss(part, loss, refused);
  end_block<std::uint32_t>(part, refused ? nullptr : to, bytes);
}

template <typename Form>
__global__ void decode_small(CodedActivation a) {
  const CodedPart part(a, blockIdx.x);
  const std::uint8_t* const from =
      begin_block<std::uint32_t>(part, std::int64_t{part.count} * Form::kBytes);
  if (from == nullptr) return;
  float* const to = part.floats();
  for (int i = threadIdx.x; i < part.count; i += blockDim.x) {
    to[i] = Form::value_of(Form::kBytes == 2 ? reinterpret_cast<const std::uint16_t*>(from)[i]
                                             : from[i]);
  }
}

__device__ inline int int8_bytes(int count) {
  return count + (count + kGroup - 1) / kGroup * 4;
}

// A warp to a group of 256 values.
__global__ void encode_int8(CodedActivation a) {
  const CodedPart part(a, blockIdx.x);
  const int bytes = int8_bytes(part.count);
  std::uint8_t* const to = part.fixed_place(kCodedBlock / kGroup * (kGroup + 4), bytes);
  const std::uint32_t seed = seed_bits(mixed(part.seed()));
  const float* const from = part.floats();
  const bool measures = measures_loss(a);
  LossSums loss{0, 0, 0};
  bool refused = to == nullptr;
  const int lane = threadIdx.x % 32;
  for (int group = threadIdx.x / 32; group * kGroup < part.count && to != nullptr;
       group += blockDim.x / 32) {
    const int first = group * kGroup;
    const int end = part.count < first + kGroup ? part.count : first + kGroup;
    std::uint32_t magnitude = 0;
    for (int i = first + lane; i < end; i += 32) {
      const std::uint32_t its = __float_as_uint(from[i]) & kMagnitude;
      magnitude = its > magnitude ? its : magnitude;
    }
    for (int distance = 16; distance > 0; distance /= 2) {
      const std::uint32_t other = __shfl_xor_sync(kAll, magnitude, distance);
      magnitude = other > magnitude ? other : magnitude;
    }
    refused = refused || magnitude >= kInfinite;
    const float largest = __uint_as_float(magnitude);
    const bool any = largest >= 0x1p-100f;
    const float scale = any ? __fdiv_rn(largest, 127.0F) : 0.0F;
    const float factor = any ? __fdiv_rn(65536.0F * 127.0F, largest) : 0.0F;
    std::uint8_t* const codes = to + group * (kGroup + 4) + 4;
    if (lane == 0) *reinterpret_cast<float*>(codes - 4) = scale;
    for (int i = first + lane; i < end; i += 32) {
      const int fixed = __float2int_rn(__fmul_rn(from[i], factor));
      int code =
          (fixed + static_cast<int>(chance_bits(seed, static_cast<std::uint32_t>(i)) >> 16)) >> 16;
      code = code < -127 ? -127 : code > 127 ? 127 : code;
      codes[i - first] = static_cast<std::uint8_t>(code);
      if (measures) loss.add(from[i], __fmul_rn(scale, static_cast<float>(code)));
    }
  }
  refused = __syncthreads_or(refused ? 1 : 0) != 0;
  if (measures) tell_loss(part, loss, refused);
  end_block<std::uint32_t>(part, refused ? nullptr : to, bytes);
}

__global__ void decode_int8(CodedActivation a) {
  const CodedPart part(a, blockIdx.x);
  const std::uint8_t* const from = begin_block<std::uint32_t>(part, int8_bytes(part.count));
  if (from == nullptr) return;
  float* const to = part.floats();
  for (int i = threadIdx.x; i < part.count; i += blockDim.x) {
    const std::uint8_t* const group = from + i / kGroup * (kGroup + 4);
    const auto code = static_cast<std::int8_t>(group[4 + i % kGroup]);
    to[i] = __fmul_rn(*reinterpret_cast<const float*>(group), static_cast<float>(code));
  }
}

// Indices below 2^kBits, a thread to a byte.
template <int kBits>
__global__ void encode_narrow(CodedActivation a) {
  constexpr int kPer = 8 / kBits;
  const CodedPart part(a, blockIdx.x);
  const int bytes = (part.count + kPer - 1) / kPer;
  std::uint8_t* const to = part.fixed_place(kCodedBlock / kPer, bytes);
  const std::uint8_t* const from = a.plain + part.begin;
  bool refused = to == nullptr;
  for (int byte = threadIdx.x; byte < bytes && to != nullptr; byte += blockDim.x) {
    unsigned word = 0;
    for (int k = 0; k < kPer && byte * kPer + k < part.count; ++k) {
      const unsigned index = from[byte * kPer + k];
      refused = refused || index >> kBits != 0;
      word |= index << (k * kBits);
    }
    to[byte] = static_cast<std::uint8_t>(word);
  }
  refused = __syncthreads_or(refused ? 1 : 0) != 0;
  end_block<std::uint8_t>(part, refused ? nullptr : to, bytes);
}

template <int kBits>
__global__ void decode_narrow(CodedActivation a) {
  constexpr int kPer = 8 / kBits;
  const CodedPart part(a, blockIdx.x);
  const std::uint8_t* const from = begin_block<std::uint8_t>(part, (part.count + kPer - 1) / kPer);
  if (from == nullptr) return;
  std::uint8_t* const to = a.plain + part.begin;
  for (int i = threadIdx.x; i < part.count; i += blockDim.x)
    to[i] = static_cast<std::uint8_t>(from[i / kPer] >> (i % kPer * kBits) & ((1U << kBits) - 1));
}

}  // namespace
}  // namespace plimsoll::kernels::cuda
