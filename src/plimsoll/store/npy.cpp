#include "plimsoll/store/npy.h"

#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "plimsoll/base/checked.h"

namespace plimsoll::store {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

// The few words of Python that a header may say.
class Literal {
 public:
  explicit Literal(std::string_view text) : text_(text) {}

  bool take(std::string_view token) {
    skip_spaces();
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }
  std::optional<std::string_view> string() {
    skip_spaces();
    if (text_.empty() || (text_[0] != '\'' && text_[0] != '"')) return std::nullopt;
    const std::size_t end = text_.find(text_[0], 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view out = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return out;
  }
  std::optional<std::int64_t> integer() {
    skip_spaces();
    std::int64_t out = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), out);
    if (error != std::errc()) return std::nullopt;
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    take("L");
    return out;
  }

 private:
  void skip_spaces() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n')) text_.remove_prefix(1);
  }
  std::string_view text_;
};

struct NumpyType {
  std::string_view name;
  ir::DType dtype;
};
constexpr NumpyType kTypes[] = {
    {"<f8", ir::DType::kF64}, {"<f4", ir::DType::kF32}, {"<f2", ir::DType::kF16},
    {"<i8", ir::DType::kI64}, {"<i4", ir::DType::kI32}, {"<i2", ir::DType::kI16},
    {"|i1", ir::DType::kI8},  {"<u8", ir::DType::kU64}, {"<u4", ir::DType::kU32},
    {"<u2", ir::DType::kU16}, {"|u1", ir::DType::kU8},  {"|b1", ir::DType::kBool},
};

Result<ir::DType> dtype_of(std::string_view name) {
  for (const NumpyType& type : kTypes) {
    if (type.name == name) return type.dtype;
  }
  return bad_input("elements of numpy type '{}' are not supported", name.substr(0, 40));
}

Result<NpyHeader> parse_literal(std::string_view text) {
  Literal literal(text);
  NpyHeader out;
  std::optional<ir::DType> dtype;
  std::optional<std::vector<std::int64_t>> shape;
  if (!literal.take("{")) return bad_input("its header is no dictionary");
  while (!literal.take("}")) {
    const auto key = literal.string();
    if (!key || !literal.take(":")) return bad_input("its header is malformed");
    if (*key == "descr") {
      const auto name = literal.string();
      if (!name) return bad_input("structured arrays are not supported");
      PLIMSOLL_TRY(dtype, dtype_of(*name));
    } else if (*key == "fortran_order") {
      out.fortran_order = literal.take("True");
      if (!out.fortran_order && !literal.take("False")) return bad_input("its header is malformed");
    } else if (*key == "shape") {
      if (!literal.take("(")) return bad_input("its shape is malformed");
      shape.emplace();
      while (!literal.take(")")) {
        const auto extent = literal.integer();
        if (!extent || shape->size() >= 64) return bad_input("its shape is malformed");
        shape->push_back(*extent);
        literal.take(",");
      }
    } else {
      return bad_input("its header has an unknown entry");
    }
    literal.take(",");
  }
  if (!dtype || !shape) return bad_input("its header says no type or no shape");
  PLIMSOLL_TRY(const ir::Shape checked, ir::Shape::make(*shape));
  out.type = {*dtype, checked, {}};
  if (!ir::checked_bytes(out.type)) return bad_input("{} is too large", ir::to_string(out.type));
  return out;
}

}  // namespace

void put_in_rows(const ir::TensorType& type, std::span<const std::byte> columns,
                 std::span<std::byte> rows) {
  const auto width = static_cast<std::size_t>(ir::bits(type.dtype) / 8);
  const ir::Shape& shape = type.shape;
  std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()), 0);
  for (std::int64_t row = 0; row < shape.elements(); ++row) {
    std::int64_t column = 0;
    std::int64_t stride = 1;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      column += index[static_cast<std::size_t>(axis)] * stride;
      stride *= shape[axis];
    }
    std::memcpy(rows.data() + static_cast<std::size_t>(row) * width,
                columns.data() + static_cast<std::size_t>(column) * width, width);
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      if (++index[static_cast<std::size_t>(axis)] < shape[axis]) break;
      index[static_cast<std::size_t>(axis)] = 0;
    }
  }
}

Result<NpyHeader> read_npy_header(std::span<const std::byte> first) {
  const std::string_view text(reinterpret_cast<const char*>(first.data()), first.size());
  if (first.size() < 10 || !text.starts_with(kMagic)) return bad_input("not a numpy file");
  const auto byte = [&](std::size_t i) { return std::to_integer<std::size_t>(first[i]); };
  const bool wide = byte(6) >= 2;
  if (byte(6) < 1 || byte(6) > 3 || (wide && first.size() < 12))
    return bad_input("a numpy format of version {} is not supported", byte(6));
  const std::size_t begin = wide ? 12 : 10;
  const std::size_t length = byte(8) | byte(9) << 8 | (wide ? byte(10) << 16 | byte(11) << 24 : 0);
  if (begin + length > kLongestNpyHeader)
    return bad_input("its header has {} bytes, at most {} are read", length, kLongestNpyHeader);
  if (length > first.size() - begin) return bad_input("its header is cut off");
  PLIMSOLL_TRY(NpyHeader header, parse_literal(text.substr(begin, length)));
  header.size = begin + length;
  return header;
}

Result<NamedTensor> read_npy(std::span<const std::byte> file) {
  PLIMSOLL_TRY(const NpyHeader header, read_npy_header(file));
  const auto content = file.subspan(header.size);
  const std::int64_t size = ir::bytes_of(header.type).value;
  if (static_cast<std::int64_t>(content.size()) != size) {
    return bad_input("{} needs {} bytes, the file has {}", ir::to_string(header.type), size,
                     content.size());
  }
  NamedTensor out;
  out.type = header.type;
  out.bytes.assign(content.begin(), content.end());
  if (header.fortran_order) put_in_rows(header.type, content, out.bytes);
  return out;
}

Result<std::string> npy_header(const ir::TensorType& type) {
  std::string_view name;
  for (const NumpyType& candidate : kTypes) {
    if (candidate.dtype == type.dtype) name = candidate.name;
  }
  if (name.empty()) return bad_input("numpy has no type for {}", ir::name(type.dtype));
  std::string shape;
  for (const std::int64_t extent : type.shape) shape += fmt::format("{}, ", extent);
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", name, shape);
  // The elements begin at a multiple of 64.
  const std::size_t total =
      static_cast<std::size_t>(round_up(static_cast<std::int64_t>(header.size()) + 11, 64));
  header.resize(total - 11, ' ');
  header += '\n';
  std::string out(kMagic);
  out += '\x01';
  out += '\0';
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  return out + header;
}

}  // namespace plimsoll::store
