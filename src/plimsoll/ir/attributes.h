// The constants of one use of an operator: strides, axes, epsilon. A short sorted list of named
// values; operators ask for one with the default they document.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace plimsoll::ir {

using Ints = std::vector<std::int64_t>;
using Reals = std::vector<double>;
using Attribute = std::variant<std::int64_t, double, std::string, Ints, Reals>;

class Attributes {
 public:
  using Entry = std::pair<std::string, Attribute>;

  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries) {
    for (const Entry& entry : entries) set(entry.first, entry.second);
  }

  void set(std::string_view name, Attribute value);
  // Null when absent.
  const Attribute* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }

  // The value, or `otherwise` when absent. An integer reads as a real; any other mismatch of type
  // reads as absent (the registry's verify refuses it first).
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  double real(std::string_view name, double otherwise) const;
  std::string text(std::string_view name, std::string_view otherwise) const;
  Ints integers(std::string_view name, const Ints& otherwise = {}) const;

  const std::vector<Entry>& entries() const { return entries_; }
  bool operator==(const Attributes&) const = default;

 private:
  std::vector<Entry> entries_;  // sorted by name
};

// "{axis=-1, eps=1e-05, pads=[3,3,3,3], mode="edge"}", names in order; reals always have a point or
// an exponent, so that the text reads back with the same types. A name that is no word is quoted.
// Empty attributes give "". `number` may write integers another way; it is asked in the order of
// the text.
using NumberText = std::function<std::string(std::int64_t)>;
std::string to_string(const Attributes& attributes, const NumberText& number = {});

// A string in quotes with \" \\ \n and \xNN escapes: any bytes survive a round trip, and what comes
// out is UTF-8.
std::string quoted(std::string_view text);
// Letters, digits, underscores and dots, not beginning with a digit: what the text form writes
// bare.
bool is_word(std::string_view text);
// The shortest decimal that reads back as the same double, with a point or an exponent.
std::string real_text(double value);

}  // namespace plimsoll::ir
