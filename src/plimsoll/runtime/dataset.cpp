#include "plimsoll/runtime/dataset.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/log.h"
#include "plimsoll/ops/evaluation/array.h"
#include "plimsoll/runtime/layout_copy.h"
#include "plimsoll/runtime/shuffle.h"

namespace plimsoll::runtime {
namespace {

namespace fs = std::filesystem;

// Cast in pieces, so that a batch is not held twice.
constexpr std::int64_t kCastPiece = 4096;

std::int64_t row_elements(const ir::Shape& shape) {
  return shape.rank() == 0 ? 1 : shape.elements(1, shape.rank());
}

// The same without the first axis.
bool same_rows(const ir::Shape& a, const ir::Shape& b) {
  if (a.rank() != b.rank() || a.rank() == 0) return false;
  return std::equal(a.begin() + 1, a.end(), b.begin() + 1, b.end());
}

// The numbers of one type in another; an error where an integer cannot hold one.
Result<std::vector<std::byte>> cast_elements(ir::DType from, ir::DType to,
                                             std::span<const std::byte> bytes,
                                             std::int64_t elements) {
  PLIMSOLL_TRY(const ops::Array given, ops::Array::from_bytes({from, {elements}, {}}, bytes));
  ops::Array made(ir::TensorType{to, {elements}, {}});
  for (std::int64_t i = 0; i < elements; ++i) {
    if (!given.is_real() && !made.is_real()) {
      made.integers[static_cast<std::size_t>(i)] = given.integers[static_cast<std::size_t>(i)];
    } else {
      made.set_number(i, given.number(i));
    }
  }
  made.round();
  if (made.is_real()) return made.to_bytes();
  for (std::int64_t i = 0; i < elements; ++i) {
    const bool exact = given.is_real() ? made.number(i) == given.number(i)
                                       : made.integers[static_cast<std::size_t>(i)] ==
                                             given.integers[static_cast<std::size_t>(i)];
    if (!exact)
      return bad_input("{} is no {}; convert the array yourself", given.number(i), ir::name(to));
  }
  return made.to_bytes();
}

// What is most often wrong with rows (all but the first dimension) of another shape.
std::string how_to_fit(const ir::Shape& file, const ir::Shape& model) {
  const auto row_of = [](const ir::Shape& shape) {
    return std::vector<std::int64_t>(shape.begin() + std::min(1, shape.rank()), shape.end());
  };
  std::vector<std::int64_t> has = row_of(file), wants = row_of(model);
  if (has == wants) return "";
  const bool images = has.size() == 3 && wants.size() == 3 && has[0] == wants[0];
  if (images && has[1] == has[2] && wants[1] == wants[2])
    return fmt::format("; for built-in models give --image {}", has[1]);
  if (wants.empty() && has.size() == 1 && has[0] > 1)
    return "; labels are numbers, not rows of one-hot";
  if (has.size() > wants.size()) {
    std::erase(has, 1);
    return has == wants ? "; leave out its dimensions of 1" : "";
  }
  std::sort(has.begin(), has.end());
  std::sort(wants.begin(), wants.end());
  return has == wants ? "; its dimensions are in another order, transpose it" : "";
}

}  // namespace

Result<std::vector<std::string>> archives_at(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return std::vector<std::string>{path};
  std::vector<std::string> out;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    if (entry.path().extension() == ".npz") out.push_back(entry.path().string());
  }
  if (error) return bad_input("{}: {}", path, error.message());
  if (out.empty()) return bad_input("{}: a folder without .npz files", path);
  std::sort(out.begin(), out.end());
  return out;
}

tl::unexpected<Error> Dataset::is_missing(const Archive& archive, const std::string& input) {
  constexpr std::size_t kNamed = 5;
  std::vector<std::string> names;
  for (const store::NpzEntry& entry : archive.file->entries()) {
    if (names.size() == kNamed) {
      names.emplace_back("...");
      break;
    }
    names.push_back(fmt::format("'{}'", entry.name));
  }
  return bad_input("{}: input '{}' is not in it; it has {}", archive.path, input,
                   names.empty() ? "no arrays" : fmt::format("{}", fmt::join(names, ", ")));
}

Result<Dataset> Dataset::open(const std::string& path) {
  Dataset out;
  out.path_ = path;
  PLIMSOLL_TRY(const std::vector<std::string> files, archives_at(path));
  for (const std::string& file : files) {
    PLIMSOLL_TRY(store::NpzFile opened, store::NpzFile::open(file));
    out.archives_.push_back(
        {file, std::make_shared<const store::NpzFile>(std::move(opened)), 0, 0});
  }
  return out;
}

Status Dataset::count_examples(const ir::Graph& graph) {
  examples_ = batch_ = 0;
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const ir::Value& value = graph.values[v];
    if (value.kind != ir::ValueKind::kInput) continue;
    const store::NpzEntry* first = archives_.front().file->find(value.name);
    if (first == nullptr) return is_missing(archives_.front(), value.name);
    const bool one_batch = archives_.size() == 1 && first->type.shape == value.type.shape;
    if (one_batch || !same_rows(first->type.shape, value.type.shape)) continue;
    const std::int64_t batch = value.type.shape[0];
    if (batch_ != 0 && batch != batch_)
      return bad_input("input '{}': takes {} examples at once, another takes {}", value.name, batch,
                       batch_);
    batch_ = batch;
    std::int64_t sum = 0;
    for (Archive& archive : archives_) {
      const store::NpzEntry* entry = archive.file->find(value.name);
      if (entry == nullptr) return is_missing(archive, value.name);
      if (!same_rows(entry->type.shape, value.type.shape))
        return bad_input("{}: '{}' has {}, the model expects {}{}", archive.path, value.name,
                         ir::to_string(entry->type.shape), ir::to_string(value.type.shape),
                         how_to_fit(entry->type.shape, value.type.shape));
      const std::int64_t examples = entry->type.shape[0];
      if (examples_ != 0 && archive.examples != examples)
        return bad_input("{}: '{}' has {} examples, another array {}", archive.path, value.name,
                         examples, archive.examples);
      archive.first = sum;
      archive.examples = examples;
      sum += examples;
    }
    examples_ = sum;
  }
  if (batch_ > 0 && examples_ < batch_) {
    return bad_input("{}: has {} examples, a step takes {}; give a smaller --batch", path_,
                     examples_, batch_);
  }
  return {};
}

Result<Dataset::Column> Dataset::column_of(const Archive& archive, const ir::Value& value) const {
  const store::NpzEntry* entry = archive.file->find(value.name);
  if (entry == nullptr) return is_missing(archive, value.name);
  Column out{entry->type, {}, nullptr};
  auto stored = archive.file->elements_of(*entry);
  if (!stored) return forward(stored, archive.path);
  if (*stored) {
    out.elements = **stored;
    return out;
  }
  const auto bytes = static_cast<std::uint64_t>(ir::bytes_of(entry->type).value);
  const std::uint64_t most = (std::uint64_t{256} << 20) + 16 * archive.file->file_bytes();
  if (bytes > most)
    return bad_input("{}: '{}' unpacks to {} bytes, at most {} are; store it uncompressed",
                     archive.path, value.name, bytes, most);
  auto unpacked = archive.file->read(*entry);
  if (!unpacked) return forward(unpacked, archive.path);
  out.unpacked = std::make_shared<std::vector<std::byte>>(std::move(unpacked->bytes));
  out.elements = *out.unpacked;
  return out;
}

Status Dataset::bind(const ir::Graph& graph) {
  inputs_.clear();
  PLIMSOLL_RETURN_IF_ERROR(count_examples(graph));
  ranges_ = index_ranges(graph);
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const ir::Value& value = graph.values[v];
    if (value.kind != ir::ValueKind::kInput) continue;
    Input input{ValueId(v), false, {}};
    const store::NpzEntry* first = archives_.front().file->find(value.name);
    input.whole = batch_ == 0 || !same_rows(first->type.shape, value.type.shape) ||
                  first->type.shape[0] != archives_.front().examples;
    if (input.whole && first->type.shape != value.type.shape)
      return bad_input("input '{}': the file has {}, the model expects {}{}", value.name,
                       ir::to_string(first->type), ir::to_string(value.type),
                       how_to_fit(first->type.shape, value.type.shape));
    if (first->type.dtype != value.type.dtype) {
      const bool refused = ir::bits(first->type.dtype) % 8 != 0;
      if (refused)
        return bad_input("input '{}': {} cannot be cast", value.name, ir::name(first->type.dtype));
      log::warn("input '{}': {} in {} is cast to {}", value.name, ir::name(first->type.dtype),
                path_, ir::name(value.type.dtype));
    }
    for (const Archive& archive : archives_) {
      PLIMSOLL_TRY(Column column, column_of(archive, value));
      input.columns.push_back(std::move(column));
      if (input.whole) break;
    }
    inputs_.push_back(std::move(input));
  }
  warn_of_others(graph);
  return {};
}

void Dataset::warn_of_others(const ir::Graph& graph) const {
  for (const store::NpzEntry& entry : archives_.front().file->entries()) {
    const bool read = std::ranges::any_of(
        inputs_, [&](const Input& input) { return graph.value(input.value).name == entry.name; });
    if (!read) log::warn("{}: '{}' is no input of the model: not used", path_, entry.name);
  }
}

std::int64_t Dataset::example_of(std::int64_t step, std::int64_t row) const {
  const std::int64_t k = step * batch_ + row;
  if (!seed_) return std::min(k, examples_ - 1);
  const auto epoch = static_cast<std::uint64_t>(k / examples_);
  return shuffled(k % examples_, examples_, mix64(*seed_) + epoch);
}

std::size_t Dataset::archive_of(std::int64_t example) const {
  const auto after = std::upper_bound(
      archives_.begin(), archives_.end(), example,
      [](std::int64_t wanted, const Archive& archive) { return wanted < archive.first; });
  return static_cast<std::size_t>(after - archives_.begin()) - 1;
}

std::string Dataset::name_of(std::int64_t example) const {
  const Archive& archive = archives_[archive_of(example)];
  return fmt::format("{}, example {}", archive.path, example - archive.first);
}

// Rows [from, from + rows) of the array become rows [to, ...) of the input.
Status Dataset::write(const ir::Value& value, const Column& column, std::int64_t from,
                      std::int64_t to, std::int64_t rows, std::span<std::byte> memory) const {
  const std::int64_t row = row_elements(value.type.shape);
  const std::int64_t width = ir::bits(column.type.dtype) / 8;
  const std::int64_t count = rows * row;
  const bool same = column.type.dtype == value.type.dtype;
  for (std::int64_t at = 0; at < count;) {
    const std::int64_t now = same ? count : std::min(kCastPiece, count - at);
    const auto bytes = column.elements.subspan(static_cast<std::size_t>((from * row + at) * width),
                                               static_cast<std::size_t>(now * width));
    if (same) {
      place_row_major(value.type, to * row + at, bytes, memory);
    } else {
      auto made = cast_elements(column.type.dtype, value.type.dtype, bytes, now);
      if (!made) return forward(made, fmt::format("input '{}'", value.name));
      place_row_major(value.type, to * row + at, *made, memory);
    }
    at += now;
  }
  return {};
}

Status Dataset::place(Executor& executor, const Input& input, std::int64_t step) {
  const ir::Value& value = executor.graph().value(input.value);
  return executor.write(input.value, [&](std::span<std::byte> memory) -> Status {
    if (value.type.layout.block_count > 0) std::memset(memory.data(), 0, memory.size());
    if (input.whole) {
      const std::int64_t rows = value.type.shape.rank() == 0 ? 1 : value.type.shape[0];
      return write(value, input.columns.front(), 0, 0, rows, memory);
    }
    for (std::int64_t row = 0; row < batch_; ++row) {
      const std::int64_t example = example_of(step, row);
      const std::size_t archive = archive_of(example);
      const Status written =
          write(value, input.columns[archive], example - archives_[archive].first, row, 1, memory);
      if (!written) return forward(written, name_of(example));
    }
    return {};
  });
}

Status Dataset::feed(Executor& executor, std::int64_t step) {
  for (const Input& input : inputs_) PLIMSOLL_RETURN_IF_ERROR(place(executor, input, step));
  for (const IndexRange& range : ranges_) {
    const ir::Value& value = executor.graph().value(range.input);
    decltype(find_bad_index(value, {}, range)) bad;
    PLIMSOLL_RETURN_IF_ERROR(
        executor.read(range.input, [&](std::span<const std::byte> memory) -> Status {
          bad = find_bad_index(value, memory, range);
          return {};
        }));
    if (!bad) continue;
    const std::int64_t row =
        bad->element / std::max<std::int64_t>(1, row_elements(value.type.shape));
    const std::string file = batch_ > 0 ? name_of(example_of(step, row)) : path_;
    return bad_input("{}: {}", file, describe(value, range, *bad));
  }
  return {};
}

}  // namespace plimsoll::runtime
