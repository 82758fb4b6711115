// What it takes to encode an activation on a device, or to decode it: addresses, fixed before the
// first step, as a kernel's are.
//
// The plan fixed the size of the compressed buffer (codec/compressed_buffer.h), and only the data
// knows whether it is enough. Blocks that are incompressible wait, as they are, in host memory,
// where the device itself puts them: nobody waits for the host to decide. So an activation whose
// data compresses worse than the plan assumed costs time, never bits and never device memory.
//
//   device   plain  ──encode──▶  compressed buffer of fixed size
//                        └─────▶  host: Overflow, block for block as in the activation
//
// That host memory is as large as it could ever be and taken before the first step; a device that
// is not the host's wants it pinned. Encoding never allocates and waits for nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plimsoll/base/units.h"
#include "plimsoll/codec/compressed_buffer.h"

namespace plimsoll::kernels {

// Host memory for the incompressible blocks of one activation, each where it stands in the
// activation, and what every block took of the compressed buffer.
class Overflow {
 public:
  Overflow(const codec::Codec& codec, std::size_t activation_bytes)
      : codec_(&codec), activation_bytes_(activation_bytes) {}

  Bytes memory_wanted() const;
  // Takes the first bytes of `memory`, aligned to kAlignment, and gives back the rest.
  std::span<std::byte> take_memory(std::span<std::byte> memory);
  std::span<std::byte> memory() const { return memory_; }
  // By block: bytes of it in the compressed buffer; 0: it waits here.
  std::span<std::uint32_t> stored() const { return stored_; }

  std::size_t blocks() const {
    return codec::compressed_blocks(activation_bytes_ / codec_->element_bytes);
  }
  bool holds(std::size_t block) const { return stored_[block] == 0; }
  // What waits here now, and what is used of the buffer.
  Bytes bytes() const;
  Bytes stored_bytes() const;

 private:
  const codec::Codec* codec_;
  std::size_t activation_bytes_;
  std::span<std::byte> memory_;
  std::span<std::uint32_t> stored_;
};

// What a codec of floats lost.
struct ActivationError {
  double largest = 0;        // |difference|
  double squares = 0;        // of all differences
  double value_squares = 0;  // of all values, to compare with
};

// Of the step that is about to run; in host memory that the device reads.
struct EncodingStep {
  std::uint64_t seed = 0;
  std::uint64_t measures_errors = 0;  // not 0: lossy encodings are compared with what they were of
};

struct ActivationEncoding {
  const codec::Codec* codec = nullptr;
  std::span<std::byte> plain;
  std::span<std::uint8_t> compressed;
  const Overflow* overflow = nullptr;
  const EncodingStep* step = nullptr;
  std::uint64_t seed = 0;             // tells the roundings of encodings apart
  std::span<ActivationError> errors;  // host memory, by block; empty where none are measured

  std::size_t count() const { return plain.size() / codec->element_bytes; }
};

}  // namespace plimsoll::kernels
