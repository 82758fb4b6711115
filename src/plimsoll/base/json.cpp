#include "plimsoll/base/json.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include <nlohmann/json.hpp>

#include "plimsoll/base/json_position.h"
#include "plimsoll/base/utf8.h"

namespace plimsoll {
namespace {

using nlohmann::json;

// Characters of a text that tell how far the lexer has come: events have no positions of their own.
class Cursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor(const char* at, const char** reached) : at_(at), reached_(reached) {}
  reference operator*() const { return *at_; }
  Cursor& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  bool operator==(const Cursor& other) const { return at_ == other.at_; }
  bool operator!=(const Cursor& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** reached_;
};

// Takes the lexer's events and builds the tree, within limits. A handler that returns false ends
// the parse; error_ then says why.
class TreeBuilder {
 public:
  TreeBuilder(std::string_view text, const JsonLimits& limits, std::int64_t first_line)
      : text_(text), limits_(limits), first_line_(first_line) {}

  Result<json> build() {
    Cursor first(text_.data(), &reached_);
    Cursor last(text_.data() + text_.size(), &reached_);
    if (json::sax_parse(first, last, this)) return std::move(root_);
    return bad_input("{}", error_);
  }

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(std::int64_t value) { return add(value); }
  bool number_unsigned(std::uint64_t value) { return add(value); }
  bool number_float(double value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(json::binary_t&) { return refuse(1, "binary data"); }
  bool start_object(std::size_t) { return open(json::object()); }
  bool start_array(std::size_t) { return open(json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    if (!count()) return false;
    const auto [place, is_new] =
        open_.back()->get_ref<json::object_t&>().try_emplace(std::move(name));
    if (!is_new)
      return refuse(place->first.size() + 2, "the key '{}' is there twice", excerpt(place->first));
    member_ = &place->second;
    return true;
  }

  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception& why) {
    const std::string_view what = why.what();
    if (what.find("out_of_range.406") != std::string_view::npos) {
      return refuse_at(position - std::min(position, token.size()), "the number {} is too large",
                       excerpt(token));
    }
    const bool bad_text = what.find("ill-formed UTF-8") != std::string_view::npos;
    return refuse_at(position > 0 ? position - 1 : 0, "{}",
                     bad_text ? "this is not UTF-8, which JSON must be" : "this is not valid JSON");
  }

 private:
  template <typename Value>
  bool add(Value&& value) {
    return count() && put(json(std::forward<Value>(value))) != nullptr;
  }

  json* put(json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    json& parent = *open_.back();
    if (parent.is_array()) {
      auto& list = parent.get_ref<json::array_t&>();
      list.push_back(std::move(value));
      return &list.back();
    }
    *member_ = std::move(value);
    return member_;
  }

  bool open(json empty) {
    if (!count()) return false;
    if (open_.size() >= static_cast<std::size_t>(limits_.depth))
      return refuse(1, "nested deeper than {} levels", limits_.depth);
    // Stays valid while it is open: only the innermost list grows.
    open_.push_back(put(std::move(empty)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  bool count() {
    if (++values_ <= limits_.values) return true;
    return refuse(1, "more than {} values", limits_.values);
  }

  // What was wrong ends where the lexer is, and has so many bytes.
  template <typename... Args>
  bool refuse(std::size_t bytes, fmt::format_string<Args...> format, Args&&... args) {
    const auto end = static_cast<std::size_t>(reached_ - text_.data());
    return refuse_at(end - std::min(end, bytes), format, std::forward<Args>(args)...);
  }

  template <typename... Args>
  bool refuse_at(std::size_t at, fmt::format_string<Args...> format, Args&&... args) {
    error_ = fmt::format("{}: {}", line_and_column(text_, at, first_line_),
                         fmt::format(format, std::forward<Args>(args)...));
    return false;
  }

  std::string_view text_;
  const JsonLimits& limits_;
  std::int64_t first_line_;
  const char* reached_ = text_.data();
  json root_;
  std::vector<json*> open_;
  json* member_ = nullptr;  // the value of the key read last
  std::size_t values_ = 0;
  std::string error_;
};

template <typename Tree>
std::string tree_text(const Tree& tree, int indent) {
  return tree.dump(indent, ' ', false, Tree::error_handler_t::replace);
}

}  // namespace

Result<json> parse_json(std::string_view text, const JsonLimits& limits, std::int64_t first_line) {
  if (text.size() > limits.bytes) {
    return bad_input("{}: {} bytes are more than the {} that are read",
                     line_and_column(text, 0, first_line), text.size(), limits.bytes);
  }
  // The lexer takes a NUL byte for the end of the text.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return bad_input("{}: this is not valid JSON", line_and_column(text, nul, first_line));
  }
  return TreeBuilder(text, limits, first_line).build();
}

std::string json_text(const nlohmann::json& tree, int indent) {
  return tree_text(tree, indent);
}
std::string json_text(const nlohmann::ordered_json& tree, int indent) {
  return tree_text(tree, indent);
}

}  // namespace plimsoll
