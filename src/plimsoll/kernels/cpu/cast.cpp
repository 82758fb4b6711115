// Casts between the types that models really mix: fp32, bf16, int64, int32 and bool.
//
// A real becomes the integer below it in magnitude, a NaN 0, one out of range the nearest of 64
// bits (its low bits then for int32, as the reference does); anything but zero becomes true.
#include "plimsoll/kernels/cpu/elementwise.h"
#include "plimsoll/kernels/cpu/table.h"

namespace plimsoll::kernels {
namespace {

enum class Truth : std::uint8_t { kNo, kYes };

PLIMSOLL_INLINE std::int64_t whole(float x) {
  if (x != x) return 0;
  if (x >= 0x1p63F) return std::numeric_limits<std::int64_t>::max();
  if (x < -0x1p63F) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(x);
}

// Everything passes through a float or, between integers, through 64 bits.
PLIMSOLL_INLINE float number(float x) {
  return x;
}
PLIMSOLL_INLINE float number(Bf16 x) {
  return load(x);
}
PLIMSOLL_INLINE std::int64_t number(std::int64_t x) {
  return x;
}
PLIMSOLL_INLINE std::int64_t number(std::int32_t x) {
  return x;
}
PLIMSOLL_INLINE std::int64_t number(Truth x) {
  return static_cast<std::int64_t>(x);
}

template <typename To>
PLIMSOLL_INLINE To made_of(float x) {
  if constexpr (std::is_same_v<To, Truth>) {
    return x != 0.0F ? Truth::kYes : Truth::kNo;
  } else if constexpr (std::is_integral_v<To>) {
    return static_cast<To>(whole(x));
  } else {
    To out;
    store(out, x);
    return out;
  }
}
template <typename To>
PLIMSOLL_INLINE To made_of(std::int64_t x) {
  if constexpr (std::is_same_v<To, Truth>) {
    return x != 0 ? Truth::kYes : Truth::kNo;
  } else if constexpr (std::is_integral_v<To>) {
    return static_cast<To>(x);
  } else {
    To out;
    store(out, static_cast<float>(x));
    return out;
  }
}

template <typename From, typename To>
PLIMSOLL_VECTORIZED void cast_range(const From* x, To* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = made_of<To>(number(x[i]));
}

// Between widths it cannot be done in place range by range.
template <typename From, typename To>
class CastKernel final : public Kernel {
 public:
  explicit CastKernel(const Site& site)
      : threads_(site.threads), count_(stored_elements(site.out())) {}
  Bytes scratch() const override { return Bytes(0); }
  bool in_place() const override { return false; }
  void run(const Arguments& a) override {
    use_threads(threads_);
    parallel_ranges(count_, kElementGrain, [&](std::int64_t begin, std::int64_t end) {
      cast_range(input<From>(a, 0) + begin, output<To>(a) + begin, end - begin);
    });
  }

 private:
  int threads_;
  std::int64_t count_;
};

// Calls make with a value of the dtype's type, or gives null for the types not named above.
template <typename Make>
std::unique_ptr<Kernel> for_type(ir::DType dtype, const Make& make) {
  switch (dtype) {
    case ir::DType::kF32:
      return make(float{});
    case ir::DType::kBF16:
      return make(Bf16{});
    case ir::DType::kI64:
      return make(std::int64_t{});
    case ir::DType::kI32:
      return make(std::int32_t{});
    case ir::DType::kBool:
      return make(Truth{});
    default:
      return nullptr;
  }
}

std::unique_ptr<Kernel> make_cast(const Site& site) {
  if (site.in(0).layout != site.out().layout) return nullptr;
  return for_type(site.in(0).dtype, [&](auto from) {
    return for_type(site.out().dtype, [&](auto to) -> std::unique_ptr<Kernel> {
      return std::make_unique<CastKernel<decltype(from), decltype(to)>>(site);
    });
  });
}

}  // namespace

std::span<const TableEntry> cast_kernels() {
  static constexpr TableEntry kRows[] = {
      {"cast", make_cast, true},
  };
  return kRows;
}

}  // namespace plimsoll::kernels
