#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <new>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "plimsoll/api/version.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/json.h"
#include "plimsoll/base/log.h"
#include "plimsoll/base/nearest_name.h"
#include "plimsoll/base/output_file.h"
#include "plimsoll/base/utf8.h"
#include "plimsoll/cli/help.h"
#include "plimsoll/cli/plan_options.h"
#include "plimsoll/cli/terminal.h"
#include "plimsoll/cli/verb.h"

namespace plimsoll::cli {
namespace {

// The object of an error: what the verb had to say before it, and `error` and `code`.
std::string error_json(const Error& error, const std::string& answer) {
  auto out = nlohmann::ordered_json::parse(answer, nullptr, false);
  if (!out.is_object()) out = nlohmann::ordered_json{{"schema", 1}};
  out["error"] = printable(error.message);
  out["code"] = static_cast<int>(error.code);
  return json_text(out, 2);
}

// Messages quote names from files, which may be any bytes.
int report(const Error& error) {
  std::fprintf(stderr, "%s %s\n", inked("plimsoll:", Ink::kRed, STDERR_FILENO).c_str(),
               printable(error.message).c_str());
  return static_cast<int>(error.code);
}

const CLI::App* chosen_verb(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? nullptr : parsed.front();
}

int show_help(const CLI::App& app) {
  const std::vector<VerbRow> table = option_table(app);
  const CLI::App* verb = chosen_verb(app);
  std::string text = program_help(table);
  for (const VerbRow& row : table) {
    if (verb != nullptr && row.name == verb->get_name()) text = verb_help(row);
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

// What other programs call it; nothing that is merely misspelt.
constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kCalledElsewhere = {{
    {"train", "run"},
    {"fit", "run"},
    {"infer", "run --infer"},
    {"show", "view"},
    {"--batch-size", "--batch"},
    {"--budget-bytes", "--budget"},
    {"--out", "-o"},
    {"--out", "--outputs"},
    {"-n", "--steps"},
    {"--precision", "--amp"},
    {"--fp16", "--amp fp16"},
    {"--bf16", "--amp bf16"},
    {"--learning-rate", "--lr"},
}};

// Of those that the verb has.
std::string called_here(std::string_view word, const std::vector<std::string>& names) {
  for (const auto& [elsewhere, here] : kCalledElsewhere) {
    if (elsewhere == word &&
        std::find(names.begin(), names.end(), here.substr(0, here.find(' '))) != names.end())
      return std::string(here);
  }
  return "";
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& names) {
  std::string meant = called_here(word, names);
  if (meant.empty()) meant = nearest_name(word, names);
  if (word.starts_with('-') && !meant.empty() && !meant.starts_with('-'))
    return fmt::format("; {} stands by itself, without an option;", meant);
  return meant.empty() ? ";" : fmt::format("; did you mean {}?", meant);
}

bool is_behind(const std::vector<std::string>& given, std::string_view option,
               const std::string& word) {
  const auto place = std::find(given.begin(), given.end(), option);
  return place != given.end() && place + 1 != given.end() && *(place + 1) == word;
}

// `--budget 8 GB`: the shell takes it for two words; "8GB", or nothing where it is none.
std::string size_in_two_words(const std::vector<std::string>& given, const std::string& word) {
  const auto place = std::find(given.begin(), given.end(), word);
  if (place == given.begin() || place == given.end() || word.empty() ||
      std::isalpha(static_cast<unsigned char>(word.front())) == 0)
    return "";
  const std::string& number = *(place - 1);
  const bool digits = number.find_first_not_of("0123456789.") == std::string::npos;
  return digits && parse_byte_size(number + word) ? number + word : "";
}

// What is wrong with the first argument that nobody expected.
std::string unexpected(const std::vector<VerbRow>& table, const CLI::App* verb,
                       const std::string& word, const std::vector<std::string>& given) {
  std::vector<std::string> names;
  if (verb == nullptr) {
    for (const VerbRow& row : table) names.push_back(row.name);
    names.insert(names.end(), {"--help", "--version"});
    return fmt::format("'{}' is no {}{} `plimsoll --help` lists them", word,
                       word.starts_with('-') ? "option before a verb" : "verb",
                       did_you_mean(word, names));
  }
  for (const VerbRow& row : table) {
    if (row.name != verb->get_name()) continue;
    for (const OptionRow& option : row.options)
      names.insert(names.end(), option.names.begin(), option.names.end());
  }
  if (is_behind(given, "--lossy", word))
    return fmt::format(
        "{0}: --lossy: '{1}' is no form, expects fp16, bf16, fp8, int8, of weights also q8_0, "
        "q4_0, q4_k, nf4; `plimsoll {0} --help` says more",
        verb->get_name(), word);
  const std::string option = word.substr(0, word.find('='));
  if (const std::string size = size_in_two_words(given, word); !size.empty())
    return fmt::format("{}: a size is one word: {}", verb->get_name(), size);
  const bool dashed = word.starts_with('-');
  if (dashed && std::find(names.begin(), names.end(), option) != names.end())
    return fmt::format("{}: behind -- nothing is an option: '{}'; leave out the --",
                       verb->get_name(), word);
  const bool writes = std::find(names.begin(), names.end(), "-o") != names.end();
  if (!dashed && writes && word.find('.') != std::string::npos)
    return fmt::format("{}: one argument too many: '{}'; a file to write is given as -o {}",
                       verb->get_name(), word, word);
  return fmt::format("{0}: {1} '{2}'{3} `plimsoll {0} --help` lists its options", verb->get_name(),
                     dashed ? "no option is called" : "one argument too many:", option,
                     dashed ? did_you_mean(option, names) : ";");
}

// "--budget is given 2 times", "--save: FILE is missing": CLI11 counts, and says only that.
std::string usage_text(const CLI::ParseError& error) {
  static const std::regex kTwice(R"((.*): At Most 1 required but received (\d+))");
  static const std::regex kMissing(R"((.*): \d+ required (.*) missing)");
  std::string text = error.what();
  std::smatch found;
  if (std::regex_match(text, found, kTwice))
    return fmt::format("{} is given {} times", found[1].str(), found[2].str());
  if (std::regex_match(text, found, kMissing))
    return fmt::format("{}: {} is missing", found[1].str(), found[2].str());
  return text;
}

// CLI11 has messages and exit codes (105 to 109) of its own; ours is 2 for every wrong command
// line.
int report_usage(const CLI::App& app, const CLI::ParseError& error, bool json,
                 const std::vector<std::string>& given) {
  const CLI::App* verb = chosen_verb(app);
  if (error.get_name() == "CallForHelp") return show_help(app);
  if (error.get_name() == "CallForVersion") {
    std::printf("plimsoll %s\n", api::version());
    return 0;
  }
  std::vector<std::string> extra = app.remaining(true);
  // A misspelt option is in front of the value that nobody wants either.
  std::stable_partition(extra.begin(), extra.end(),
                        [](const std::string& word) { return word.starts_with('-'); });
  std::string message;
  // What an option swallowed (`--amp --steps 2`) is the reason that 2 is one too many.
  if (!extra.empty() && error.get_name() != "ValidationError") {
    message = unexpected(option_table(app), verb, extra.front(), given);
  } else if (verb == nullptr) {
    message = "a verb is needed, such as plan, run or view; `plimsoll --help` lists them";
  } else {
    message = fmt::format("{0}: {1}; `plimsoll {0} --help` shows examples", verb->get_name(),
                          usage_text(error));
  }
  if (json) std::printf("%s\n", error_json({ErrorCode::kUsage, message}, "").c_str());
  return report({ErrorCode::kUsage, message});
}

// `view plan.json -o plan.json` would leave a report where the plan was.
Status keep_what_is_read(const std::string& output, const std::vector<std::string>& read) {
  std::error_code error;
  for (const std::string& file : read) {
    if (std::filesystem::is_regular_file(file, error) &&
        std::filesystem::equivalent(file, output, error))
      return fail(ErrorCode::kUsage, "{}: is read and would be overwritten; give another name",
                  output);
  }
  return {};
}

// Names of outputs are checked before the work, so that a wrong one costs no hours. "-" takes
// standard output for the file: what the verb says goes to standard error then, and the two do not
// mix.
Status prepare_outputs(const Command& command) {
  std::string standard_output;
  for (std::string* output : command.outputs()) {
    if (*output == "-") {
      if (standard_output.empty()) {
        const int results = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
        if (results < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
          return bad_input("standard output: cannot write: {}", std::strerror(errno));
        standard_output = fmt::format("/dev/fd/{}", results);
      }
      *output = standard_output;
    } else if (!output->empty()) {
      PLIMSOLL_RETURN_IF_ERROR(keep_what_is_read(*output, command.arguments()));
      PLIMSOLL_RETURN_IF_ERROR(check_writable(*output));
    }
  }
  return {};
}

// All of standard input in memory, as a file with a name: readers map files, and some look twice.
Result<std::string> spooled_input() {
  constexpr std::int64_t kMost = std::int64_t{16} << 30;
  const int file = ::memfd_create("standard input", 0);
  if (file < 0)
    return bad_input("standard input: no memory to read it into: {}", std::strerror(errno));
  std::vector<char> piece(1 << 16);
  for (std::int64_t total = 0;;) {
    const ssize_t got = ::read(STDIN_FILENO, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return bad_input("standard input: cannot read: {}", std::strerror(errno));
    if (got == 0) break;
    total += got;
    if (total > kMost) return bad_input("standard input: is longer than 16 GiB");
    for (ssize_t done = 0; done < got;) {
      const ssize_t put = ::write(file, piece.data() + done, static_cast<std::size_t>(got - done));
      if (put < 0) return bad_input("standard input: no memory for it: {}", std::strerror(errno));
      done += put;
    }
  }
  return fmt::format("/dev/fd/{}", file);
}

// "-" is standard input; `spooled` is its file then.
Status prepare_inputs(const Command& command, std::string& spooled) {
  for (std::string* input : command.inputs()) {
    if (*input != "-") continue;
    if (!spooled.empty())
      return fail(ErrorCode::kUsage, "'-' is standard input, which can be read once only");
    PLIMSOLL_TRY(spooled, spooled_input());
    *input = spooled;
  }
  return {};
}

Status act(const Command& command, const Action& action, std::string& spooled) {
  try {
    PLIMSOLL_RETURN_IF_ERROR(prepare_inputs(command, spooled));
    PLIMSOLL_RETURN_IF_ERROR(prepare_outputs(command));
    for (const auto& work : command.before()) PLIMSOLL_RETURN_IF_ERROR(work());
    return action();
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kInternal, "out of memory on this machine");
  } catch (const std::exception& problem) {
    if (std::ferror(stdout) != 0) return {};  // finish_stdout has the word
    return fail(ErrorCode::kInternal, "{}", problem.what());
  }
}

int run_action(const Command& command, const Action& action) {
  std::string spooled;
  Status status = act(command, action, spooled);
  if (!status && !spooled.empty() && status.error().message.starts_with(spooled + ":"))
    status.error().message.replace(0, spooled.size(), "standard input");
  const bool json = command.has("--json");
  if (status) {
    if (!command.answer().empty()) std::printf("%s\n", command.answer().c_str());
    return 0;
  }
  if (json) std::printf("%s\n", error_json(status.error(), command.answer()).c_str());
  return report(status.error());
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  CLI::App app("The memory system for deep-learning programs", "plimsoll");
  app.set_version_flag("--version", api::version());
  app.require_subcommand(1);
  std::string level;
  app.add_option("--log-level", level, "trace, debug, info, warn, error or off (default warn)")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}));

  std::deque<Command> commands;  // actions refer to them
  std::vector<Action> actions;
  for (const Verb& verb : verbs()) {
    CLI::App* subcommand = app.add_subcommand(verb.name, verb.summary);
    subcommand->footer(verb.examples);
    actions.push_back(verb.bind(commands.emplace_back(*subcommand)));
  }
  bool json = false;
  try {
    std::vector<std::string> arguments = with_lossy_values({argv + std::min(argc, 1), argv + argc});
    const auto own = std::find(arguments.begin(), arguments.end(), "--");
    json = std::find(arguments.begin(), own, "--json") != own;
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    return report_usage(app, error, json, {argv + std::min(argc, 1), argv + argc});
  }
  log::start(level);
  for (std::size_t verb = 0; verb < actions.size(); ++verb) {
    if (commands[verb].app().parsed()) return run_action(commands[verb], actions[verb]);
  }
  return static_cast<int>(ErrorCode::kUsage);
}

int finish_stdout(int exit_code) {
  const bool flushed = std::fflush(stdout) == 0;
  const int error = flushed ? 0 : errno;
  const bool failed = std::ferror(stdout) != 0;
  const bool closed = std::fclose(stdout) == 0;
  if ((!failed && closed) || exit_code != 0) return exit_code;
  const int why = error != 0 ? error : failed ? 0 : errno;
  return report(
      {ErrorCode::kBadInput, fmt::format("standard output: cannot write{}{}", why != 0 ? ": " : "",
                                         why != 0 ? std::strerror(why) : "")});
}

}  // namespace plimsoll::cli
