#include "plimsoll/pack/formats/csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>

namespace plimsoll::pack {
namespace {

enum Column { kId, kLower, kUpper, kSize, kAlignment, kGaps, kOffset, kHint, kColumns };
constexpr std::array<std::string_view, kColumns> kNames = {"id",        "lower", "upper",  "size",
                                                           "alignment", "gaps",  "offset", "hint"};

// MiniMalloc's other titles. The values of an `end` column are of the last moment that counts, one
// before ours, and so are the ends of gaps then.
struct OtherTitle {
  std::string_view title;
  Column column;
  bool inclusive = false;
};
constexpr std::array<OtherTitle, 5> kOtherTitles = {{{"start", kLower},
                                                     {"begin", kLower},
                                                     {"end", kUpper, true},
                                                     {"buffer", kId},
                                                     {"buffer_id", kId}}};

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string_view excerpt(std::string_view text) {
  return text.substr(0, 40);
}

// Cuts the text up to `separator` off the front.
std::string_view next_field(std::string_view& rest, char separator) {
  const std::size_t end = rest.find(separator);
  const std::string_view field = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return field;
}

class CsvReader {
 public:
  explicit CsvReader(std::string_view text) : text_(text), rest_(text) {
    if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);
  }

  Result<Problem> read() {
    PLIMSOLL_RETURN_IF_ERROR(read_header());
    while (!rest_.empty()) {
      ++line_;
      const std::string_view row = trimmed(next_field(rest_, '\n'));
      if (row.empty()) continue;
      PLIMSOLL_RETURN_IF_ERROR(read_row(row));
    }
    PLIMSOLL_RETURN_IF_ERROR(settle_names());
    return std::move(problem_);
  }

  // The error of a verified problem, with the place in the file in front.
  tl::unexpected<Error> locate(const Status& failed, const Culprit& culprit) const {
    if (culprit.kind != Culprit::Kind::kBuffer) return forward(failed);
    const std::string_view title = culprit.field == "fixed" ? "offset" : culprit.field;
    const auto column =
        static_cast<Column>(std::find(kNames.begin(), kNames.end(), title) - kNames.begin());
    return forward(failed, place_in_file(culprit.index, column));
  }

  // Lines are not remembered while reading ten million of them: the text is counted again.
  std::string place_in_file(std::size_t buffer, Column column) const {
    std::string_view rest = text_;
    std::size_t rows = 0;  // with the header
    std::size_t line = 0;
    while (rows < buffer + 2 && !rest.empty()) {
      ++line;
      rows += !trimmed(next_field(rest, '\n')).empty();
    }
    if (column >= kColumns || position_[column] < 0) return fmt::format("line {}", line);
    return fmt::format("line {}, column {} ({})", line, position_[column] + 1, titles_[column]);
  }

 private:
  Status read_header() {
    position_.fill(-1);
    std::string_view header;
    while (header.empty() && !rest_.empty()) {
      ++line_;
      header = trimmed(next_field(rest_, '\n'));
    }
    if (header.empty())
      return bad_input("line 1, column 1: the file is empty, expected id,lower,upper,size");
    for (int k = 0; !header.empty(); ++k) {
      const std::string_view title = trimmed(next_field(header, ','));
      const Column column = column_titled(title);
      if (column == kColumns)
        return bad_input(
            "line {}, column {}: unknown column '{}'; there are id, lower, upper, size, alignment, "
            "gaps, offset and hint{}",
            line_, k + 1, excerpt(title),
            title.find_first_of(";\t") == std::string_view::npos
                ? ""
                : "; columns are separated by commas");
      if (position_[column] >= 0)
        return bad_input(
            "line {}, column {}: column '{}' is there twice{}", line_, k + 1, title,
            titles_[column] == title ? "" : fmt::format(", as '{}' before", titles_[column]));
      position_[column] = k;
      titles_[column] = title;
      columns_ = k + 1;
    }
    for (const Column column : {kId, kLower, kUpper, kSize}) {
      if (position_[column] < 0)
        return bad_input("line {}, column {}: column '{}' is missing", line_, columns_ + 1,
                         kNames[column]);
    }
    return {};
  }

  Column column_titled(std::string_view title) {
    const auto own = std::find(kNames.begin(), kNames.end(), title);
    if (own != kNames.end()) return static_cast<Column>(own - kNames.begin());
    for (const OtherTitle& other : kOtherTitles) {
      if (other.title != title) continue;
      beyond_end_ = other.inclusive ? 1 : beyond_end_;
      return other.column;
    }
    return kColumns;
  }

  Status read_row(std::string_view row) {
    std::array<std::string_view, kColumns> cells;
    int count = 0;
    const bool trailing = row.back() == ',';
    for (std::string_view left = row; !left.empty() && count < columns_; ++count) {
      cells[static_cast<std::size_t>(count)] = trimmed(next_field(left, ','));
      if (count + 1 == columns_ && !left.empty()) ++count;
    }
    if (trailing && count < columns_) ++count;
    if (count != columns_)
      return bad_input("line {}, column {}: {} cells, expected {}", line_,
                       std::min(count, columns_ + 1), count > columns_ ? "more" : "fewer",
                       columns_);
    const auto cell = [&](Column column) {
      const int at = position_[column];
      return at < 0 ? std::string_view() : cells[static_cast<std::size_t>(at)];
    };
    Buffer buffer;
    PLIMSOLL_RETURN_IF_ERROR(number(cell(kLower), kLower, buffer.lifetime.begin));
    PLIMSOLL_RETURN_IF_ERROR(number(cell(kUpper), kUpper, buffer.lifetime.end));
    PLIMSOLL_RETURN_IF_ERROR(number(cell(kSize), kSize, buffer.size.value));
    if (!cell(kAlignment).empty())
      PLIMSOLL_RETURN_IF_ERROR(number(cell(kAlignment), kAlignment, buffer.alignment));
    PLIMSOLL_RETURN_IF_ERROR(place(cell(kOffset), kOffset, buffer.fixed));
    PLIMSOLL_RETURN_IF_ERROR(place(cell(kHint), kHint, buffer.hint));
    PLIMSOLL_RETURN_IF_ERROR(read_gaps(cell(kGaps)));
    if (buffer.size.value < 0) return bad_cell(kSize, cell(kSize), "is negative");
    if (buffer.alignment < 1) return bad_cell(kAlignment, cell(kAlignment), "is not positive");
    buffer.lifetime.end += beyond_end_;
    if (buffer.lifetime.end < buffer.lifetime.begin)
      return bad_cell(kUpper, cell(kUpper), "is before the lower end");
    add_name(cell(kId));
    problem_.buffers.push_back(buffer);
    return {};
  }

  tl::unexpected<Error> bad_cell(Column column, std::string_view text,
                                 std::string_view what) const {
    return bad_input("line {}, column {} ({}): '{}' {}", line_, position_[column] + 1,
                     titles_[column], excerpt(text), what);
  }

  Status number(std::string_view text, Column column, std::int64_t& out) const {
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (problem == std::errc::result_out_of_range) return bad_cell(column, text, "is too large");
    if (problem != std::errc() || end != text.data() + text.size())
      return bad_cell(column, text, "is not a whole number");
    if (out > kLargest || out < -kLargest) return bad_cell(column, text, "is above 2^62");
    return {};
  }

  Status place(std::string_view text, Column column, std::optional<Offset>& out) const {
    if (text.empty() || text == "-1") return {};
    std::int64_t value = 0;
    PLIMSOLL_RETURN_IF_ERROR(number(text, column, value));
    if (value < 0) return bad_cell(column, text, "is negative");
    out = Offset(value);
    return {};
  }

  Status read_gaps(std::string_view text) {
    while (!(text = trimmed(text)).empty()) {
      std::string_view word = next_field(text, ' ');
      Gap gap{BufferId(problem_.size()), {}, {}};
      std::string_view window = word;
      const char between = word.find('@') == std::string_view::npos ? ':' : '@';
      const std::string_view time = next_field(window, between);
      PLIMSOLL_RETURN_IF_ERROR(range(time, '-', word, gap.time));
      gap.time.end += beyond_end_;
      if (time.size() != word.size())
        PLIMSOLL_RETURN_IF_ERROR(range(window, between == '@' ? ':' : '-', word, gap.window));
      problem_.gaps.push_back(gap);
    }
    return {};
  }

  Status range(std::string_view text, char between, std::string_view word,
               Interval<std::int64_t>& out) const {
    const std::size_t middle = text.find(between, 1);
    if (text.empty() || middle == std::string_view::npos)
      return bad_cell(kGaps, word,
                      "is no gap; expected from-to, from-to:lo-hi or MiniMalloc's from-to@lo:hi");
    PLIMSOLL_RETURN_IF_ERROR(number(text.substr(0, middle), kGaps, out.begin));
    return number(text.substr(middle + 1), kGaps, out.end);
  }

  // Ids that are just the row number need no memory of their own.
  void add_name(std::string_view id) {
    const std::size_t row = problem_.size();
    if (problem_.names.empty()) {
      std::array<char, 24> digits;
      const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), row).ptr;
      if (id == std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data())))
        return;
      for (std::size_t i = 0; i < row; ++i) problem_.names.push_back(std::to_string(i));
    }
    problem_.names.emplace_back(id);
  }

  Status settle_names() {
    if (problem_.names.size() < problem_.size() && !problem_.names.empty())
      return bad_input("ids are inconsistent");
    std::unordered_map<std::string_view, std::size_t> seen;
    seen.reserve(problem_.names.size());
    for (std::size_t i = 0; i < problem_.names.size(); ++i) {
      if (problem_.names[i].empty()) return bad_input("{}: the id is empty", place_in_file(i, kId));
      const auto [other, fresh] = seen.emplace(problem_.names[i], i);
      if (!fresh)
        return bad_input("{}: id '{}' is that of {} already", place_in_file(i, kId),
                         excerpt(problem_.names[i]), place_in_file(other->second, kColumns));
    }
    return {};
  }

  const std::string_view text_;
  std::string_view rest_;
  std::size_t line_ = 0;
  int columns_ = 0;
  std::array<int, kColumns> position_{};
  std::array<std::string_view, kColumns> titles_ = kNames;  // as the file spells them
  std::int64_t beyond_end_ = 0;                             // 1: ends in the file are inclusive
  Problem problem_;
};

void append(std::string& out, std::int64_t value) {
  std::array<char, 24> digits;
  out.append(digits.data(), std::to_chars(digits.data(), digits.data() + 24, value).ptr);
}

void append_gaps(std::string& out, const Problem& problem, std::size_t i, std::size_t& gap) {
  for (bool first = true; gap < problem.gaps.size() && problem.gaps[gap].buffer.index() == i;
       ++gap) {
    const Gap& away = problem.gaps[gap];
    if (!first) out += ' ';
    first = false;
    append(out, away.time.begin);
    out += '-';
    append(out, away.time.end);
    if (away.window.empty()) continue;
    out += ':';
    append(out, away.window.begin);
    out += '-';
    append(out, away.window.end);
  }
}

}  // namespace

Result<Problem> read_csv(std::string_view text) {
  CsvReader reader(text);
  PLIMSOLL_TRY(Problem problem, reader.read());
  Culprit culprit;
  if (const Status verified = verify(problem, &culprit); !verified)
    return reader.locate(verified, culprit);
  return problem;
}

std::string write_csv(const Problem& problem, const Packing* packing) {
  const auto any = [&](auto test) {
    return std::any_of(problem.buffers.begin(), problem.buffers.end(), test);
  };
  const bool alignment = any([](const Buffer& b) { return b.alignment != 1; });
  const bool hint = any([](const Buffer& b) { return b.hint.has_value(); });
  const bool offset = packing || any([](const Buffer& b) { return b.fixed.has_value(); });
  std::string out = "id,lower,upper,size";
  if (alignment) out += ",alignment";
  if (!problem.gaps.empty()) out += ",gaps";
  if (hint) out += ",hint";
  if (offset) out += ",offset";
  out += '\n';
  std::size_t gap = 0;
  for (std::size_t i = 0; i < problem.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (problem.names.empty()) {
      append(out, static_cast<std::int64_t>(i));
    } else {
      out += problem.names[i];
    }
    for (const std::int64_t value :
         {buffer.lifetime.begin, buffer.lifetime.end, buffer.size.value}) {
      out += ',';
      append(out, value);
    }
    if (alignment) out += ',', append(out, buffer.alignment);
    if (!problem.gaps.empty()) out += ',', append_gaps(out, problem, i, gap);
    if (hint) out += ',';
    if (hint && buffer.hint) append(out, buffer.hint->value);
    if (offset) out += ',';
    if (packing) {
      append(out, packing->offsets[i].value);
    } else if (buffer.fixed) {
      append(out, buffer.fixed->value);
    }
    out += '\n';
  }
  return out;
}

Result<Packing> read_packing_csv(const Problem& problem, std::string_view text) {
  CsvReader reader(text);
  PLIMSOLL_TRY(const Problem answer, reader.read());
  std::unordered_map<std::string, std::size_t> rows;
  rows.reserve(answer.size());
  for (std::size_t i = 0; i < answer.size(); ++i) rows.emplace(answer.name(BufferId(i)), i);
  Packing packing;
  for (std::size_t i = 0; i < problem.size(); ++i) {
    const auto row = rows.find(problem.name(BufferId(i)));
    if (row == rows.end())
      return bad_input("none of its {} lines is for buffer '{}'", answer.size(),
                       problem.name(BufferId(i)));
    const auto& place = answer.buffers[row->second].fixed;
    if (!place)
      return bad_input("{}: buffer '{}' has no offset", reader.place_in_file(row->second, kOffset),
                       row->first);
    packing.offsets.push_back(*place);
    rows.erase(row);
  }
  if (!rows.empty()) {
    const auto first = std::min_element(
        rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    return bad_input("{}: buffer '{}' is not in the problem",
                     reader.place_in_file(first->second, kId), first->first);
  }
  packing.status = PackStatus::kFeasible;
  return packing;
}

Status take_hints_csv(Problem& problem, std::string_view text) {
  PLIMSOLL_TRY(const Problem old, CsvReader(text).read());
  std::unordered_map<std::string, Offset> places;
  for (std::size_t i = 0; i < old.size(); ++i) {
    if (old.buffers[i].fixed) places.emplace(old.name(BufferId(i)), *old.buffers[i].fixed);
  }
  for (std::size_t i = 0; i < problem.size(); ++i) {
    const auto place = places.find(problem.name(BufferId(i)));
    if (place != places.end()) problem.buffers[i].hint = place->second;
  }
  return {};
}

}  // namespace plimsoll::pack
