#include "plimsoll/cli/command.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

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

Option& Option::between(double least, double most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option& Option::between(int least, int most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option& Option::not_negative() {
  option_->check(CLI::NonNegativeNumber);
  return *this;
}

Option& Option::show_default() {
  option_->capture_default_str();
  return *this;
}

template <typename T>
Option Command::add_option(const char* names, T& variable, const char* help) {
  return Option(*app_->add_option(names, variable, help));
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
  return app_->count(name) > 0;
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
