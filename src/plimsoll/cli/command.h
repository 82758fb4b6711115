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
#include <utility>
#include <vector>

#include "plimsoll/base/result.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace plimsoll::cli {

// A word as a shell reads it back: in quotes where it needs them.
std::string shell_word(const std::string& word);

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

  // The name of a file to read; "-" is standard input.
  Option add_input(const char* names, std::string& variable, const char* help);
  Option add_inputs(const char* names, std::vector<std::string>& variable, const char* help);

  bool has(const std::string& name) const;  // whether the user wrote it
  // What the user wrote, by the names that help shows, without arguments that have no name.
  std::vector<std::string> given() const;
  // The same words for another verb, as far as it has the options: "plimsoll run mlp --batch 4".
  // What `instead` names stands in it once, with that value; an empty value leaves it out.
  std::string words_for(const char* verb,
                        const std::vector<std::pair<std::string, std::string>>& instead) const;

  // What to do after parsing and before the work of the verb.
  void before(std::function<Status()> work) { before_.push_back(std::move(work)); }
  const std::vector<std::function<Status()>>& before() const { return before_; }

  // The JSON object of an answer that may be bad news. run_command_line prints it when the verb is
  // done, with `error` and `code` in it if the verb returned an error: one object, whatever
  // happened. A verb whose answer is never followed by an error may print its object itself.
  void answer(std::string json) {
    while (json.ends_with('\n')) json.pop_back();
    answer_ = std::move(json);
  }
  const std::string& answer() const { return answer_; }

  // Files among the arguments that have no name: what the verb reads.
  std::vector<std::string> arguments() const;

  const CLI::App& app() const { return *app_; }
  const std::vector<std::string*>& outputs() const { return outputs_; }
  std::vector<std::string*> inputs() const;

 private:
  CLI::App* app_;
  std::vector<std::string*> outputs_;
  std::vector<std::string*> inputs_;
  std::vector<std::vector<std::string>*> input_lists_;
  std::vector<std::function<Status()>> before_;
  std::string answer_;
};

}  // namespace plimsoll::cli
