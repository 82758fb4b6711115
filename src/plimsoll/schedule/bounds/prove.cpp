#include "plimsoll/schedule/bounds/prove.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "plimsoll/base/clock.h"
#include "plimsoll/base/file.h"

extern char** environ;

namespace plimsoll::schedule {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostTasks = 400;
// Of the time given, for the solver to say what it knows before it is ended.
constexpr double kLastWords = 0.05;

Status check_covered(const Workload& workload) {
  if (workload.tasks.size() > kMostTasks) {
    return fail(ErrorCode::kUsage, "{} tasks are too many to prove anything; at most {}",
                workload.tasks.size(), kMostTasks);
  }
  for (const Value& value : workload.values) {
    if (!value.producer.valid() || value.keep || value.in_place || !value.recompute) {
      return fail(
          ErrorCode::kUsage,
          "value '{}': the proof knows neither sources nor kept, in-place or once-made values",
          value.name);
    }
  }
  for (const Task& task : workload.tasks) {
    if (task.outputs.size() != 1 || task.once) {
      return fail(ErrorCode::kUsage, "task '{}': the proof knows single-output tasks only",
                  task.name);
    }
  }
  return {};
}

// Tasks by position in the order: cost, bytes, inputs.
struct Chart {
  std::vector<double> cost;
  std::vector<double> bytes;
  std::vector<double> scratch;
  std::vector<double> out_cost, in_cost;  // of copies; empty without them
  std::vector<std::vector<std::size_t>> inputs;
  std::vector<std::vector<std::size_t>> readers;
  double total = 0;
};

Chart chart_of(const Workload& workload, const std::vector<TaskId>& order, Bytes budget,
               const std::optional<CopyRates>& copies) {
  Chart chart;
  std::vector<std::size_t> position(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) position[order[i].index()] = i;
  for (const Task& task : workload.tasks) chart.total += task.seconds;
  const double unit = 1000.0 / std::max<double>(1, static_cast<double>(budget.value));
  chart.readers.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Task& task = workload.task(order[i]);
    const double share = 1000.0 / std::max(1e-300, chart.total);
    chart.cost.push_back(task.seconds * share);
    if (copies) {
      const Bytes bytes = workload.value(task.outputs[0]).bytes;
      chart.out_cost.push_back(copies->out_seconds(bytes) * share);
      chart.in_cost.push_back(copies->in_seconds(bytes) * share);
    }
    chart.bytes.push_back(unit * static_cast<double>(workload.value(task.outputs[0]).bytes.value));
    chart.scratch.push_back(unit * static_cast<double>(task.scratch.value));
    chart.inputs.emplace_back();
    for (ValueId input : task.inputs) {
      const std::size_t from = position[workload.value(input).producer.index()];
      chart.inputs.back().push_back(from);
      chart.readers[from].push_back(i);
    }
  }
  return chart;
}

class ModelText {
 public:
  ModelText(const Chart& chart, Overlap overlap)
      : c_(chart), by_stage_(overlap == Overlap::kByStage && !chart.out_cost.empty()) {}

  // None when the deadline passes before it is written.
  std::optional<std::string> write(bool relax, const Deadline& deadline) {
    const std::size_t n = c_.cost.size();
    out_ = "Minimize\n obj:\n";
    if (by_stage_) {
      for (std::size_t t = 0; t < n; ++t) add(" + T{}", t);
    } else if (swaps()) {
      out_ += " T0";
    } else {
      for (std::size_t t = 0; t < n; ++t) row("+", "R", c_.cost, t);
    }
    out_ += "\nSubject To\n";
    if (swaps()) {
      stream("R", c_.cost, n);
      stream("O", c_.out_cost, n);
      stream("I", c_.in_cost, n);
    }
    for (std::size_t t = 0; t < n; ++t) {
      if (deadline.passed()) return std::nullopt;
      stage(t, n);
    }
    out_ += "Bounds\n";
    for (std::size_t t = 0; t < n; ++t) {
      for (std::size_t i = 0; i <= t; ++i) {
        add("U{}_{} <= {:.9g}\n", t, i, 1000.0);
        if (relax) bound_by_one(t, i);
      }
    }
    if (!relax) {
      out_ += "Binaries\n";
      for (std::size_t t = 0; t < n; ++t) {
        for (std::size_t i = 0; i <= t; ++i) name_all(t, i, "\n");
      }
    }
    return out_ + "End\n";
  }

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  bool swaps() const { return !c_.out_cost.empty(); }

  void row(std::string_view sign, std::string_view letter, const std::vector<double>& cost,
           std::size_t t) {
    for (std::size_t i = 0; i <= t; ++i) add(" {} {:.9g} {}{}_{}\n", sign, cost[i], letter, t, i);
  }

  // T0, or the T of every stage, is at least what one stream takes.
  void stream(std::string_view letter, const std::vector<double>& cost, std::size_t n) {
    for (std::size_t t = 0; t < n; ++t) {
      if (by_stage_ || t == 0) add("T{}", t);
      row("-", letter, cost, t);
      if (by_stage_ || t + 1 == n) out_ += " >= 0\n";
    }
  }

  void name_all(std::size_t t, std::size_t i, std::string_view end) {
    add("R{}_{}{}", t, i, end);
    if (i < t) add("S{}_{}{}", t, i, end);
    if (!swaps()) return;
    add("H{}_{}{}I{}_{}{}", t, i, end, t, i, end);
  }
  void bound_by_one(std::size_t t, std::size_t i) { name_all(t, i, " <= 1\n"); }

  // What makes value i be there in stage t besides being run: held, or copied in.
  void present(std::size_t t, std::size_t i, bool copied_in) {
    if (i < t) add(" - S{}_{}", t, i);
    if (swaps() && copied_in) add(" - I{}_{}", t, i);
  }

  void stage(std::size_t t, std::size_t n) {
    add("R{}_{} = 1\n", t, t);
    for (std::size_t i = 0; i <= t && t + 1 < n; ++i) {
      add("S{}_{} - R{}_{}", t + 1, i, t, i);
      present(t, i, true);
      out_ += " <= 0\n";
    }
    for (std::size_t v = 0; v <= t; ++v) {
      for (std::size_t u : c_.inputs[v]) {
        add("R{}_{} - R{}_{}", t, v, t, u);
        present(t, u, !by_stage_);
        out_ += " <= 0\n";
      }
    }
    for (std::size_t i = 0; i <= t && swaps(); ++i) copies(t, i, n);
    for (std::size_t k = 0; k <= t; ++k) memory(t, k, n);
  }

  void copies(std::size_t t, std::size_t i, std::size_t n) {
    add("O{}_{}", t, i);
    if (!by_stage_) add(" - R{}_{}", t, i);
    present(t, i, !by_stage_);
    add(" <= 0\nI{}_{} - H{}_{} <= 0\n", t, i, t, i);
    if (i == t) add("H{}_{} = 0\n", t, i);
    if (t + 1 >= n) return;
    add("H{}_{}", t + 1, i);
    for (std::size_t sent = i; sent <= t; ++sent) add(" - O{}_{}", sent, i);
    out_ += " <= 0\n";
  }

  void memory(std::size_t t, std::size_t k, std::size_t n) {
    add("U{}_{} - {:.9g} R{}_{}", t, k, c_.bytes[k], t, k);
    if (swaps() && !by_stage_) add(" - {:.9g} I{}_{}", c_.bytes[k], t, k);
    if (k == 0) {
      for (std::size_t i = 0; i < t; ++i) {
        add(" - {:.9g} S{}_{}", c_.bytes[i], t, i);
        if (by_stage_) add(" - {:.9g} I{}_{}", c_.bytes[i], t, i);
      }
    } else {
      add(" - U{}_{}", t, k - 1);
      for (std::size_t i : c_.inputs[k - 1]) add(" + {:.9g} F{}_{}_{}", c_.bytes[i], t, i, k - 1);
    }
    out_ += " = 0\n";
    if (c_.scratch[k] > 0) add("U{}_{} + {:.9g} R{}_{} <= 1000\n", t, k, c_.scratch[k], t, k);
    if (k == t) return;
    for (std::size_t i : c_.inputs[k]) {
      add("F{}_{}_{} - R{}_{} <= 0\n", t, i, k, t, k);
      if (t + 1 < n) add("F{}_{}_{} + S{}_{} <= 1\n", t, i, k, t + 1, i);
      if (by_stage_) add("F{}_{}_{} + O{}_{} <= 1\n", t, i, k, t, i);
      for (std::size_t j : c_.readers[i]) {
        if (j > k && j <= t) add("F{}_{}_{} + R{}_{} <= 1\n", t, i, k, t, j);
      }
    }
  }

  const Chart& c_;
  bool by_stage_;
  std::string out_;
};

// Waits for the child up to the deadline, or until it shall stop, and ends it there. Its exit
// status, or none when it was ended.
std::optional<int> wait_until(pid_t child, const Deadline& deadline,
                              const std::atomic<bool>* stop) {
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (deadline.passed() || (stop != nullptr && stop->load())) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return std::nullopt;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return status;
}

// What the solver said by the deadline is in the log. True when it came to an end by itself, before
// the limit it was given.
Result<bool> run_cbc(const fs::path& model, const fs::path& log, const Deadline& deadline,
                     const std::atomic<bool>* stop) {
  const Deadline limit(std::max(0.01, (1 - kLastWords) * deadline.left()));
  const std::vector<std::string> words = {"cbc",       model.string(),
                                          "-timeMode", "elapsed",
                                          "-seconds",  fmt::format("{:.3f}", limit.left()),
                                          "-ratioGap", "0.0001",
                                          "-solve",    "-quit"};
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, "cbc", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return fail(ErrorCode::kDevice, "cbc cannot be started; install coinor-cbc");
  const std::optional<int> status = wait_until(child, deadline, stop);
  if (status && (!WIFEXITED(*status) || WEXITSTATUS(*status) == 127))
    return fail(ErrorCode::kDevice, "cbc cannot be run; install coinor-cbc");
  return status && !limit.passed();
}

std::optional<double> number_after(const std::string& text, std::string_view label) {
  const std::size_t found = text.rfind(label);
  if (found == std::string::npos) return std::nullopt;
  return std::strtod(text.c_str() + found + label.size(), nullptr);
}

// What the solver had proven last; it says so in other words while it still works.
std::optional<double> last_bound(const std::string& log) {
  for (const std::string_view label :
       {"Lower bound:", "best possible ", "Continuous objective value is"}) {
    if (const auto bound = number_after(log, label)) return bound;
  }
  return std::nullopt;
}

bool says_infeasible(const std::string& log) {
  for (const std::string_view words :
       {"Result - Problem proven infeasible", "Result - Linear relaxation infeasible",
        "Problem is infeasible", "Pre-processing says infeasible"}) {
    if (log.find(words) != std::string::npos) return true;
  }
  return false;
}

// Whose time is up also says infeasible, of what it was just looking at: that proves nothing.
Result<Proof> read_log(const std::string& log, bool in_time, double total, bool relax) {
  const auto seconds = [&](double objective) { return objective * total / 1000.0; };
  if (says_infeasible(log)) {
    if (in_time) return fail(ErrorCode::kDoesNotFit, "proven: no plan of this order fits");
    return fail(ErrorCode::kNoAnswer, "the solver found no bound in the time given");
  }
  Proof proof;
  if (relax) {
    const auto value = number_after(log, "Optimal - objective value");
    const auto other = number_after(log, "Optimal objective");
    if (!value && !other)
      return fail(ErrorCode::kNoAnswer, "the solver found no bound in the time given");
    proof.bound_seconds = seconds(value ? *value : *other);
    return proof;
  }
  const auto objective = number_after(log, "Objective value:");
  if (objective) proof.found_seconds = seconds(*objective);
  if (log.find("Result - Optimal solution found") != std::string::npos && objective) {
    proof.bound_seconds = seconds(*objective);
    proof.optimum_seconds = proof.bound_seconds;
  } else if (const auto least = last_bound(log)) {
    proof.bound_seconds = seconds(*least);
  } else {
    return fail(ErrorCode::kNoAnswer, "the solver found no bound in the time given");
  }
  return proof;
}

}  // namespace

Result<Proof> prove(const Workload& workload, const std::vector<TaskId>& order, Bytes budget,
                    double seconds, const ProofOptions& options) {
  const Deadline deadline(seconds);
  PLIMSOLL_RETURN_IF_ERROR(check_covered(workload));
  const Chart chart = chart_of(workload, order, budget, options.copies);
  const std::optional<std::string> text =
      ModelText(chart, options.overlap).write(options.relax, deadline);
  if (!text) return fail(ErrorCode::kNoAnswer, "the model could not be written in the time given");
  std::string folder = (fs::temp_directory_path() / "plimsoll-prove-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr)
    return fail(ErrorCode::kDevice, "no temporary folder can be made");
  const fs::path model = fs::path(folder) / "model.lp";
  const fs::path log_file = fs::path(folder) / "log.txt";
  const Status written = write_file(model, *text);
  const Result<bool> in_time =
      written ? run_cbc(model, log_file, deadline, options.stop) : Result<bool>(forward(written));
  const Result<std::string> log =
      in_time ? read_file(log_file) : Result<std::string>(forward(in_time));
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  if (!log) return forward(log);
  return read_log(*log, *in_time, chart.total, options.relax);
}

}  // namespace plimsoll::schedule
