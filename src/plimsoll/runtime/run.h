// Runs steps of a graph and reports what happened: what `plimsoll run` does.
//
// The executor is made from a plan (planned) or straight from the graph (on demand).
// Sources are filled from the seed, then from a weight file where one is given; every step gets its
// batch from the data source. Losses are the first output of a training graph.
//
// A measuring run also says what it held. Where the kernel lets pages be watched it runs once; else
// it runs twice, over two patterns, and does the same both times. Its steps are slower: time other
// runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/device/cpu/touched_bytes.h"
#include "plimsoll/dist/communicator.h"
#include "plimsoll/plan/plan.h"
#include "plimsoll/runtime/executor.h"
#include "plimsoll/runtime/initial_content.h"

namespace plimsoll::runtime {

// A data set as a run saw it.
struct DataFacts {
  std::int64_t examples = 0;
  std::int64_t batch = 0;
  bool shuffled = false;
};

struct RunOptions {
  int steps = 3;
  int first_step = 0;  // a resumed run goes on with the data where the saved one stopped
  int threads = 0;
  std::uint64_t seed = 1;
  trace::Trace* trace = nullptr;
  bool poison = false;
  bool measure = false;  // ask the memory what the run holds; slower
  // absent: by pages where the kernel allows, else by patterns
  std::optional<device::TouchedBytes::Method> measure_by;
  std::string swap_file;  // where swapped values wait; empty: in host memory
  // seconds of each step of the plan, in the last run of it
  std::vector<double>* step_seconds = nullptr;
  // Called before the first step, when every source has its first content.
  std::function<Status(Executor&)> on_start;
  // Synthetic data: another batch every step, instead of one for all. Labels are drawn too, so that
  // nothing can be learnt from one batch about the next: the loss falls only where the batch stays.
  bool fresh_batches = false;
  // Names of sources that on_start brings, so that they need no made-up content first.
  std::function<std::unordered_set<std::string>(const ir::Graph&)> is_loaded;
  // What on_start did with the file of weights; filled by it.
  std::shared_ptr<struct WeightsLoaded> loaded;
  // What the batches come from, where that is known when the run begins.
  std::function<std::optional<DataFacts>()> data_facts;
  // Writes the batch of a step; absent: synthetic data from the seed.
  std::function<Status(Executor&, int step)> feed;
  // How many steps, where only the graph tells (a data set of so many examples); absent: `steps`.
  std::function<Result<int>(const ir::Graph&)> steps_for;
  // Of several ranks: which examples are this one's, and what they agree on when one is asked to
  // stop.
  std::shared_ptr<dist::Communicator> communicator;  // null: one process
  BatchPart part;
  std::function<bool(bool stop)> agree;
  // Asked after every step: true ends the run there, as if it had been the last.
  const std::atomic<bool>* stop = nullptr;
  // Names the operator that made the first NaN or infinity of a step whose result is none
  // (nan_finder.h), as an error. Slower.
  bool find_nan = false;
  // Called after every step, with the executor: saves, collects.
  std::function<Status(Executor&, int step, bool last)> after_step;
  // Called after every step with its loss (none unless the first output is one number) and seconds.
  std::function<void(int step, std::optional<double> loss, double seconds)> on_step;
  // Called after the last step.
  std::function<Status(Executor&)> on_end;
  std::shared_ptr<kernels::Backend> backend;  // where to run; absent: on the CPU
  std::shared_ptr<BackingStore> backing;      // for runs that page, one after the other
  WrapKernel wrap_kernel;                     // for tests that plant faults
  Bytes space_behind;                         // the arena, for the same tests
};

// What a run held, from its binding to its last step, by asking the memory and the allocator
// (device/cpu/ touched_bytes.h, runtime/outside_bytes.h). Nothing here is read from a plan.
struct Measured {
  Bytes touched;           // one past the highest byte of the device's arena that was written
  Bytes outside;           // the most bytes alive outside all arenas
  std::int64_t large = 0;  // how many allocations outside had 4 KiB or more
  Bytes host;              // one past the highest byte of the host's arena that was written
  device::TouchedBytes::Method method = device::TouchedBytes::Method::kPages;

  std::string_view touched_by() const {
    return method == device::TouchedBytes::Method::kPages ? "pages" : "patterns";
  }
};

// What several ranks said to each other, and what each held.
struct RankReport {
  int ranks = 1;
  double messages = 0;               // collectives in a step
  double wire_bytes = 0;             // that left a rank in a step
  double communication_seconds = 0;  // in collectives in a step, waiting for others included
  std::int64_t start_messages = 0;   // before the first step, with weights and state
  std::vector<Bytes> peak_by_rank;
};

struct RunReport {
  std::vector<double> losses;
  std::vector<double> step_seconds;
  // of device memory: touched and outside together where that was measured, else what was taken
  Bytes peak;
  std::optional<Bytes> planned_peak;
  std::optional<Measured> measured;
  std::string not_measured;  // why not, where it was asked for
  Bytes budget;
  double predicted_seconds = 0;  // of a planned step
  // that values wait in: touched where that was measured, else planned
  Bytes host;
  Bytes overflow;  // compressed activations that waited in host memory because they did not fit
  std::vector<EncodedActivation> encoded;     // what every encoding of the plan took and lost
  std::optional<kernels::Rounding> rounding;  // what kernels lost that round what they read
  int threads = 0;
  std::string device = "cpu";
  // On a GPU: device memory that the process holds beside the arena (context, modules, graphs), of
  // that the context alone, and others on the card, in words.
  Bytes context;
  Bytes bare_context;
  std::string neighbours;
  bool stopped = false;                // before the last step, because it was asked to
  std::optional<int> first_bad_step;   // whose loss was NaN or infinite
  std::optional<DataFacts> data_set;   // that it ran on
  std::optional<PagingReport> paging;  // of the last step that paged
  std::shared_ptr<const struct WeightsLoaded> loaded;  // the file of weights, where one was given
  std::optional<RankReport> ranks;                     // of a run on several
};

// What all encodings of one form did together.
struct FormReport {
  std::string form;
  bool lossless = true;
  std::vector<EncodedActivation> activations;  // by tensor, the largest error first
  Bytes plain;
  Bytes planned;   // what the plan reserves
  Bytes used;      // of it, by the data of the last step
  Bytes overflow;  // plain bytes that did not fit
  double largest_error = 0;
  double rms_error = 0;
  double relative_error = 0;  // rms error / rms value
};
std::vector<FormReport> by_form(const std::vector<EncodedActivation>& activations);
double rms_error(const EncodedActivation& activation);

// The median of the steps after the first, which pays for pages and threads.
double typical_seconds(const RunReport& report);

Result<RunReport> run_plan(plan::Plan plan, const RunOptions& options);
// One plan a step, in turn, in one arena: the first of the plan set, the second, ..., and again.
Result<RunReport> run_plan_set(std::vector<plan::Plan> plans, const RunOptions& options);
Result<RunReport> run_on_demand(const ir::Graph& graph, const RunOptions& options);

// Without a plan in less memory than the tensors take (paged.h).
Result<RunReport> run_paged(const ir::Graph& graph, const PagingOptions& paging,
                            const RunOptions& options);
// The first step pages; what it did is known then, and the rest runs by the plan.
Result<RunReport> run_paged_then_planned(const ir::Graph& graph, const PagingOptions& paging,
                                         plan::Plan plan, const RunOptions& options);

// Where a plan runs, as plan files record it; without a backend, this machine's CPU.
plan::Environment environment_of(const kernels::Backend* backend, int threads);

}  // namespace plimsoll::runtime
