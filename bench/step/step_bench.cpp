// Times training steps of a built-in model and says which operators the time goes to.
//
//   step_bench resnet50 --batch 8 [--seq N] [--steps N] [--threads N] [--plain] [--slowest N]
//
// Prints the fastest and the median step, peak bytes, and the fastest step's seconds by operator;
// --plain leaves the rewrites out, --slowest lists single nodes with their arithmetic rate.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <string>

#include <fmt/format.h>

#include "plimsoll/autodiff/training.h"
#include "plimsoll/kernels/cpu/convolution_layout.h"
#include "plimsoll/kernels/cpu/cpu_kernels.h"
#include "plimsoll/model/zoo.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/layouts.h"
#include "plimsoll/rewrite/simplify.h"
#include "plimsoll/runtime/initial_content.h"
#include "plimsoll/runtime/on_demand.h"

namespace {

using namespace plimsoll;

struct Options {
  std::string model;
  model::ModelOptions sizes;
  int steps = 5;
  int threads = 0;
  int slowest = 0;
  std::int64_t least_channels = 8;
  bool plain = false;
};

Options parse(int count, char** words) {
  Options out;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const auto next = [&] { return i + 1 < count ? std::atoll(words[++i]) : 0; };
    if (word == "--batch")
      out.sizes.batch = next();
    else if (word == "--seq")
      out.sizes.seq = next();
    else if (word == "--image")
      out.sizes.image = next();
    else if (word == "--layers")
      out.sizes.layers = next();
    else if (word == "--steps")
      out.steps = static_cast<int>(next());
    else if (word == "--threads")
      out.threads = static_cast<int>(next());
    else if (word == "--slowest")
      out.slowest = static_cast<int>(next());
    else if (word == "--least-channels")
      out.least_channels = next();
    else if (word == "--plain")
      out.plain = true;
    else
      out.model = word;
  }
  return out;
}

Result<ir::Graph> build(const Options& options) {
  const auto* info = model::find_model(options.model);
  model::ModelOptions sizes = options.sizes;
  if (info != nullptr &&
      std::find(info->options.begin(), info->options.end(), "dropout") != info->options.end())
    sizes.dropout = 0.0;
  PLIMSOLL_TRY(ir::Graph graph, model::build_model(options.model, sizes));
  if (!options.plain) {
    PLIMSOLL_TRY(graph, rewrite::simplify(graph));
  }
  autodiff::TrainingOptions training;
  training.optimizer = autodiff::Optimizer::kSgd;
  PLIMSOLL_TRY(graph, autodiff::make_training_graph(graph, training));
  if (!options.plain) {
    const int threads = options.threads;
    PLIMSOLL_TRY(graph,
                 rewrite::choose_layouts(graph, {.weights_layout =
                                                     [=](const ir::Graph& g, const ir::Node& node) {
                                                       return kernels::convolution_weights_layout(
                                                           g, node, {threads});
                                                     },
                                                 .least_channels = options.least_channels}));
  }
  return graph;
}

Status fill(runtime::Executor& executor, std::uint64_t step) {
  for (std::size_t v = 0; v < executor.graph().values.size(); ++v) {
    const ir::Value& value = executor.graph().values[v];
    if (!ir::is_source(value.kind)) continue;
    if (step > 0 && value.kind != ir::ValueKind::kInput) continue;
    if (const auto* data = executor.graph().data(ValueId(v))) {
      PLIMSOLL_RETURN_IF_ERROR(executor.write(ValueId(v), std::as_bytes(std::span(*data))));
    } else {
      PLIMSOLL_RETURN_IF_ERROR(runtime::fill_source(executor, ValueId(v), 1, step));
    }
  }
  return {};
}

struct Timed {
  double seconds = 0;
  std::map<std::string, std::pair<double, int>> by_operator;
  std::vector<double> by_node;
};

void print_slowest(const ir::Graph& graph, const Timed& timed, int count) {
  std::vector<std::size_t> order(timed.by_node.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return timed.by_node[a] > timed.by_node[b]; });
  order.resize(std::min(order.size(), static_cast<std::size_t>(count)));
  for (const std::size_t n : order) {
    const ops::Cost cost = ops::cost_of(graph, graph.nodes[n]);
    fmt::print("  {:8.2f} ms {:6.0f} GFLOP/s {:6.1f} GB/s {}\n", timed.by_node[n] * 1e3,
               cost.operations / timed.by_node[n] * 1e-9, cost.bytes() / timed.by_node[n] * 1e-9,
               ops::signature(graph, graph.nodes[n]));
  }
}

Status bench(const Options& options) {
  PLIMSOLL_TRY(const ir::Graph graph, build(options));
  for (const ir::Node& node : graph.nodes) {
    if (!kernels::has_special_kernel(graph, node))
      fmt::print("reference: {}\n", ops::signature(graph, node));
  }
  trace::Trace trace;
  runtime::ExecutorOptions how;
  how.threads = options.threads;
  how.trace = &trace;
  PLIMSOLL_TRY(auto executor, runtime::make_on_demand(graph, how));
  std::vector<Timed> steps;
  double loss = 0;
  for (int step = 0; step < options.steps; ++step) {
    PLIMSOLL_RETURN_IF_ERROR(fill(*executor, static_cast<std::uint64_t>(step)));
    trace.events.clear();
    const std::int64_t begin = runtime::now_ns();
    PLIMSOLL_RETURN_IF_ERROR(executor->step());
    Timed timed;
    timed.seconds = static_cast<double>(runtime::now_ns() - begin) * 1e-9;
    for (const trace::Event& event : trace.events) {
      if (event.kind != trace::EventKind::kOperator) continue;
      timed.by_node.push_back(static_cast<double>(event.end - event.start) * 1e-9);
      const std::string name(trace.strings.text(event.name));
      auto& [seconds, calls] = timed.by_operator[name.substr(name.rfind('/') + 1)];
      seconds += static_cast<double>(event.end - event.start) * 1e-9;
      ++calls;
    }
    steps.push_back(std::move(timed));
    PLIMSOLL_TRY(const std::vector<std::byte> bytes, executor->result(graph.outputs[0]));
    loss = *reinterpret_cast<const float*>(bytes.data());
  }
  steps.erase(steps.begin());
  std::sort(steps.begin(), steps.end(),
            [](const Timed& a, const Timed& b) { return a.seconds < b.seconds; });
  const Timed& median = steps[steps.size() / 2];
  fmt::print("{} fastest_ms {:.1f} median_ms {:.1f} peak_mib {:.1f} loss {:.6f} nodes {}\n",
             options.model, steps.front().seconds * 1e3, median.seconds * 1e3,
             static_cast<double>(executor->peak_bytes().value) / 1048576.0, loss,
             graph.nodes.size());
  std::vector<std::pair<double, std::string>> rows;
  for (const auto& [name, entry] : steps.front().by_operator)
    rows.emplace_back(entry.first, fmt::format("{:24} {:5}", name, entry.second));
  std::sort(rows.rbegin(), rows.rend());
  for (const auto& [seconds, row] : rows) fmt::print("  {} {:9.2f} ms\n", row, seconds * 1e3);
  print_slowest(graph, steps.front(), options.slowest);
  return {};
}

}  // namespace

int main(int count, char** words) {
  const Options options = parse(count, words);
  if (const Status status = bench(options); !status) {
    fmt::print(stderr, "{}\n", status.error().message);
    return static_cast<int>(status.error().code);
  }
  return 0;
}
