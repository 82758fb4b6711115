#include "plimsoll/cli/command.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include "plimsoll/api/plan_request.h"

namespace plimsoll::cli {

Option& Option::type_name(const char* name) {
  option_->type_name(name);
  return *this;
}

Option& Option::group(const char* heading) {
  option_->group(heading);
  return *this;
}

Option& Option::description(const char* text) {
  option_->description(text);
  return *this;
}

Option& Option::required(bool is) {
  option_->required(is);
  return *this;
}

Option& Option::excludes(Option other) {
  option_->excludes(other.option_);
  return *this;
}

namespace {

template <typename T>
void check_range(CLI::Option& option, T least, T most) {
  const auto refuse = [least, most](const std::string& value) -> std::string {
    double number = 0;
    if (!CLI::detail::lexical_cast(value, number)) return "";  // has an error of its own
    if (number >= static_cast<double>(least) && number <= static_cast<double>(most)) return "";
    return fmt::format("{} is out of range, expects {} to {}", value, least, most);
  };
  option.check(CLI::Validator(refuse, "", ""));
}

}  // namespace

Option& Option::between(double least, double most) {
  check_range(*option_, least, most);
  return *this;
}

Option& Option::between(int least, int most) {
  check_range(*option_, least, most);
  return *this;
}

Option& Option::not_negative() {
  const auto refuse = [](const std::string& value) -> std::string {
    double number = 0;
    if (!CLI::detail::lexical_cast(value, number) || number >= 0) return "";
    return fmt::format("{} is negative, expects at least 0", value);
  };
  option_->check(CLI::Validator(refuse, "", ""));
  return *this;
}

Option& Option::show_default() {
  option_->capture_default_str();
  return *this;
}

namespace {

// An empty value is a variable of the user's shell that is not set, not a wish for the default.
std::string refuse_empty(const std::string& value) {
  return value.empty() ? "the value is empty" : "";
}

// `--save --json`: the name was forgotten, and no file should be called like an option.
std::string refuse_option(const std::string& value) {
  if (!value.starts_with("--") || value.size() == 2) return "";
  return fmt::format("its value is missing, {} is an option", value);
}

// No option means anything by them, and ranges let a nan pass.
std::string refuse_not_finite(const std::string& value) {
  double number = 0;
  if (!CLI::detail::lexical_cast(value, number) || std::isfinite(number)) return "";
  return fmt::format("'{}' is not a finite number", value);
}

template <typename T>
std::string refuse_not_whole(const std::string& value) {
  const std::size_t first = value.starts_with('-') || value.starts_with('+') ? 1 : 0;
  if (first == value.size() || value.find_first_not_of("0123456789", first) != std::string::npos)
    return fmt::format("'{}' is not a whole number", value);
  errno = 0;
  if (std::is_same_v<T, std::uint64_t> && first == 0) {
    std::strtoull(value.c_str(), nullptr, 10);
  } else {
    std::strtoll(value.c_str(), nullptr, 10);
  }
  return errno == ERANGE ? fmt::format("{} is too large", value) : "";
}

std::string refuse_no_number(const std::string& value) {
  double number = 0;
  if (CLI::detail::lexical_cast(value, number)) return refuse_not_finite(value);
  return fmt::format("'{}' is not a number", value);
}

template <typename T, typename... Others>
constexpr bool is_one_of = (std::is_same_v<T, Others> || ...);

bool is_plain(const std::string& word) {
  constexpr std::string_view kSafe = "-_./:,=+%@~";
  return !word.empty() && std::all_of(word.begin(), word.end(), [&](unsigned char c) {
    return std::isalnum(c) != 0 || kSafe.find(static_cast<char>(c)) != std::string_view::npos;
  });
}

}  // namespace

std::string shell_word(const std::string& word) {
  if (is_plain(word)) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

template <typename T>
Option Command::add_option(const char* names, T& variable, const char* help) {
  CLI::Option* option = app_->add_option(names, variable, help);
  // An argument of a program that `exec` runs may be empty.
  if constexpr (!std::is_same_v<T, std::vector<std::string>>) {
    option->check(CLI::Validator(refuse_empty, "", ""));
    option->check(CLI::Validator(refuse_option, "", ""));
  }
  if constexpr (is_one_of<T, double, std::optional<double>>)
    option->check(CLI::Validator(refuse_no_number, "", ""));
  if constexpr (is_one_of<T, int, std::int64_t, std::uint64_t, std::optional<std::int64_t>>)
    option->check(CLI::Validator(refuse_not_whole<T>, "", ""));
  return Option(*option);
}

Option Command::add_input(const char* names, std::string& variable, const char* help) {
  inputs_.push_back(&variable);
  return add_option(names, variable, help);
}

Option Command::add_inputs(const char* names, std::vector<std::string>& variable,
                           const char* help) {
  input_lists_.push_back(&variable);
  return add_option(names, variable, help);
}

std::vector<std::string*> Command::inputs() const {
  std::vector<std::string*> out = inputs_;
  for (std::vector<std::string>* list : input_lists_) {
    for (std::string& name : *list) out.push_back(&name);
  }
  return out;
}

std::string Command::words_for(
    const char* verb, const std::vector<std::pair<std::string, std::string>>& instead) const {
  const CLI::App* other = app_->get_parent()->get_subcommand(verb);
  std::string out = fmt::format("plimsoll {}", verb);
  const auto replaced = [&](const std::string& name) {
    return std::any_of(instead.begin(), instead.end(),
                       [&](const auto& entry) { return entry.first == name; });
  };
  for (const CLI::Option* option : app_->get_options()) {
    const std::string name = option->get_positional() ? "" : "--" + option->get_lnames().front();
    const bool known = name.empty() || other->get_option_no_throw(name) != nullptr;
    if (option->count() == 0 || !known || replaced(name)) continue;
    if (option->get_items_expected_max() == 0) out += " " + name;
    for (const std::string& value : option->results()) {
      if (option->get_items_expected_max() == 0) break;
      if (name == "--lossy" && value == api::kBareLossy) {
        out += " --lossy";
        continue;
      }
      out += (name.empty() ? "" : " " + name) + " " + shell_word(value);
    }
  }
  for (const auto& [name, value] : instead) {
    if (!value.empty()) out += " " + name + " " + shell_word(value);
  }
  return out;
}

Option Command::add_output(const char* names, std::string& variable, const char* help) {
  outputs_.push_back(&variable);
  Option out = add_option(names, variable, help);
  return out.type_name("FILE");
}

Option Command::add_flag(const char* names, bool& variable, const char* help) {
  return Option(*app_->add_flag(names, variable, help));
}

Option Command::add_flag_callback(const char* names, std::function<void()> given,
                                  const char* help) {
  return Option(*app_->add_flag_callback(names, std::move(given), help));
}

bool Command::has(const std::string& name) const {
  const CLI::Option* option = app_->get_option_no_throw(name);
  return option != nullptr && option->count() > 0;
}

std::vector<std::string> Command::arguments() const {
  std::vector<std::string> out;
  for (const CLI::Option* option : app_->get_options()) {
    if (!option->get_positional()) continue;
    out.insert(out.end(), option->results().begin(), option->results().end());
  }
  return out;
}

std::vector<std::string> Command::given() const {
  std::vector<std::string> out;
  for (const CLI::Option* option : app_->get_options()) {
    if (option->count() > 0 && !option->get_positional())
      out.push_back("--" + option->get_lnames().front());
  }
  return out;
}

template Option Command::add_option(const char*, int&, const char*);
template Option Command::add_option(const char*, double&, const char*);
template Option Command::add_option(const char*, std::int64_t&, const char*);
template Option Command::add_option(const char*, std::uint64_t&, const char*);
template Option Command::add_option(const char*, std::string&, const char*);
template Option Command::add_option(const char*, std::filesystem::path&, const char*);
template Option Command::add_option(const char*, std::optional<double>&, const char*);
template Option Command::add_option(const char*, std::optional<std::int64_t>&, const char*);
template Option Command::add_option(const char*, std::vector<std::string>&, const char*);

}  // namespace plimsoll::cli
