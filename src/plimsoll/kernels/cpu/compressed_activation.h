// Activations into compressed buffers (codec/compressed_buffer.h) and out again, on all cores.
//
// compress_activation writes what fits into the buffer the plan gave; blocks that are
// incompressible go, as they are, into the activation's Overflow in host memory. So an activation
// whose data compresses worse than the plan assumed costs time, never bits and never device memory.
// decompress_activation joins the two. Neither allocates.
#pragma once

#include <vector>

#include "plimsoll/base/units.h"
#include "plimsoll/codec/compressed_buffer.h"

namespace plimsoll::kernels {

// Host memory for the incompressible blocks of one activation. It is as large as the activation and
// taken before the first step; a block stands in it where it stands in the activation.
class Overflow {
 public:
  Overflow(const codec::Codec& codec, std::size_t activation_bytes);

  Bytes memory_wanted() const { return Bytes(static_cast<std::int64_t>(activation_bytes_)); }
  // Takes the first bytes of `memory` and gives back the rest.
  std::span<std::byte> take_memory(std::span<std::byte> memory);
  // What waits there now.
  Bytes bytes() const;
  std::size_t blocks() const { return incompressible_.size(); }
  bool holds(std::size_t block) const { return incompressible_[block] != 0; }

 private:
  friend std::size_t compress_activation(const codec::Codec&, std::span<const std::byte>,
                                         std::span<std::uint8_t>, Overflow&, std::uint64_t);
  friend bool decompress_activation(const codec::Codec&, std::span<const std::uint8_t>,
                                    const Overflow&, std::span<std::byte>);

  const codec::Codec* codec_;
  std::size_t activation_bytes_;
  std::span<std::byte> memory_;
  std::vector<std::uint8_t> incompressible_;  // by block: whether it waits here
};

// Bytes of the buffer that the activation needed. The seed decides how lossy codecs round.
std::size_t compress_activation(const codec::Codec& codec, std::span<const std::byte> activation,
                                std::span<std::uint8_t> buffer, Overflow& overflow,
                                std::uint64_t seed = 1);
// False: the buffer or the overflow is not what compress_activation left. What `activation` then
// holds is undefined.
bool decompress_activation(const codec::Codec& codec, std::span<const std::uint8_t> buffer,
                           const Overflow& overflow, std::span<std::byte> activation);

// What a codec of floats lost: `activation` beside what its compressed buffer gives back. The same
// sums for any number of threads.
struct ActivationError {
  double largest = 0;        // |difference|
  double squares = 0;        // of all differences
  double value_squares = 0;  // of all values, to compare with
};
// The sums of every block go into `by_block`: a step of a plan allocates nothing.
ActivationError error_of(const codec::Codec& codec, std::span<const std::byte> activation,
                         std::span<const std::uint8_t> buffer, const Overflow& overflow,
                         std::span<ActivationError> by_block);

}  // namespace plimsoll::kernels
