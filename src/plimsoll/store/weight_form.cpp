#include "plimsoll/store/weight_form.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "plimsoll/codec/weights/encoded_matrix.h"
#include "plimsoll/codec/weights/float_values.h"
#include "plimsoll/codec/weights/weight_codecs.h"

namespace plimsoll::store {
namespace {

const codec::WeightCodec& codec_of(Form form) {
  return codec::weight_codecs()[static_cast<std::size_t>(form) - 1];
}

codec::WeightKind kind_of(Element element) {
  switch (element) {
    case Element::kF32:
      return codec::WeightKind::kF32;
    case Element::kF16:
      return codec::WeightKind::kF16;
    case Element::kBF16:
      return codec::WeightKind::kBF16;
    case Element::kF64:
      return codec::WeightKind::kF64;
    default:
      return codec::WeightKind::kOther;
  }
}

// Elements narrower than a byte count as bytes.
codec::ChunkShape chunk_shape(Element element, std::span<const std::uint64_t> dims,
                              std::uint64_t chunk) {
  codec::ChunkShape out;
  out.kind = kind_of(element);
  out.element_bytes = bits(element) < 8 ? 1 : static_cast<std::size_t>(bits(element) / 8);
  out.columns = bits(element) < 8 ? 1 : codec::row_elements(dims);
  out.begin = chunk * (codec::kChunkBytes / out.element_bytes);
  return out;
}

std::span<const std::uint8_t> words_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

}  // namespace

std::vector<Form> all_forms() {
  std::vector<Form> out;
  for (std::size_t i = 0; i <= codec::weight_codecs().size(); ++i)
    out.push_back(static_cast<Form>(i));
  return out;
}
std::string_view name(Form form) {
  return form == Form::kRaw ? "raw" : codec_of(form).name;
}
Result<Form> parse_form(std::string_view text) {
  std::string known;
  for (const Form form : all_forms()) {
    if (name(form) == text) return form;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name(form));
  }
  return fail(ErrorCode::kUsage, "there is no form '{}', there are {}", text, known);
}
bool stays_in_memory(Form form) {
  return form != Form::kRaw &&
         codec::stays_in_memory(codec::weight_codecs()[static_cast<std::size_t>(form) - 1]);
}
bool is_lossless(Form form) {
  return form == Form::kRaw || codec_of(form).lossless;
}
bool takes(Form form, Element element, std::span<const std::uint64_t> dims) {
  if (form == Form::kRaw) return true;
  if (!is_lossless(form) && dims.size() < 2) return false;
  return codec_of(form).takes(chunk_shape(element, dims, 0));
}

std::uint64_t chunks_of(std::uint64_t bytes) {
  return bytes / codec::kChunkBytes + (bytes % codec::kChunkBytes != 0 ? 1 : 0);
}
std::size_t chunk_bytes(std::uint64_t bytes, std::uint64_t chunk) {
  return std::min<std::uint64_t>(codec::kChunkBytes, bytes - chunk * codec::kChunkBytes);
}

Chunk encode_chunk(Form form, Element element, std::span<const std::uint64_t> dims,
                   std::uint64_t chunk, std::span<const std::byte> values) {
  Chunk out{Form::kRaw, {}};
  if (takes(form, element, dims) && form != Form::kRaw) {
    const codec::ChunkShape shape = chunk_shape(element, dims, chunk);
    const codec::WeightCodec& codec = codec_of(form);
    out.bytes.resize(codec.largest_bytes(values.size() / shape.element_bytes, shape));
    std::size_t used = 0;
    const std::span room(reinterpret_cast<std::uint8_t*>(out.bytes.data()), out.bytes.size());
    if (codec.encode(values, shape, room, used) && used < values.size()) {
      out.bytes.resize(used);
      out.form = form;
      return out;
    }
  }
  out.bytes.assign(values.begin(), values.end());
  return out;
}

bool decode_chunk(Form form, Element element, std::span<const std::uint64_t> dims,
                  std::uint64_t chunk, std::span<const std::byte> bytes,
                  std::span<std::byte> values) {
  if (form == Form::kRaw) {
    if (bytes.size() != values.size()) return false;
    std::copy(bytes.begin(), bytes.end(), values.begin());
    return true;
  }
  return codec_of(form).decode(words_of(bytes), chunk_shape(element, dims, chunk), values);
}

void add_sizes(Element element, std::span<const std::byte> values, std::vector<float>& out) {
  const codec::WeightKind kind = kind_of(element);
  if (kind == codec::WeightKind::kOther) return;
  std::vector<float> floats(values.size() / static_cast<std::size_t>(bits(element) / 8));
  codec::to_floats(values, kind, floats);
  for (const float value : floats)
    out.push_back(std::isnan(value) ? std::numeric_limits<float>::infinity() : std::fabs(value));
}
void prune(Element element, float most, std::span<std::byte> values) {
  std::vector<float> sizes;
  add_sizes(element, values, sizes);
  const auto width = static_cast<std::size_t>(bits(element) / 8);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] <= most) std::memset(values.data() + i * width, 0, width);
}

// A few at a time: while weights are loaded within a budget, memory is counted.
void FormError::add(Element element, std::span<const std::byte> was,
                    std::span<const std::byte> is) {
  constexpr std::size_t kAtOnce = 1024;
  const codec::WeightKind kind = kind_of(element);
  if (kind == codec::WeightKind::kOther) return;
  const auto width = static_cast<std::size_t>(bits(element) / 8);
  const std::size_t count = was.size() / width;
  std::array<float, kAtOnce> before;
  std::array<float, kAtOnce> after;
  for (std::size_t first = 0; first < count; first += kAtOnce) {
    const std::size_t length = std::min(kAtOnce, count - first);
    codec::to_floats(was.subspan(first * width, length * width), kind,
                     std::span(before).first(length));
    codec::to_floats(is.subspan(first * width, length * width), kind,
                     std::span(after).first(length));
    for (std::size_t i = 0; i < length; ++i) add(before[i], after[i]);
  }
}
void FormError::add(double x, double y) {
  if (!std::isfinite(x) || !std::isfinite(y)) {
    not_finite = not_finite || !(x == y || (std::isnan(x) && std::isnan(y)));
    return;
  }
  ++values;
  const double difference = std::fabs(x - y);
  largest = std::max(largest, difference);
  largest_was = std::max(largest_was, std::fabs(x));
  squares += difference * difference;
  squares_was += x * x;
  squares_is += y * y;
  products += x * y;
}
void FormError::add(const FormError& other) {
  largest = std::max(largest, other.largest);
  largest_was = std::max(largest_was, other.largest_was);
  squares += other.squares;
  squares_was += other.squares_was;
  squares_is += other.squares_is;
  products += other.products;
  values += other.values;
  not_finite = not_finite || other.not_finite;
}
double FormError::max_error() const {
  return largest == 0 ? 0 : largest_was == 0 ? 1 : largest / largest_was;
}
double FormError::rms_error() const {
  return squares == 0 ? 0 : squares_was == 0 ? 1 : std::sqrt(squares / squares_was);
}
double FormError::cosine() const {
  if (squares == 0) return 1;
  const double both = std::sqrt(squares_was) * std::sqrt(squares_is);
  return both == 0 ? 0 : std::min(1.0, products / both);
}

void Entropy::add(Element element, std::span<const std::byte> values) {
  const std::size_t width = bits(element) < 8 ? 1 : static_cast<std::size_t>(bits(element) / 8);
  const bool turn = element == Element::kF32 || element == Element::kBF16;
  auto& planes = of_width_[width][turn ? 1 : 0];
  if (!planes) planes.emplace();
  const auto width_bits = static_cast<unsigned>(8 * width);
  for (std::size_t i = 0; i + width <= values.size(); i += width) {
    std::uint64_t word = 0;
    std::memcpy(&word, values.data() + i, width);
    if (turn) word = (word << 1) | (word >> (width_bits - 1));
    for (std::size_t p = 0; p < width; ++p) ++planes->counts[p][(word >> (8 * p)) & 0xff];
  }
}
double Entropy::bytes() const {
  double all = 0;
  for (const auto& of_width : of_width_) {
    for (const auto& planes : of_width) {
      if (!planes) continue;
      for (const auto& counts : planes->counts) {
        double total = 0;
        for (const std::uint64_t count : counts) total += static_cast<double>(count);
        for (const std::uint64_t count : counts)
          if (count > 0)
            all += static_cast<double>(count) * std::log2(total / static_cast<double>(count)) / 8;
      }
    }
  }
  return all;
}

}  // namespace plimsoll::store
