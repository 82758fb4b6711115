#include "plimsoll/codec/weights/float_values.h"

#include <cmath>
#include <cstring>

#include "plimsoll/codec/rounding_loops.h"

namespace plimsoll::codec {
namespace {

template <typename T>
T element(std::span<const std::byte> values, std::size_t i) {
  T out;
  std::memcpy(&out, values.data() + i * sizeof(T), sizeof(T));
  return out;
}
template <typename T>
void set_element(std::span<std::byte> values, std::size_t i, T value) {
  std::memcpy(values.data() + i * sizeof(T), &value, sizeof(T));
}

template <SmallFloat F>
void widen(std::span<const std::byte> values, SmallForm form, std::span<float> out) {
  const auto* codes = reinterpret_cast<const std::uint16_t*>(values.data());
  std::size_t i = vector_widen(form, codes, out.size(), out.data());
  for (; i < out.size(); ++i) out[i] = from_small<F>(element<std::uint16_t>(values, i));
}

template <SmallFloat F>
void narrow(std::span<const float> values, std::span<std::byte> out) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint32_t code = nearest_small<F>(values[i]);
    if (code == kTooLarge)
      code = SmallCodes<F>::kLargest | (std::bit_cast<std::uint32_t>(values[i]) >> 31 << 15);
    set_element(out, i, static_cast<std::uint16_t>(code));
  }
}

}  // namespace

void to_floats(std::span<const std::byte> values, WeightKind kind, std::span<float> out) {
  switch (kind) {
    case WeightKind::kF32:
      if (!out.empty()) std::memcpy(out.data(), values.data(), out.size_bytes());
      return;
    case WeightKind::kF16:
      return widen<kFp16>(values, SmallForm::kFp16Form, out);
    case WeightKind::kBF16:
      return widen<kBf16>(values, SmallForm::kBf16Form, out);
    case WeightKind::kF64:
      for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = static_cast<float>(element<double>(values, i));
      return;
    case WeightKind::kOther:
      return;
  }
}

void from_floats(std::span<const float> values, WeightKind kind, std::span<std::byte> out) {
  switch (kind) {
    case WeightKind::kF32:
      if (!values.empty()) std::memcpy(out.data(), values.data(), values.size_bytes());
      return;
    case WeightKind::kF16:
      return narrow<kFp16>(values, out);
    case WeightKind::kBF16:
      return narrow<kBf16>(values, out);
    case WeightKind::kF64:
      for (std::size_t i = 0; i < values.size(); ++i)
        set_element(out, i, static_cast<double>(values[i]));
      return;
    case WeightKind::kOther:
      return;
  }
}

bool fits_floats(std::span<const std::byte> values, const ChunkShape& shape) {
  if (shape.kind != WeightKind::kF64) return true;
  for (std::size_t i = 0; i < values.size() / sizeof(double); ++i) {
    const auto value = element<double>(values, i);
    if (std::isfinite(value) && !std::isfinite(static_cast<float>(value))) return false;
  }
  return true;
}

std::span<const float> floats_of(std::span<const std::byte> values, const ChunkShape& shape,
                                 std::vector<float>& scratch) {
  const std::size_t count = values.size() / shape.element_bytes;
  const bool aligned = reinterpret_cast<std::uintptr_t>(values.data()) % alignof(float) == 0;
  if (shape.kind == WeightKind::kF32 && aligned)
    return {reinterpret_cast<const float*>(values.data()), count};
  scratch.resize(count);
  to_floats(values, shape.kind, scratch);
  return scratch;
}

}  // namespace plimsoll::codec
