#include "plimsoll/dist/add_in_order.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "plimsoll/base/check.h"

namespace plimsoll::dist {
namespace {

template <typename T>
struct Plain {
  using Stored = T;
  using Sum = T;
  static Sum widen(Stored x) { return x; }
  static Stored narrow(Sum x) { return x; }
};

struct Half {
  using Stored = _Float16;
  using Sum = float;
  static float widen(_Float16 x) { return static_cast<float>(x); }
  static _Float16 narrow(float x) { return static_cast<_Float16>(x); }
};

struct Brain {
  using Stored = std::uint16_t;
  using Sum = float;
  static float widen(std::uint16_t x) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16);
  }
  static std::uint16_t narrow(float x) {
    if (std::isnan(x)) return 0x7fc0;
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
  }
};

// Piece by piece, so that sums stay in the cache while one rank after the other is added.
template <typename Form>
void add(std::byte* own_bytes, const std::byte* received_bytes, std::int64_t count, int rank,
         int size) {
  constexpr std::int64_t kPiece = 1024;
  auto* const own = reinterpret_cast<typename Form::Stored*>(own_bytes);
  const auto* const received = reinterpret_cast<const typename Form::Stored*>(received_bytes);
  std::array<typename Form::Sum, kPiece> sum;
  for (std::int64_t at = 0; at < count; at += kPiece) {
    const std::int64_t now = std::min(kPiece, count - at);
    for (int r = 0; r < size; ++r) {
      const auto* const part = (r == rank ? own : received + (r < rank ? r : r - 1) * count) + at;
      for (std::int64_t i = 0; i < now; ++i) {
        const auto number = Form::widen(part[i]);
        auto& total = sum[static_cast<std::size_t>(i)];
        total = r == 0 ? number : static_cast<typename Form::Sum>(total + number);
      }
    }
    for (std::int64_t i = 0; i < now; ++i)
      own[at + i] = Form::narrow(sum[static_cast<std::size_t>(i)]);
  }
}

using Add = void (*)(std::byte*, const std::byte*, std::int64_t, int, int);

Add add_of(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kF64:
      return add<Plain<double>>;
    case ir::DType::kF32:
      return add<Plain<float>>;
    case ir::DType::kF16:
      return add<Half>;
    case ir::DType::kBF16:
      return add<Brain>;
    case ir::DType::kI64:
    case ir::DType::kU64:
      return add<Plain<std::uint64_t>>;
    case ir::DType::kI32:
    case ir::DType::kU32:
      return add<Plain<std::uint32_t>>;
    case ir::DType::kI16:
    case ir::DType::kU16:
      return add<Plain<std::uint16_t>>;
    case ir::DType::kI8:
    case ir::DType::kU8:
      return add<Plain<std::uint8_t>>;
    default:
      return nullptr;
  }
}

}  // namespace

bool can_add(ir::DType dtype) {
  return add_of(dtype) != nullptr;
}

void add_parts_in_order(std::byte* own, const std::byte* received, std::int64_t count,
                        ir::DType dtype, int rank, int size) {
  const Add how = add_of(dtype);
  PLIMSOLL_CHECK(how != nullptr, "elements of {} cannot be added", ir::name(dtype));
  how(own, received, count, rank, size);
}

}  // namespace plimsoll::dist
