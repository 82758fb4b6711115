#include "plimsoll/store/element.h"

#include <array>
#include <limits>
#include <vector>

#include <fmt/format.h>

namespace plimsoll::store {
namespace {

struct ElementFacts {
  std::string_view name;
  int bits;
  std::optional<ir::DType> dtype;
};

// In the order of the enum.
constexpr std::array<ElementFacts, kElementCount> kElements = {{
    {"BOOL", 8, ir::DType::kBool},
    {"F4", 4, {}},
    {"F6_E2M3", 6, {}},
    {"F6_E3M2", 6, {}},
    {"U8", 8, ir::DType::kU8},
    {"I8", 8, ir::DType::kI8},
    {"F8_E5M2", 8, ir::DType::kF8E5M2},
    {"F8_E4M3", 8, ir::DType::kF8E4M3},
    {"F8_E8M0", 8, {}},
    {"F8_E4M3FNUZ", 8, {}},
    {"F8_E5M2FNUZ", 8, {}},
    {"I16", 16, ir::DType::kI16},
    {"U16", 16, ir::DType::kU16},
    {"F16", 16, ir::DType::kF16},
    {"BF16", 16, ir::DType::kBF16},
    {"I32", 32, ir::DType::kI32},
    {"U32", 32, ir::DType::kU32},
    {"F32", 32, ir::DType::kF32},
    {"C64", 64, {}},
    {"F64", 64, ir::DType::kF64},
    {"I64", 64, ir::DType::kI64},
    {"U64", 64, ir::DType::kU64},
}};

const ElementFacts& facts(Element element) {
  return kElements[static_cast<std::size_t>(element)];
}

}  // namespace

std::string_view name(Element element) {
  return facts(element).name;
}
int bits(Element element) {
  return facts(element).bits;
}
std::optional<ir::DType> dtype_of(Element element) {
  return facts(element).dtype;
}

std::optional<Element> parse_element(std::string_view text) {
  for (int i = 0; i < kElementCount; ++i)
    if (kElements[static_cast<std::size_t>(i)].name == text) return static_cast<Element>(i);
  return std::nullopt;
}
std::optional<Element> element_of(ir::DType dtype) {
  for (int i = 0; i < kElementCount; ++i)
    if (kElements[static_cast<std::size_t>(i)].dtype == dtype) return static_cast<Element>(i);
  return std::nullopt;
}

std::optional<std::uint64_t> bytes_of(Element element, std::span<const std::uint64_t> dims) {
  std::uint64_t count = 1;
  for (const std::uint64_t dim : dims)
    if (__builtin_mul_overflow(count, dim, &count)) return std::nullopt;
  std::uint64_t all = 0;
  if (__builtin_mul_overflow(count, static_cast<std::uint64_t>(bits(element)), &all) ||
      all % 8 != 0)
    return std::nullopt;
  return all / 8;
}

Result<ir::TensorType> tensor_type(Element element, std::span<const std::uint64_t> dims) {
  const auto dtype = dtype_of(element);
  if (!dtype) return bad_input("elements of type {} can only be copied", name(element));
  std::vector<std::int64_t> extents;
  for (const std::uint64_t dim : dims) {
    if (dim > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return bad_input("an extent of {} is too large", dim);
    extents.push_back(static_cast<std::int64_t>(dim));
  }
  PLIMSOLL_TRY(const ir::Shape shape, ir::Shape::make(extents));
  return ir::TensorType{*dtype, shape, {}};
}

std::string to_string(Element element, std::span<const std::uint64_t> dims) {
  return fmt::format("{}[{}]", name(element), fmt::join(dims, ","));
}

}  // namespace plimsoll::store
