#include "plimsoll/ir/attributes.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "plimsoll/base/utf8.h"

namespace plimsoll::ir {
namespace {

auto lower_bound(auto& entries, std::string_view name) {
  return std::lower_bound(
      entries.begin(), entries.end(), name,
      [](const Attributes::Entry& entry, std::string_view key) { return entry.first < key; });
}

struct AttributeText {
  const NumberText& number;

  std::string operator()(std::int64_t value) const {
    return number ? number(value) : std::to_string(value);
  }
  std::string operator()(double value) const { return real_text(value); }
  std::string operator()(const std::string& value) const { return quoted(value); }
  std::string operator()(const Ints& values) const {
    std::string out = "[";
    for (const std::int64_t value : values) out += (out.size() > 1 ? "," : "") + (*this)(value);
    return out + "]";
  }
  // An empty list of reals would read back as a list of integers, so it is marked.
  std::string operator()(const Reals& values) const {
    std::string out = "r[";
    for (const double value : values) out += (out.size() > 2 ? "," : "") + real_text(value);
    return out + "]";
  }
};

}  // namespace

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string out = fmt::format("{}", value);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

bool is_word(std::string_view text) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto other = [](char c) { return (c >= '0' && c <= '9') || c == '.'; };
  if (text.empty() || !letter(text.front())) return false;
  return std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || other(c); });
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const std::size_t bytes = utf8_character(text.substr(at));
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (bytes == 0 || static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += text.substr(at, bytes);
    }
    at += std::max<std::size_t>(bytes, 1);
  }
  return out + "\"";
}

std::string to_string(const Attributes& attributes, const NumberText& number) {
  std::string out;
  for (const auto& [name, value] : attributes.entries()) {
    out += fmt::format("{}{}={}", out.empty() ? "{" : ", ", is_word(name) ? name : quoted(name),
                       std::visit(AttributeText{number}, value));
  }
  return out.empty() ? out : out + "}";
}

void Attributes::set(std::string_view name, Attribute value) {
  const auto place = lower_bound(entries_, name);
  if (place != entries_.end() && place->first == name) {
    place->second = std::move(value);
  } else {
    entries_.emplace(place, std::string(name), std::move(value));
  }
}

const Attribute* Attributes::find(std::string_view name) const {
  const auto place = lower_bound(entries_, name);
  return place != entries_.end() && place->first == name ? &place->second : nullptr;
}

std::int64_t Attributes::integer(std::string_view name, std::int64_t otherwise) const {
  const Attribute* found = find(name);
  const auto* value = found ? std::get_if<std::int64_t>(found) : nullptr;
  return value ? *value : otherwise;
}

double Attributes::real(std::string_view name, double otherwise) const {
  const Attribute* found = find(name);
  if (!found) return otherwise;
  if (const auto* value = std::get_if<double>(found)) return *value;
  if (const auto* value = std::get_if<std::int64_t>(found)) return static_cast<double>(*value);
  return otherwise;
}

std::string Attributes::text(std::string_view name, std::string_view otherwise) const {
  const Attribute* found = find(name);
  const auto* value = found ? std::get_if<std::string>(found) : nullptr;
  return value ? *value : std::string(otherwise);
}

Ints Attributes::integers(std::string_view name, const Ints& otherwise) const {
  const Attribute* found = find(name);
  const auto* value = found ? std::get_if<Ints>(found) : nullptr;
  return value ? *value : otherwise;
}

}  // namespace plimsoll::ir
