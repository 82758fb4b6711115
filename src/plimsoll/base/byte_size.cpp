#include "plimsoll/base/byte_size.h"

#include <array>
#include <charconv>
#include <cmath>

namespace plimsoll {
namespace {

struct Number {
  double value = 0;
  std::string_view unit;
};

std::optional<Number> split_number(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  Number out;
  auto [rest, problem] =
      std::from_chars(text.data(), text.data() + text.size(), out.value, std::chars_format::fixed);
  if (problem != std::errc() || !std::isfinite(out.value) || out.value < 0) return std::nullopt;
  out.unit = text.substr(static_cast<std::size_t>(rest - text.data()));
  while (!out.unit.empty() && out.unit.front() == ' ') out.unit.remove_prefix(1);
  return out;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return out;
}

std::optional<double> unit_bytes(std::string_view unit) {
  const std::string name = lower(unit);
  if (name.empty() || name == "b") return 1.0;
  static constexpr std::string_view kPrefixes = "kmgtp";
  const std::size_t power = kPrefixes.find(name[0]);
  if (power == std::string_view::npos) return std::nullopt;
  const std::string_view rest = std::string_view(name).substr(1);
  if (rest.empty() || rest == "ib" || rest == "i") return std::pow(1024.0, power + 1.0);
  if (rest == "b") return std::pow(1000.0, power + 1.0);
  return std::nullopt;
}

}  // namespace

bool is_percentage(std::string_view text) {
  const auto number = split_number(text);
  return number && number->unit == "%";
}

Result<Bytes> parse_byte_size(std::string_view text, std::optional<Bytes> whole) {
  const auto number = split_number(text);
  const auto complain = [&] {
    return fail(ErrorCode::kUsage,
                "size '{}': expected a number with a unit, such as 1.5GiB, 800MB, 123456{}", text,
                whole ? " or 40%" : "");
  };
  if (!number) return complain();
  double bytes = 0;
  if (number->unit == "%") {
    if (!whole) {
      return fail(ErrorCode::kUsage,
                  "size '{}': a percentage has no meaning here; give bytes, such as 1.5GiB", text);
    }
    bytes = number->value / 100.0 * static_cast<double>(whole->value);
  } else {
    const auto unit = unit_bytes(number->unit);
    if (!unit) return complain();
    bytes = number->value * *unit;
  }
  if (bytes > 9.2e18) return fail(ErrorCode::kUsage, "size '{}': larger than 2^63 bytes", text);
  if (bytes > 0 && bytes < 1)
    return fail(ErrorCode::kUsage, "size '{}': less than one byte{}", text,
                whole && number->unit.empty()
                    ? fmt::format("; a share is written {:g}%", 100 * number->value)
                    : "");
  return Bytes(static_cast<std::int64_t>(bytes));
}

Result<double> parse_percentage(std::string_view text) {
  const auto number = split_number(text);
  if (!number || number->unit != "%")
    return fail(ErrorCode::kUsage, "'{}': expected a percentage, such as 5%", text);
  return number->value / 100;
}

std::string human(Bytes bytes) {
  static constexpr std::array<const char*, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double amount = static_cast<double>(bytes.value);
  std::size_t unit = 0;
  while (std::abs(amount) >= 1024 && unit + 1 < kUnits.size()) {
    amount /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes.value);
  return fmt::format("{:.{}f} {}", amount, std::abs(amount) >= 100 ? 1 : 2, kUnits[unit]);
}

std::string grouped(std::int64_t number) {
  std::string digits = fmt::format("{}", number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t place = digits.size(); place > first + 3;) {
    place -= 3;
    digits.insert(place, ",");
  }
  return digits;
}

std::string human_seconds(double seconds) {
  if (!std::isfinite(seconds)) return "an unknown time";
  if (seconds < 0) return "-" + human_seconds(-seconds);
  if (seconds == 0) return "0 s";
  if (seconds >= 1e7) return grouped(static_cast<std::int64_t>(std::min(seconds, 9e18)));
  struct Unit {
    double in_a_second;
    const char* name;
  };
  // 999.6 µs are 1.00 ms: a unit is left once its three digits would round to a thousand.
  constexpr std::array<Unit, 2> kSmall = {Unit{1e6, "µs"}, Unit{1e3, "ms"}};
  for (const Unit& unit : kSmall) {
    const double amount = seconds * unit.in_a_second;
    if (amount < 0.001) return fmt::format("0 {}", unit.name);
    if (amount < 999.5)
      return fmt::format("{:.{}f} {}", amount,
                         amount < 9.995   ? 2
                         : amount < 99.95 ? 1
                                          : 0,
                         unit.name);
  }
  return fmt::format("{:.{}f} s", seconds, seconds < 9.995 ? 2 : seconds < 99.95 ? 1 : 0);
}

Result<double> parse_seconds(std::string_view text) {
  const auto number = split_number(text);
  if (number) {
    const std::string unit = lower(number->unit);
    if (unit.empty() || unit == "s") return number->value;
    if (unit == "ms") return number->value * 1e-3;
    if (unit == "us") return number->value * 1e-6;
    if (unit == "m" || unit == "min") return number->value * 60;
    if (unit == "h") return number->value * 3600;
  }
  return fail(ErrorCode::kUsage, "time '{}': expected something like 10s, 250ms or 2m", text);
}

std::string named_bytes(const std::vector<std::string>& names, const std::vector<Bytes>& bytes) {
  constexpr std::size_t kMostNames = 6;
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < kMostNames; ++i)
    out += fmt::format("{}{} ({})", i == 0 ? "" : ", ", names[i], human(bytes[i]));
  if (names.size() > kMostNames) out += fmt::format(" and {} more", names.size() - kMostNames);
  return out;
}

std::string beside(Bytes whole, const std::vector<Bytes>& named) {
  for (const Bytes bytes : named) whole -= bytes;
  return whole.value > 0 ? fmt::format(", beside {} of weights, state and scratch", human(whole))
                         : "";
}

}  // namespace plimsoll
