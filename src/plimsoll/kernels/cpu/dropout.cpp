// Dropout: the mask is a hash of seed, counter and position (ops/elementwise/dropout_mask.h), so
// nothing is stored and the gradient is dropout itself. random_uniform draws by the same hash.
#include "plimsoll/kernels/cpu/elementwise.h"
#include "plimsoll/kernels/cpu/table.h"
#include "plimsoll/ops/elementwise/dropout_mask.h"

namespace plimsoll::kernels {
namespace {

template <typename T>
PLIMSOLL_VECTORIZED void drop_range(const T* x, T* y, std::uint32_t first, std::int64_t n,
                                    ops::DropoutKey key, std::uint32_t threshold, float scale) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t hash = ops::dropout_mix(
        ops::dropout_mix((first + static_cast<std::uint32_t>(i)) ^ key.low) ^ key.high);
    store(y[i], hash >= threshold ? load(x[i]) * scale : 0.0F);
  }
}

std::unique_ptr<Kernel> make_dropout(const Site& site) {
  const std::int64_t count = site.out().shape.elements();
  // Positions are counted row-major; beyond 2^32 the hash takes another word.
  if (!all_row_major(site) || site.in(0) != site.out() || site.in(1).dtype != ir::DType::kU64 ||
      site.attributes().integer("first") > (std::int64_t{1} << 32) - count)
    return nullptr;
  const std::int64_t first = site.attributes().integer("first");
  const double ratio = site.attributes().real("ratio");
  const auto seed = static_cast<std::uint64_t>(site.attributes().integer("seed"));
  const auto scale = static_cast<float>(1.0 / (1.0 - ratio));
  const std::uint32_t threshold = ops::dropout_threshold(ratio);
  return for_float_type(site.out().dtype, [&](auto element) {
    using T = decltype(element);
    return make_kernel(site, [=](const Arguments& a) {
      const ops::DropoutKey key = ops::dropout_key(seed, *input<std::uint64_t>(a, 1));
      parallel_ranges(count, kElementGrain, [&](std::int64_t begin, std::int64_t end) {
        drop_range(input<T>(a, 0) + begin, output<T>(a) + begin,
                   static_cast<std::uint32_t>(first + begin), end - begin, key, threshold, scale);
      });
    });
  });
}

// In double, as the definition draws: a product and a sum in float round differently where the
// processor joins them, and one seed gave other numbers on other machines.
template <typename T>
PLIMSOLL_VECTORIZED void draw_range(T* y, std::uint32_t first, std::int64_t n, ops::DropoutKey key,
                                    double low, double range) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t hash = ops::dropout_mix(
        ops::dropout_mix((first + static_cast<std::uint32_t>(i)) ^ key.low) ^ key.high);
    store(y[i], static_cast<float>(low + range * ops::uniform_of(hash)));
  }
}

std::unique_ptr<Kernel> make_random_uniform(const Site& site) {
  const std::int64_t count = site.out().shape.elements();
  if (!all_row_major(site) || site.in(0).dtype != ir::DType::kU64 || count > std::int64_t{1} << 32)
    return nullptr;
  const double low = site.attributes().real("low");
  const double range = site.attributes().real("high") - low;
  const auto seed = static_cast<std::uint64_t>(site.attributes().integer("seed"));
  return for_float_type(site.out().dtype, [&](auto element) {
    using T = decltype(element);
    return make_kernel(site, [=](const Arguments& a) {
      const ops::DropoutKey key = ops::dropout_key(seed, *input<std::uint64_t>(a, 0));
      parallel_ranges(count, kElementGrain, [&](std::int64_t begin, std::int64_t end) {
        draw_range(output<T>(a) + begin, static_cast<std::uint32_t>(begin), end - begin, key, low,
                   range);
      });
    });
  });
}

}  // namespace

std::span<const TableEntry> dropout_kernels() {
  static constexpr TableEntry kRows[] = {
      {"dropout", make_dropout},
      {"random_uniform", make_random_uniform},
  };
  return kRows;
}

}  // namespace plimsoll::kernels
