// A box: room of a size fixed by the plan for an encoded map whose true size only the data knows.
//
//   ┌ 8 bytes ┬ payload ────────────┬ unused ┐
//   │ length  │ what the codec wrote │        │
//   └─────────┴──────────────────────┴────────┘
//
// A plan is made before the first step, so the room for a sparse map is a guess: `planned_zeros` of it are
// taken to be zero. A map that does not fit is refused (pack_box returns false, the box then says so to
// whoever opens it); the caller keeps the plain values elsewhere. Nothing is ever lost.
//
// Pure functions; a box with any bytes whatever is opened without touching anything outside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plimsoll/codec/codec.h"

namespace plimsoll::codec {

// The share of zeros that the room for a sparse map counts on. Half of what ReLU makes is zero; the
// margin is for maps that are a little fuller.
inline constexpr double kPlannedZeros = 0.45;

// Bytes of the box for `count` values.
std::size_t box_bytes(const Codec& codec, std::size_t count);

bool pack_box(const Codec& codec, std::span<const float> values, std::uint64_t seed,
              std::span<std::uint8_t> box);

enum class Opened : std::uint8_t { kValues, kRefused, kDamaged };
Opened open_box(const Codec& codec, std::span<const std::uint8_t> box, std::span<float> values);

}  // namespace plimsoll::codec
