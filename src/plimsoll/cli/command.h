// A verb's options, bound to variables by name.
//
//   command.add_option("-o,--output", options->output, "write the plan").type_name("FILE");
//   command.add_flag("--json", options->json, "one JSON object");
//
// CLI11 parses, behind this: its header takes four seconds to compile, so only command.cpp and the
// two files that read options back include it. Variables of other types than those declared here
// need a line at the end of command.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace plimsoll::cli {

class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  Option& type_name(const char* name);  // "FILE", or the words to choose from: "sgd|adam"
  Option& group(const char* heading);
  Option& description(const char* text);
  Option& required(bool is = true);
  Option& excludes(Option other);
  Option& between(double least, double most);
  Option& between(int least, int most);
  Option& not_negative();
  Option& show_default();

 private:
  CLI::Option* option_;
};

class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}

  // The variable keeps its value when the option is not given; it must outlive the parsing. An
  // older name of an option stands behind the new one, "--executor,--strategy": it still works,
  // and help, manual and completion are silent about it.
  template <typename T>
  Option add_option(const char* names, T& variable, const char* help);
  // The name of a file to write; "-" is standard output. run_command_line checks it before the work
  // begins.
  Option add_output(const char* names, std::string& variable, const char* help);
  Option add_flag(const char* names, bool& variable, const char* help);
  Option add_flag_callback(const char* names, std::function<void()> given, const char* help);

  bool has(const std::string& name) const;  // whether the user wrote it
  const CLI::App& app() const { return *app_; }
  const std::vector<std::string*>& outputs() const { return outputs_; }

 private:
  CLI::App* app_;
  std::vector<std::string*> outputs_;
};

}  // namespace plimsoll::cli
