// Masks of one bit, made from an activation and laid over a gradient: codec/bit_mask.h on all
// cores.
#include "plimsoll/codec/bit_mask.h"
#include "plimsoll/kernels/cpu/elementwise.h"
#include "plimsoll/kernels/cpu/table.h"
#include "plimsoll/ops/elementwise/activation_formulas.h"

namespace plimsoll::kernels {
namespace {

static_assert(kElementGrain % 8 == 0, "chunks of a mask are whole bytes");

// Calls body(floats, bytes of the mask) for chunks of both.
template <typename Body>
void for_each_chunk(std::int64_t count, const Body& body) {
  parallel_ranges(count, kElementGrain, [&](std::int64_t begin, std::int64_t end) {
    const auto floats = static_cast<std::size_t>(end - begin);
    body(begin, floats, begin / 8, codec::mask_bytes(floats));
  });
}

template <typename Encode>
std::unique_ptr<Kernel> make_encoding(const Site& site, Encode encode) {
  if (!is_f32(site.in(0)) || site.in(0).layout != site.out().layout) return nullptr;
  const std::int64_t count = stored_elements(site.in(0));
  return make_kernel(site, [=](const Arguments& a) {
    for_each_chunk(
        count, [&](std::int64_t begin, std::size_t floats, std::int64_t byte, std::size_t bytes) {
          encode(std::span(input<float>(a, 0) + begin, floats),
                 std::span(output<std::uint8_t>(a) + byte, bytes));
        });
  });
}

std::unique_ptr<Kernel> make_positive_mask(const Site& site) {
  return make_encoding(site, codec::encode_positive);
}

std::unique_ptr<Kernel> make_inside_mask(const Site& site) {
  const ops::Clip<ops::RealMath<float>> clip(site.attributes());
  return make_encoding(site, [=](std::span<const float> values, std::span<std::uint8_t> mask) {
    codec::encode_inside(values, clip.low, clip.high, mask);
  });
}

std::unique_ptr<Kernel> make_masked(const Site& site) {
  if (!is_f32(site.in(0)) || site.in(0) != site.out() || site.in(1).layout != site.out().layout)
    return nullptr;
  const std::int64_t count = stored_elements(site.out());
  return make_kernel(site, [=](const Arguments& a) {
    for_each_chunk(
        count, [&](std::int64_t begin, std::size_t floats, std::int64_t byte, std::size_t bytes) {
          codec::select_by_mask(std::span(input<float>(a, 0) + begin, floats),
                                std::span(input<std::uint8_t>(a, 1) + byte, bytes),
                                std::span(output<float>(a) + begin, floats));
        });
  });
}

}  // namespace

std::span<const TableEntry> mask_kernels() {
  static constexpr TableEntry kRows[] = {
      {"inside_mask", make_inside_mask},
      {"masked", make_masked},
      {"positive_mask", make_positive_mask},
  };
  return kRows;
}

}  // namespace plimsoll::kernels
