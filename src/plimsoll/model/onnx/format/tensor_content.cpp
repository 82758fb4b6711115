#include "plimsoll/model/onnx/format/tensor_content.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>

namespace plimsoll::model::onnx {
namespace {

static_assert(std::endian::native == std::endian::little, "raw_data is used where it lies");

// Element types that are ours too.
struct ElementRow {
  ElementType element;
  ir::DType dtype;
};
constexpr auto kElements = std::to_array<ElementRow>({
    {ElementType::kFloat, ir::DType::kF32},
    {ElementType::kDouble, ir::DType::kF64},
    {ElementType::kFloat16, ir::DType::kF16},
    {ElementType::kBfloat16, ir::DType::kBF16},
    {ElementType::kFloat8E4M3FN, ir::DType::kF8E4M3},
    {ElementType::kFloat8E5M2, ir::DType::kF8E5M2},
    {ElementType::kInt64, ir::DType::kI64},
    {ElementType::kInt32, ir::DType::kI32},
    {ElementType::kInt16, ir::DType::kI16},
    {ElementType::kInt8, ir::DType::kI8},
    {ElementType::kInt4, ir::DType::kI4},
    {ElementType::kUint64, ir::DType::kU64},
    {ElementType::kUint32, ir::DType::kU32},
    {ElementType::kUint16, ir::DType::kU16},
    {ElementType::kUint8, ir::DType::kU8},
    {ElementType::kUint4, ir::DType::kU4},
    {ElementType::kBool, ir::DType::kBool},
});

std::string_view element_name(ElementType element) {
  switch (element) {
    case ElementType::kString:
      return "strings";
    case ElementType::kComplex64:
    case ElementType::kComplex128:
      return "complex numbers";
    case ElementType::kFloat8E4M3FNUZ:
      return "float8e4m3fnuz";
    case ElementType::kFloat8E5M2FNUZ:
      return "float8e5m2fnuz";
    case ElementType::kFloat4E2M1:
      return "float4e2m1";
    case ElementType::kFloat8E8M0:
      return "float8e8m0";
    case ElementType::kUndefined:
      return "no element type";
    default:
      return "an unknown element type";
  }
}

Result<std::int64_t> parse_place(std::string_view text, std::string_view what) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size() || out < 0) {
    return bad_input("external data: {} is no number of bytes", what);
  }
  return out;
}

Result<std::span<const std::byte>> external_bytes(const TensorFile& tensor,
                                                  store::DataFolder* folder, std::int64_t size) {
  if (folder == nullptr) return bad_input("has external data, which is not allowed here");
  std::int64_t offset = 0;
  if (!tensor.offset.empty()) {
    PLIMSOLL_TRY(offset, parse_place(tensor.offset, "offset"));
  }
  if (!tensor.length.empty()) {
    PLIMSOLL_TRY(const std::int64_t length, parse_place(tensor.length, "length"));
    if (length != size) return bad_input("needs {} bytes, its external data has {}", size, length);
  }
  return folder->open(tensor.location, offset, size);
}

// Collects the numbers of the typed field into elements of `width` bytes, up to `size` bytes.
class TypedReader {
 public:
  TypedReader(std::size_t width, std::size_t size) : width_(width), limit_(size) {}

  void append(Wire& wire, bool varint, WireBytes packed, bool is_packed) {
    if (!is_packed) {
      put(static_cast<std::uint64_t>(wire.integer()));
      return;
    }
    if (!varint) {
      if (out_.size() + packed.size() > limit_) too_long_ = true;
      if (!too_long_) out_.insert(out_.end(), packed.begin(), packed.end());
      return;
    }
    std::uint64_t value = 0;
    while (!packed.empty() && !too_long_) {
      if (!take_varint(packed, value)) {
        too_long_ = true;
        return;
      }
      put(value);
    }
  }
  void put(std::uint64_t value) {
    if (out_.size() + width_ > limit_) {
      too_long_ = true;
      return;
    }
    const std::size_t at = out_.size();
    out_.resize(at + width_);
    std::memcpy(out_.data() + at, &value, width_);
  }
  bool complete() const { return !too_long_ && out_.size() == limit_; }
  std::vector<std::byte> take() { return std::move(out_); }

 private:
  std::size_t width_;
  std::size_t limit_;
  bool too_long_ = false;
  std::vector<std::byte> out_;
};

struct TypedField {
  std::uint32_t number;
  bool varint;
};

TypedField typed_field(ElementType element) {
  switch (element) {
    case ElementType::kFloat:
      return {4, false};
    case ElementType::kDouble:
      return {10, false};
    case ElementType::kInt64:
      return {7, true};
    case ElementType::kUint32:
    case ElementType::kUint64:
      return {11, true};
    default:
      return {5, true};
  }
}

Result<std::vector<std::byte>> typed_bytes(const TensorFile& tensor, const ir::TensorType& type) {
  const auto size = static_cast<std::size_t>(ir::bytes_of(type).value);
  const TypedField field = typed_field(tensor.element);
  // Elements narrower than a byte come two to a number, which is a byte.
  TypedReader reader(static_cast<std::size_t>(std::max(ir::bits(type.dtype) / 8, 1)), size);
  Wire wire(tensor.message);
  while (wire.next()) {
    if (wire.field() != field.number) continue;
    const bool packed = wire.is_bytes();
    if (!packed && !field.varint) {
      reader.put(wire.fixed());
    } else {
      reader.append(wire, field.varint, packed ? wire.bytes() : WireBytes(), packed);
    }
  }
  if (!reader.complete()) {
    return bad_input("{} needs {} bytes, its list of numbers has another length",
                     ir::to_string(type), size);
  }
  return reader.take();
}

Result<TensorContent> content(const TensorFile& tensor, store::DataFolder* folder) {
  TensorContent out;
  PLIMSOLL_TRY(out.type, type_of(tensor));
  const std::int64_t size = ir::bytes_of(out.type).value;
  if (tensor.external) {
    PLIMSOLL_TRY(out.bytes, external_bytes(tensor, folder, size));
  } else if (tensor.has_raw) {
    if (static_cast<std::int64_t>(tensor.raw.size()) != size) {
      return bad_input("{} needs {} bytes, the file has {}", ir::to_string(out.type), size,
                       tensor.raw.size());
    }
    out.bytes = tensor.raw;
  } else {
    if (size > static_cast<std::int64_t>(tensor.message.size()) * 8) {
      return bad_input("{} needs {} bytes, the file has {}", ir::to_string(out.type), size,
                       tensor.message.size());
    }
    PLIMSOLL_TRY(out.owned, typed_bytes(tensor, out.type));
    out.bytes = out.owned;
    out.is_owned = true;
  }
  return out;
}

}  // namespace

Result<ir::DType> dtype_of(ElementType element) {
  const auto row = std::ranges::find(kElements, element, &ElementRow::element);
  if (row != kElements.end()) return row->dtype;
  return bad_input("has {}, which is not supported", element_name(element));
}

ElementType element_of(ir::DType dtype) {
  const auto row = std::ranges::find(kElements, dtype, &ElementRow::dtype);
  return row != kElements.end() ? row->element : ElementType::kUndefined;
}

Result<ir::TensorType> type_of(const TensorFile& tensor) {
  PLIMSOLL_TRY(const ir::DType dtype, dtype_of(tensor.element));
  PLIMSOLL_TRY(const ir::Shape shape, ir::Shape::make(tensor.dims));
  const ir::TensorType type{dtype, shape, {}};
  if (!ir::checked_bytes(type))
    return bad_input("the size of {} does not fit 64 bits", ir::to_string(type));
  return type;
}

Result<TensorContent> content_of(const TensorFile& tensor, store::DataFolder* folder) {
  auto out = content(tensor, folder);
  if (!out) return forward(out, fmt::format("tensor '{}'", tensor.name));
  return out;
}

Result<ops::Array> array_of(const TensorFile& tensor, store::DataFolder* folder) {
  PLIMSOLL_TRY(const TensorContent content, content_of(tensor, folder));
  return ops::Array::from_bytes(
      content.type, content.is_owned ? std::span<const std::byte>(content.owned) : content.bytes);
}

}  // namespace plimsoll::model::onnx
