#include "plimsoll/codec/weights/ternary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <mutex>
#include <queue>

#include "plimsoll/codec/weights/chunk_rows.h"
#include "plimsoll/codec/weights/float_values.h"

namespace plimsoll::codec {
namespace {

constexpr std::size_t kRuns = 65535;
constexpr std::size_t kTernaryHead = 5;
// Fits the length of a run; so long a run of zeros has words enough.
constexpr std::size_t kLongestRun = 255;

// Weights in the order of a node's children.
constexpr std::array<std::int8_t, 3> kSigns = {0, 1, -1};
std::size_t child_of(std::int8_t weight) {
  return weight == 0 ? 0 : weight > 0 ? 1 : 2;
}

}  // namespace

RunDictionary::RunDictionary(unsigned zeros) {
  // Probabilities are products in a fixed order of doubles that every machine rounds alike; equal
  // ones are taken in the order they came.
  struct Leaf {
    double probability;
    std::uint32_t id;
    bool operator<(const Leaf& other) const {
      return probability != other.probability ? probability < other.probability : id > other.id;
    }
  };
  struct Text {
    std::vector<std::int8_t> weights;
    std::int32_t parent;
    std::uint8_t child;
  };
  const double zero = zeros / 64.0;
  const double sign = (1.0 - zero) / 2;
  const std::array<double, 3> chance = {zero, sign, sign};
  std::vector<Text> texts;
  std::priority_queue<Leaf> leaves;
  std::vector<std::uint32_t> kept;  // too long to be continued
  const auto expand = [&](const std::vector<std::int8_t>& prefix, double probability,
                          std::int32_t node) {
    for (std::uint8_t child = 0; child < 3; ++child) {
      Text text{prefix, node, child};
      text.weights.push_back(kSigns[child]);
      const auto id = static_cast<std::uint32_t>(texts.size());
      if (text.weights.size() < kLongestRun) {
        leaves.push({probability * chance[child], id});
      } else {
        kept.push_back(id);
      }
      texts.push_back(std::move(text));
    }
  };
  nodes_.push_back({});
  expand({}, 1.0, 0);
  while (!leaves.empty() && leaves.size() + kept.size() + 2 <= kRuns) {
    const Leaf likeliest = leaves.top();
    leaves.pop();
    const Text text = std::move(texts[likeliest.id]);
    const auto node = static_cast<std::int32_t>(nodes_.size());
    nodes_[static_cast<std::size_t>(text.parent)][text.child] = node;
    nodes_.push_back({});
    expand(text.weights, likeliest.probability, node);
  }
  for (; !leaves.empty(); leaves.pop()) kept.push_back(leaves.top().id);
  std::sort(kept.begin(), kept.end());
  for (const std::uint32_t id : kept) {
    const Text& text = texts[id];
    nodes_[static_cast<std::size_t>(text.parent)][text.child] =
        ~static_cast<std::int32_t>(runs_.size());
    Run run{static_cast<std::uint8_t>(text.weights.size()), 0,
            static_cast<std::uint32_t>(nonzeros_.size())};
    for (std::size_t i = 0; i < text.weights.size(); ++i) {
      if (text.weights[i] == 0) continue;
      nonzeros_.push_back({static_cast<std::uint8_t>(i), text.weights[i]});
      ++run.nonzeros;
    }
    runs_.push_back(run);
    FirstFour four = run.length | FirstFour{run.nonzeros} << 8;
    for (unsigned i = 0; i < std::min<unsigned>(run.nonzeros, 4); ++i) {
      const Nonzero& value = nonzeros_[run.first + i];
      four |= FirstFour{value.place} << (16 + 8 * i);
      four |= FirstFour{value.sign > 0 ? 1u : 2u} << (48 + 2 * i);
    }
    first_four_.push_back(four);
  }
  nodes_.shrink_to_fit();
  runs_.shrink_to_fit();
  first_four_.shrink_to_fit();
  nonzeros_.shrink_to_fit();
}

std::size_t RunDictionary::bytes() const {
  return nodes_.size() * sizeof(nodes_[0]) + runs_.size() * sizeof(Run) +
         first_four_.size() * sizeof(FirstFour) + nonzeros_.size() * sizeof(Nonzero);
}

unsigned zeros_of_ternary(std::span<const std::uint8_t> chunk) {
  return !chunk.empty() && chunk[0] < 64 ? chunk[0] : 0;
}

const RunDictionary& RunDictionary::of(unsigned zeros) {
  static std::array<std::once_flag, 64> made;
  static std::array<std::unique_ptr<const RunDictionary>, 64> all;
  std::call_once(made[zeros], [&] { all[zeros].reset(new RunDictionary(zeros)); });
  return *all[zeros];
}

std::uint16_t RunDictionary::word_for(const std::int8_t* weights, std::size_t count) const {
  std::int32_t node = 0;
  for (std::size_t i = 0;; ++i) {
    const std::size_t child = i < count ? child_of(weights[i]) : 0;
    node = nodes_[static_cast<std::size_t>(node)][child];
    if (node < 0) return static_cast<std::uint16_t>(~node);
  }
}

namespace {

std::size_t ternary_bytes(std::size_t count, const ChunkShape& shape) {
  return kTernaryHead + 4 * rows_of(count, shape) + 2 * count;
}

// The row's scale, and its weights as signs; false where a value is not finite.
bool round_row(std::span<const float> row, float& scale, std::int8_t* signs) {
  double sum = 0;
  float largest = 0;
  std::size_t nonzero = 0;
  bool one_size = true;
  for (const float value : row) {
    const float size = std::fabs(value);
    if (!std::isfinite(size)) return false;
    if (size == 0) continue;
    one_size = one_size && (nonzero == 0 || size == largest);
    largest = std::max(largest, size);
    sum += size;
    ++nonzero;
  }
  const auto limit =
      one_size ? 0.0f : static_cast<float>(0.7 * sum / static_cast<double>(row.size()));
  double kept = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const float size = std::fabs(row[i]);
    signs[i] = static_cast<std::int8_t>(size > limit ? (row[i] > 0 ? 1 : -1) : 0);
    if (signs[i] == 0) continue;
    kept += size;
    ++count;
  }
  scale =
      one_size ? largest : static_cast<float>(count == 0 ? 0.0 : kept / static_cast<double>(count));
  return true;
}

bool encode_ternary(std::span<const float> values, const ChunkShape& shape,
                    std::span<std::uint8_t> out, std::size_t& used) {
  if (out.size() < ternary_bytes(values.size(), shape)) return false;
  std::vector<std::int8_t> signs(values.size());
  std::vector<float> scales;
  const bool finite = for_rows(values.size(), shape, [&](std::size_t first, std::size_t length) {
    return round_row(values.subspan(first, length), scales.emplace_back(), signs.data() + first);
  });
  if (!finite) return false;
  const auto zeros = static_cast<std::size_t>(std::count(signs.begin(), signs.end(), 0));
  const std::size_t share = signs.empty() ? 32 : (zeros * 64 + signs.size() / 2) / signs.size();
  out[0] = static_cast<std::uint8_t>(std::clamp<std::size_t>(share, 1, 63));
  const RunDictionary& dictionary = RunDictionary::of(out[0]);
  std::uint8_t* to = out.data() + kTernaryHead;
  if (!scales.empty()) std::memcpy(to, scales.data(), 4 * scales.size());
  to += 4 * scales.size();
  std::uint32_t words = 0;
  for (std::size_t at = 0; at < signs.size(); ++words, to += 2) {
    const std::uint16_t word = dictionary.word_for(signs.data() + at, signs.size() - at);
    std::memcpy(to, &word, 2);
    at += dictionary.runs()[word].length;
  }
  std::memcpy(out.data() + 1, &words, 4);
  used = static_cast<std::size_t>(to - out.data());
  return true;
}

struct TernaryParts {
  const RunDictionary* dictionary = nullptr;
  const std::uint8_t* scales = nullptr;
  std::span<const std::uint8_t> words;
};
bool open_ternary(std::span<const std::uint8_t> bytes, std::size_t count, const ChunkShape& shape,
                  TernaryParts& parts) {
  const std::size_t before = kTernaryHead + 4 * rows_of(count, shape);
  if (bytes.size() < before || bytes[0] < 1 || bytes[0] > 63) return false;
  std::uint32_t words;
  std::memcpy(&words, bytes.data() + 1, 4);
  if (bytes.size() - before != std::size_t{2} * words) return false;
  parts = {&RunDictionary::of(bytes[0]), bytes.data() + kTernaryHead, bytes.subspan(before)};
  return true;
}
// The run of the next word; null when there is none or no such word.
const RunDictionary::Run* next_run(TernaryParts& parts) {
  if (parts.words.size() < 2) return nullptr;
  std::uint16_t word;
  std::memcpy(&word, parts.words.data(), 2);
  parts.words = parts.words.subspan(2);
  return word < parts.dictionary->runs().size() ? &parts.dictionary->runs()[word] : nullptr;
}

bool decode_ternary(std::span<const std::uint8_t> bytes, const ChunkShape& shape,
                    std::span<float> values) {
  TernaryParts parts;
  if (!open_ternary(bytes, values.size(), shape, parts)) return false;
  std::fill(values.begin(), values.end(), 0.0f);
  std::size_t at = 0;
  while (at < values.size()) {
    const RunDictionary::Run* run = next_run(parts);
    if (run == nullptr) return false;
    const RunDictionary::Nonzero* nonzero = parts.dictionary->nonzeros(*run);
    for (unsigned i = 0; i < run->nonzeros; ++i) {
      if (at + nonzero[i].place >= values.size()) return false;
      values[at + nonzero[i].place] = nonzero[i].sign;
    }
    at += run->length;
  }
  if (!parts.words.empty()) return false;
  const std::uint8_t* scales = parts.scales;
  return for_rows(values.size(), shape, [&](std::size_t first, std::size_t length) {
    float scale;
    std::memcpy(&scale, scales, 4);
    scales += 4;
    for (float& value : values.subspan(first, length)) value = value == 0 ? 0.0f : value * scale;
    return true;
  });
}

// The row that a walk through a chunk is in: where it ends, and which of the vector's numbers its
// places meet.
struct TernaryRow {
  std::size_t end;        // its last place in the chunk, and one
  std::ptrdiff_t column;  // of a place, less the place
  float scale;
  std::size_t number;  // of the chunk's rows
};

// Runs that lie in one row, as nearly all do, with four nonzeros at most: adds them up without a
// branch that depends on the weights. Stops at another run, and at the row's end; false: no word.
bool add_runs(TernaryParts& parts, const float* in, const TernaryRow& row, std::size_t& at_place,
              float& into) {
  static constexpr float kFactor[4] = {0.0f, 1.0f, -1.0f, 0.0f};  // by the two bits of a sign
  const std::uint64_t* runs = parts.dictionary->first_four().data();
  const std::size_t known = parts.dictionary->first_four().size();
  const std::uint8_t* word_at = parts.words.data();
  const std::uint8_t* const last = word_at + parts.words.size() / 2 * 2;
  // Locals: behind references they would be written to memory each time.
  const std::size_t end = row.end;
  const std::ptrdiff_t column = row.column;
  std::size_t at = at_place;
  float sum = into;
  bool good = true;
  while (word_at != last && at < end) {
    std::uint16_t word;
    std::memcpy(&word, word_at, 2);
    good = word < known;
    if (!good) break;
    const std::uint64_t run = runs[word];
    const std::size_t length = run & 255;
    if (at + length > end || (run >> 8 & 255) > 4) break;
    const float* from = in + (static_cast<std::ptrdiff_t>(at) + column);
    sum += (from[run >> 16 & 255] * kFactor[run >> 48 & 3] +
            from[run >> 24 & 255] * kFactor[run >> 50 & 3]) +
           (from[run >> 32 & 255] * kFactor[run >> 52 & 3] +
            from[run >> 40 & 255] * kFactor[run >> 54 & 3]);
    at += length;
    word_at += 2;
  }
  parts.words = parts.words.subspan(static_cast<std::size_t>(word_at - parts.words.data()));
  at_place = at;
  into = sum;
  return good;
}

// The same of numbers that are added to: each of four places is read before one is written, and
// those that count for nothing are written first, where another may lie.
bool spread_runs(TernaryParts& parts, const TernaryRow& row, std::size_t& at_place, float* out) {
  const float factor[4] = {0.0f, row.scale, -row.scale, 0.0f};  // by the two bits of a sign
  const std::uint64_t* runs = parts.dictionary->first_four().data();
  const std::size_t known = parts.dictionary->first_four().size();
  const std::uint8_t* word_at = parts.words.data();
  const std::uint8_t* const last = word_at + parts.words.size() / 2 * 2;
  const std::size_t end = row.end;
  const std::ptrdiff_t column = row.column;
  std::size_t at = at_place;
  bool good = true;
  while (word_at != last && at < end) {
    std::uint16_t word;
    std::memcpy(&word, word_at, 2);
    good = word < known;
    if (!good) break;
    const std::uint64_t run = runs[word];
    const std::size_t length = run & 255;
    if (at + length > end || (run >> 8 & 255) > 4) break;
    float* to = out + (static_cast<std::ptrdiff_t>(at) + column);
    const float first = to[run >> 16 & 255] + factor[run >> 48 & 3];
    const float second = to[run >> 24 & 255] + factor[run >> 50 & 3];
    const float third = to[run >> 32 & 255] + factor[run >> 52 & 3];
    const float fourth = to[run >> 40 & 255] + factor[run >> 54 & 3];
    to[run >> 40 & 255] = fourth;
    to[run >> 32 & 255] = third;
    to[run >> 24 & 255] = second;
    to[run >> 16 & 255] = first;
    at += length;
    word_at += 2;
  }
  parts.words = parts.words.subspan(static_cast<std::size_t>(word_at - parts.words.data()));
  at_place = at;
  return good;
}

// One look-up a word; nothing is decoded. kRows: sums of the vector's numbers, with signs, times
// the row's scale. kColumns: the row's number times its scale, added with signs.
template <Product kProduct>
bool multiply_ternary_as(TernaryParts parts, const ChunkShape& shape, std::size_t count,
                         const float* in, float* out) {
  const std::size_t columns = shape.columns;
  const std::size_t first_row = shape.begin / columns;
  const std::size_t skipped = shape.begin % columns;
  const auto scale_of = [&](std::size_t number) {
    float scale;
    std::memcpy(&scale, parts.scales + 4 * number, 4);
    return kProduct == Product::kRows ? scale : scale * in[first_row + number];
  };
  TernaryRow row{std::min(columns - skipped, count), static_cast<std::ptrdiff_t>(skipped),
                 scale_of(0), 0};
  float sum = 0;
  const auto next_row = [&] {
    if constexpr (kProduct == Product::kRows) {
      if (sum != 0) out[row.number] += sum * row.scale;
      sum = 0;
    }
    if (row.end == count) return;
    row = {std::min(row.end + columns, count), -static_cast<std::ptrdiff_t>(row.end),
           scale_of(row.number + 1), row.number + 1};
  };
  const auto add = [&](std::size_t place, std::int8_t sign) {
    const auto column = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(place) + row.column);
    if constexpr (kProduct == Product::kRows) {
      sum += static_cast<float>(sign) * in[column];
    } else {
      out[column] += static_cast<float>(sign) * row.scale;
    }
  };
  std::size_t at = 0;
  while (at < count) {
    const bool good = kProduct == Product::kRows ? add_runs(parts, in, row, at, sum)
                                                 : spread_runs(parts, row, at, out);
    if (!good) return false;
    while (at >= row.end && row.end < count) next_row();
    if (at >= count) break;
    const RunDictionary::Run* run = next_run(parts);
    if (run == nullptr) return false;
    const RunDictionary::Nonzero* nonzero = parts.dictionary->nonzeros(*run);
    if (at + run->length <= row.end) {
      for (unsigned i = 0; i < run->nonzeros; ++i) add(at + nonzero[i].place, nonzero[i].sign);
    } else {
      for (unsigned i = 0; i < run->nonzeros; ++i) {
        const std::size_t place = at + nonzero[i].place;
        if (place >= count) return false;
        while (place >= row.end) next_row();
        add(place, nonzero[i].sign);
      }
    }
    at += run->length;
    while (at >= row.end && row.end < count) next_row();
  }
  next_row();
  return parts.words.empty();
}

bool multiply_ternary(std::span<const std::uint8_t> bytes, const ChunkShape& shape,
                      std::size_t count, Product product, const float* in, float* out) {
  TernaryParts parts;
  // Longer rows have several scales.
  if (shape.columns == 0 || shape.columns > kLongestRow || count == 0 ||
      !open_ternary(bytes, count, shape, parts))
    return false;
  return product == Product::kRows
             ? multiply_ternary_as<Product::kRows>(parts, shape, count, in, out)
             : multiply_ternary_as<Product::kColumns>(parts, shape, count, in, out);
}

}  // namespace

const WeightCodec kTernaryWeights{"ternary",
                                  false,
                                  is_floating,
                                  ternary_bytes,
                                  encode_through_floats<encode_ternary>,
                                  decode_through_floats<decode_ternary>,
                                  multiply_ternary};

}  // namespace plimsoll::codec
