#include "plimsoll/ir/dtype.h"

#include <array>

namespace plimsoll::ir {
namespace {

struct Facts {
  std::string_view name;
  int bits;
};

// In the order of the enum.
constexpr std::array<Facts, kDTypeCount> kFacts = {{
    {"fp64", 64},
    {"fp32", 32},
    {"fp16", 16},
    {"bf16", 16},
    {"fp8e4m3", 8},
    {"fp8e5m2", 8},
    {"int64", 64},
    {"int32", 32},
    {"int16", 16},
    {"int8", 8},
    {"int4", 4},
    {"uint64", 64},
    {"uint32", 32},
    {"uint16", 16},
    {"uint8", 8},
    {"uint4", 4},
    {"bool", 8},
    {"bit", 1},
}};

}  // namespace

int bits(DType dtype) {
  return kFacts[static_cast<std::size_t>(dtype)].bits;
}
std::string_view name(DType dtype) {
  return kFacts[static_cast<std::size_t>(dtype)].name;
}
bool is_float(DType dtype) {
  return dtype <= DType::kF8E5M2;
}
bool is_signed_integer(DType dtype) {
  return dtype >= DType::kI64 && dtype <= DType::kI4;
}

std::optional<DType> parse_dtype(std::string_view text) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (kFacts[static_cast<std::size_t>(i)].name == text) return static_cast<DType>(i);
  }
  return std::nullopt;
}

}  // namespace plimsoll::ir
