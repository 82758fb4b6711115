#include "plimsoll/store/gguf.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "plimsoll/base/utf8.h"
#include "plimsoll/codec/weights/block_weights.h"

namespace plimsoll::store {
namespace {

constexpr std::size_t kLongestTensorName = 64;
constexpr std::size_t kLongestKey = 65535;
constexpr unsigned kMostDims = 4;
constexpr int kDeepestArray = 4;

struct GgufKind {
  std::uint32_t id;
  std::string_view name;
  std::uint64_t values;  // in a block
  std::uint64_t bytes;
  std::optional<Element> element;  // of a kind that has no blocks
};
constexpr GgufKind kGgufKinds[] = {
    {0, "F32", 1, 4, Element::kF32},
    {1, "F16", 1, 2, Element::kF16},
    {2, "Q4_0", 32, 18, {}},
    {3, "Q4_1", 32, 20, {}},
    {6, "Q5_0", 32, 22, {}},
    {7, "Q5_1", 32, 24, {}},
    {8, "Q8_0", 32, 34, {}},
    {9, "Q8_1", 32, 40, {}},
    {10, "Q2_K", 256, 84, {}},
    {11, "Q3_K", 256, 110, {}},
    {12, "Q4_K", 256, 144, {}},
    {13, "Q5_K", 256, 176, {}},
    {14, "Q6_K", 256, 210, {}},
    {15, "Q8_K", 256, 292, {}},
    {16, "IQ2_XXS", 256, 66, {}},
    {17, "IQ2_XS", 256, 74, {}},
    {18, "IQ3_XXS", 256, 98, {}},
    {19, "IQ1_S", 256, 50, {}},
    {20, "IQ4_NL", 32, 18, {}},
    {21, "IQ3_S", 256, 110, {}},
    {22, "IQ2_S", 256, 82, {}},
    {23, "IQ4_XS", 256, 136, {}},
    {24, "I8", 1, 1, Element::kI8},
    {25, "I16", 1, 2, Element::kI16},
    {26, "I32", 1, 4, Element::kI32},
    {27, "I64", 1, 8, Element::kI64},
    {28, "F64", 1, 8, Element::kF64},
    {29, "IQ1_M", 256, 56, {}},
    {30, "BF16", 1, 2, Element::kBF16},
    {34, "TQ1_0", 256, 54, {}},
    {35, "TQ2_0", 256, 66, {}},
    {39, "MXFP4", 32, 17, {}},
    {40, "NVFP4", 64, 36, {}},
    {41, "Q1_0", 128, 18, {}},
};
const GgufKind* find_gguf_kind(std::uint32_t id) {
  for (const GgufKind& kind : kGgufKinds)
    if (kind.id == id) return &kind;
  return nullptr;
}

// Bytes of a value of a pair; 0: a string, an array, or nothing that exists.
std::size_t scalar_bytes(std::uint32_t type) {
  switch (type) {
    case 0:
    case 1:
    case 7:
      return 1;
    case 2:
    case 3:
      return 2;
    case 4:
    case 5:
    case 6:
      return 4;
    case 10:
    case 11:
    case 12:
      return 8;
    default:
      return 0;
  }
}
constexpr std::uint32_t kU32 = 4;
constexpr std::uint32_t kStringType = 8;
constexpr std::uint32_t kArrayType = 9;

class GgufReader {
 public:
  explicit GgufReader(std::span<const std::byte> file) : file_(file) {}

  Result<std::vector<GgufTensor>> read() {
    PLIMSOLL_TRY(const std::uint32_t magic, number<std::uint32_t>());
    if (magic != 0x46554747) return bad_input("not a GGUF file");
    PLIMSOLL_TRY(const std::uint32_t version, number<std::uint32_t>());
    if (version != 2 && version != 3)
      return bad_input("GGUF version {}, versions 2 and 3 are read{}", version,
                       version == 0x03000000 ? " (this one is big-endian)" : "");
    PLIMSOLL_TRY(const std::uint64_t tensors, number<std::uint64_t>());
    PLIMSOLL_TRY(const std::uint64_t pairs, number<std::uint64_t>());
    constexpr std::size_t kLeastPair = 8 + 4 + 1;
    constexpr std::size_t kLeastTensor = 8 + 4 + 4 + 8;
    if (pairs > left() / kLeastPair || tensors > left() / kLeastTensor)
      return bad_input("says it has {} pairs and {} tensors in {} bytes", pairs, tensors, left());
    for (std::uint64_t i = 0; i < pairs; ++i) PLIMSOLL_RETURN_IF_ERROR(pair());
    std::vector<GgufTensor> out;
    std::vector<std::uint64_t> offsets;
    for (std::uint64_t i = 0; i < tensors; ++i)
      PLIMSOLL_RETURN_IF_ERROR(tensor(out.emplace_back(), offsets.emplace_back()));
    const std::size_t padding = (alignment_ - at_ % alignment_) % alignment_;
    at_ = padding > left() ? file_.size() : at_ + padding;
    PLIMSOLL_RETURN_IF_ERROR(locate_tensors(out, offsets));
    return out;
  }

 private:
  std::size_t left() const { return file_.size() - at_; }

  template <typename T>
  Result<T> number() {
    if (left() < sizeof(T)) return bad_input("it is cut off at byte {}", file_.size());
    T out;
    std::memcpy(&out, file_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return out;
  }
  Result<std::string> string(std::uint64_t longest) {
    PLIMSOLL_TRY(const std::uint64_t length, number<std::uint64_t>());
    if (length > left() || length > longest)
      return bad_input("byte {}: a string of {} bytes, at most {} are read and {} are left", at_,
                       length, longest, left());
    std::string out(reinterpret_cast<const char*>(file_.data()) + at_, length);
    at_ += length;
    return out;
  }
  Status skip(std::uint64_t count, std::size_t bytes) {
    if (count > left() / bytes) return bad_input("byte {}: an array of {} is cut off", at_, count);
    at_ += count * bytes;
    return {};
  }
  Status skip_string() {
    PLIMSOLL_TRY(const std::uint64_t length, number<std::uint64_t>());
    return skip(length, 1);
  }
  Status skip_value(std::uint32_t type, int depth) {
    if (const std::size_t bytes = scalar_bytes(type)) return skip(1, bytes);
    if (type == kStringType) return skip_string();
    if (type != kArrayType) return bad_input("byte {}: there is no value type {}", at_, type);
    if (depth == kDeepestArray) return bad_input("byte {}: arrays nest too deep", at_);
    PLIMSOLL_TRY(const std::uint32_t inner, number<std::uint32_t>());
    PLIMSOLL_TRY(const std::uint64_t count, number<std::uint64_t>());
    if (const std::size_t bytes = scalar_bytes(inner)) return skip(count, bytes);
    if (count > left()) return bad_input("byte {}: an array of {} is cut off", at_, count);
    for (std::uint64_t i = 0; i < count; ++i)
      PLIMSOLL_RETURN_IF_ERROR(skip_value(inner, depth + 1));
    return {};
  }
  Status pair() {
    PLIMSOLL_TRY(const std::string key, string(kLongestKey));
    if (!keys_.insert(key).second) return bad_input("the key '{}' is there twice", excerpt(key));
    PLIMSOLL_TRY(const std::uint32_t type, number<std::uint32_t>());
    if (key != "general.alignment") return skip_value(type, 0);
    if (type != kU32) return bad_input("general.alignment is no u32");
    PLIMSOLL_TRY(alignment_, number<std::uint32_t>());
    if (alignment_ == 0 || (alignment_ & (alignment_ - 1)) != 0)
      return bad_input("general.alignment is {}, expected a power of two", alignment_);
    return {};
  }
  Status tensor(GgufTensor& out, std::uint64_t& offset) {
    PLIMSOLL_TRY(out.name, string(kLongestTensorName));
    if (!names_.insert(out.name).second)
      return bad_input("there are two tensors called '{}'", excerpt(out.name));
    PLIMSOLL_TRY(const std::uint32_t rank, number<std::uint32_t>());
    if (rank > kMostDims)
      return bad_input("tensor '{}': rank {}, at most {} is read", excerpt(out.name), rank,
                       kMostDims);
    for (std::uint32_t i = 0; i < rank; ++i) {
      PLIMSOLL_TRY(const std::uint64_t extent, number<std::uint64_t>());
      out.dims.insert(out.dims.begin(), extent);
    }
    PLIMSOLL_TRY(const std::uint32_t id, number<std::uint32_t>());
    const GgufKind* kind = find_gguf_kind(id);
    if (kind == nullptr) return bad_input("tensor '{}': unknown type {}", excerpt(out.name), id);
    out.kind = kind->name;
    out.in_blocks = !kind->element;
    out.element = kind->element.value_or(Element::kF32);
    PLIMSOLL_TRY(offset, number<std::uint64_t>());
    return measure(out, *kind);
  }
  // Until the data is found, the span has only its size.
  Status measure(GgufTensor& out, const GgufKind& kind) {
    const auto decoded = store::bytes_of(out.element, out.dims);
    const std::uint64_t row = out.dims.empty() ? 1 : out.dims.back();
    if (!decoded || *decoded > (std::uint64_t{1} << 62))
      return bad_input("tensor '{}': {} is too large", excerpt(out.name),
                       to_string(out.element, out.dims));
    if (row % kind.values != 0)
      return bad_input("tensor '{}': rows of {} values, {} has blocks of {}", excerpt(out.name),
                       row, kind.name, kind.values);
    const std::uint64_t bytes = out.elements() / kind.values * kind.bytes;
    if (bytes > file_.size())
      return bad_input("tensor '{}': {} bytes, the file has {}", excerpt(out.name), bytes,
                       file_.size());
    out.bytes = file_.first(bytes);
    return {};
  }
  Status locate_tensors(std::vector<GgufTensor>& tensors,
                        const std::vector<std::uint64_t>& offsets) {
    const std::span<const std::byte> data = file_.subspan(at_);
    std::vector<std::pair<std::uint64_t, std::size_t>> order;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      GgufTensor& tensor = tensors[i];
      if (offsets[i] % alignment_ != 0)
        return bad_input("tensor '{}': offset {} is no multiple of {}", excerpt(tensor.name),
                         offsets[i], alignment_);
      if (offsets[i] > data.size() || tensor.bytes.size() > data.size() - offsets[i])
        return bad_input("tensor '{}': {} bytes at {}, the file has {}: it is cut off",
                         excerpt(tensor.name), tensor.bytes.size(), offsets[i], data.size());
      tensor.bytes = data.subspan(offsets[i], tensor.bytes.size());
      if (!tensor.bytes.empty()) order.emplace_back(offsets[i], i);
    }
    std::sort(order.begin(), order.end());
    for (std::size_t i = 1; i < order.size(); ++i) {
      const GgufTensor& before = tensors[order[i - 1].second];
      if (order[i - 1].first + before.bytes.size() > order[i].first)
        return bad_input("tensors '{}' and '{}' share bytes", excerpt(before.name),
                         excerpt(tensors[order[i].second].name));
    }
    return {};
  }

  std::span<const std::byte> file_;
  std::size_t at_ = 0;
  std::uint32_t alignment_ = 32;
  std::unordered_set<std::string> keys_;
  std::unordered_set<std::string> names_;
};

}  // namespace

std::uint64_t GgufTensor::elements() const {
  std::uint64_t out = 1;
  for (const std::uint64_t extent : dims) out *= extent;
  return out;
}

Result<std::vector<GgufTensor>> read_gguf(std::span<const std::byte> file) {
  return GgufReader(file).read();
}

Status decode_gguf(const GgufTensor& tensor, std::span<std::byte> out) {
  if (!tensor.in_blocks) {
    std::copy(tensor.bytes.begin(), tensor.bytes.end(), out.begin());
    return {};
  }
  const codec::BlockKind* kind = codec::find_block_kind(tensor.kind);
  if (kind == nullptr)
    return bad_input("tensor '{}': {} cannot be decoded here; convert it to Q8_0 or F16 first",
                     printable(tensor.name), tensor.kind);
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(tensor.bytes.data()),
                        tensor.bytes.size());
  const std::span values(reinterpret_cast<float*>(out.data()), out.size() / sizeof(float));
  if (!codec::decode_blocks(*kind, bytes, values))
    return fail(ErrorCode::kInternal, "tensor '{}': sizes disagree", printable(tensor.name));
  return {};
}

}  // namespace plimsoll::store
