#include "plimsoll/codec/bit_mask.h"

#include <algorithm>

#include "plimsoll/base/check.h"
#include "plimsoll/codec/vector_loops.h"

namespace plimsoll::codec {

namespace {

// The bits from `whole` on, one by one.
template <typename Test>
void finish(std::span<const float> values, std::size_t whole, std::span<std::uint8_t> out,
            Test test) {
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(whole / 8), out.end(), std::uint8_t{0});
  for (std::size_t i = whole; i < values.size(); ++i) {
    out[i / 8] = static_cast<std::uint8_t>(out[i / 8] | (test(values[i]) ? 1u << (i % 8) : 0u));
  }
}

}  // namespace

void encode_positive(std::span<const float> values, std::span<std::uint8_t> out) {
  PLIMSOLL_CHECK(out.size() == mask_bytes(values.size()));
  finish(values, vector_positive_bits(values.data(), values.size(), out.data()), out,
         [](float value) { return value > 0; });
}

void encode_inside(std::span<const float> values, float least, float most,
                   std::span<std::uint8_t> out) {
  PLIMSOLL_CHECK(out.size() == mask_bytes(values.size()));
  finish(values, vector_inside_bits(values.data(), values.size(), least, most, out.data()), out,
         [=](float value) { return value >= least && value <= most; });
}

void select_by_mask(std::span<const float> values, std::span<const std::uint8_t> mask,
                    std::span<float> out) {
  PLIMSOLL_CHECK(mask.size() == mask_bytes(values.size()) && out.size() == values.size());
  for (std::size_t i = vector_select(values.data(), mask.data(), values.size(), out.data());
       i < values.size(); ++i) {
    out[i] = (mask[i / 8] >> (i % 8)) & 1 ? values[i] : 0.0f;
  }
}

}  // namespace plimsoll::codec
