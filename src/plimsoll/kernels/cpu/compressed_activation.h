// Activations into compressed buffers (codec/compressed_buffer.h) and out again, on all cores.
//
// compress_activation writes what fits into the buffer the plan gave; blocks that are
// incompressible go, as they are, into the activation's Overflow in host memory
// (kernels/activation_encoding.h). decompress_activation joins the two. Neither allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plimsoll/codec/compressed_buffer.h"
#include "plimsoll/kernels/activation_encoding.h"

namespace plimsoll::kernels {

// Bytes of the buffer that the activation needed. The seed decides how lossy codecs round.
std::size_t compress_activation(const codec::Codec& codec, std::span<const std::byte> activation,
                                std::span<std::uint8_t> buffer, const Overflow& overflow,
                                std::uint64_t seed = 1);
// False: the buffer or the overflow is not what compress_activation left. What `activation` then
// holds is undefined.
bool decompress_activation(const codec::Codec& codec, std::span<const std::uint8_t> buffer,
                           const Overflow& overflow, std::span<std::byte> activation);

// What a codec of floats lost: `activation` beside what its compressed buffer gives back. The same
// sums for any number of threads.
// The sums of every block go into `by_block`: a step of a plan allocates nothing.
ActivationError error_of(const codec::Codec& codec, std::span<const std::byte> activation,
                         std::span<const std::uint8_t> buffer, const Overflow& overflow,
                         std::span<ActivationError> by_block);
// The same with everything that a plan bound, for devices that compute on the host.
void encode_on_host(const ActivationEncoding& encoding);
void decode_on_host(const ActivationEncoding& encoding);

}  // namespace plimsoll::kernels
