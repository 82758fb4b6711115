#include "plimsoll/profile/measure_operators.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <map>

#include "plimsoll/base/checked.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/codec/weights/encoded_matrix.h"
#include "plimsoll/codec/weights/weight_codecs.h"
#include "plimsoll/device/cpu/arena.h"
#include "plimsoll/kernels/cpu/cpu_kernels.h"
#include "plimsoll/ops/in_place_pairs.h"
#include "plimsoll/ops/products/encoded_weight.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/profile/measure_on_device.h"

namespace plimsoll::profile {
namespace {

constexpr std::int64_t kBehindCaches = 64 << 20;  // bytes of operands that are taken in turn
constexpr std::int64_t kMostPlaces = 64;
constexpr std::int64_t kInCaches = 8 << 20;  // what was touched so few bytes ago still lies there
constexpr int kFewestRuns = 3;
constexpr int kMostRuns = 15;
constexpr double kEnoughSeconds = 0.05;  // for one signature
constexpr int kFewestFastRuns = 12;
constexpr int kMostFastRuns = 300;
constexpr double kAgreement = 1.03;  // the third fastest run over the fastest
constexpr double kMostFastSeconds = 0.2;

std::int64_t padded(Bytes bytes) {
  return round_up(std::max<std::int64_t>(bytes.value, 1), kernels::kAlignment);
}

// Input i is a weight in encoded form.
bool is_encoded_weight(const ir::Node& node, std::size_t i) {
  return (node.op == "encoded_linear" && i == 1) ||
         ((node.op == "decode_weight" || node.op == "encoded_gather") && i == 0);
}
// Zeros in that form; false where its time depends on the values.
bool fill_encoded(const ir::Node& node, std::span<std::uint8_t> bytes) {
  const ops::AttributeReader attributes = ops::attributes_of(node);
  const codec::WeightCodec* codec = codec::find_weight_codec(attributes.text("form"));
  const auto type = ops::encoded_type(attributes);
  return codec != nullptr && type && codec::write_encoded_zeros(*codec, *type, bytes);
}

// What of a node's operands lies in the caches when a step comes to it: what was made a moment ago,
// and in an inference, whose values take each other's places all the time, the results. Weights and
// what was kept for the backward pass come from memory.
class Recent {
 public:
  explicit Recent(const ir::Graph& graph)
      : graph_(graph), trains_(ir::has_phase(graph, ir::Phase::kBackward)), made_(1) {
    for (const ir::Node& node : graph.nodes) {
      std::int64_t bytes = made_.back();
      for (const ValueId output : node.outputs)
        bytes += ir::bytes_of(graph.value(output).type).value;
      made_.push_back(bytes);
    }
  }

  bool input(NodeId node, ValueId value) const {
    const NodeId maker = graph_.value(value).producer;
    return maker.valid() && made_[node.index()] - made_[maker.index()] <= kInCaches;
  }
  bool outputs() const { return !trains_; }

 private:
  const ir::Graph& graph_;
  bool trains_;
  std::vector<std::int64_t> made_;  // bytes before each node
};

// One node with its operands laid out one behind the other.
class Bench {
 public:
  Bench(const ir::Graph& graph, NodeId id, kernels::Kernel& kernel, const Recent& recent)
      : graph_(graph), node_(graph.node(id)), kernel_(kernel), outputs_stay_(recent.outputs()) {
    const ir::Node& node = node_;
    for (const ValueId input : node.inputs) {
      add(input.valid() ? ir::bytes_of(graph.value(input).type) : Bytes(0), inputs_);
      stays_.push_back(input.valid() && recent.input(id, input));
    }
    for (const ValueId output : node.outputs) add(ir::bytes_of(graph.value(output).type), outputs_);
    std::vector<std::int64_t> scratch;
    add(kernel.scratch(), scratch);
    scratch_ = scratch.front();
    const ops::InPlace& rule = ops::definition_of(node).in_place;
    if (!rule.must()) return;
    for (const ops::InPlace::Pair& pair : ops::pairs_of(rule, node)) {
      outputs_[static_cast<std::size_t>(pair.output)] =
          inputs_[static_cast<std::size_t>(pair.input)];
      // Both at one place, whichever that is.
      stays_[static_cast<std::size_t>(pair.input)] = outputs_stay_;
    }
  }

  std::int64_t bytes() const { return bytes_; }

  // What stays in the caches is at `first`, the rest at `now`.
  double run(std::byte* first, std::byte* now) {
    std::vector<const std::byte*> inputs;
    std::vector<std::byte*> outputs;
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      inputs.push_back(node_.inputs[i].valid() ? (stays_[i] ? first : now) + inputs_[i] : nullptr);
    for (const std::int64_t place : outputs_)
      outputs.push_back((outputs_stay_ ? first : now) + place);
    const Stopwatch watch;
    kernel_.run({inputs, outputs, first + scratch_});
    return watch.seconds();
  }

  // Floats near one, everything else zero: no denormals, no index outside.
  void fill(std::byte* at) const {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (!node_.inputs[i].valid()) continue;
      const ir::TensorType& type = graph_.value(node_.inputs[i]).type;
      const auto bytes = static_cast<std::size_t>(ir::bytes_of(type).value);
      if (type.dtype != ir::DType::kF32) {
        std::memset(at + inputs_[i], 0, bytes);
        if (is_encoded_weight(node_, i))
          fill_encoded(node_, {reinterpret_cast<std::uint8_t*>(at + inputs_[i]), bytes});
        continue;
      }
      auto* values = reinterpret_cast<float*>(at + inputs_[i]);
      std::uint32_t state = 0x9e3779b9U + static_cast<std::uint32_t>(i);
      for (std::size_t k = 0; k < bytes / sizeof(float); ++k) {
        state = state * 1664525U + 1013904223U;
        values[k] = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31F;
      }
    }
  }

 private:
  void add(Bytes bytes, std::vector<std::int64_t>& into) {
    into.push_back(bytes_);
    bytes_ += padded(bytes);
  }

  const ir::Graph& graph_;
  const ir::Node& node_;
  kernels::Kernel& kernel_;
  std::vector<std::int64_t> inputs_;
  std::vector<std::int64_t> outputs_;
  std::vector<bool> stays_;  // of the inputs
  bool outputs_stay_;
  std::int64_t scratch_ = 0;
  std::int64_t bytes_ = 0;
};

// What takes no time on bytes that say nothing is estimated instead.
bool can_be_measured(const ir::Graph& graph, const ir::Node& node) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (!is_encoded_weight(node, i)) continue;
    std::vector<std::uint8_t> bytes(
        static_cast<std::size_t>(ir::bytes_of(graph.value(node.inputs[i]).type).value));
    return fill_encoded(node, bytes);
  }
  return true;
}

// All signatures run in one region, touched before the first of them so that no run pays for pages.
class Region {
 public:
  static Result<Region> make(Bytes bytes) {
    PLIMSOLL_TRY(device::CpuArena arena, device::CpuArena::make(bytes));
    std::memset(arena.data(), 0, static_cast<std::size_t>(bytes.value));
    return Region(std::move(arena));
  }

  // The median: a run that was interrupted by another program says nothing about the operator.
  double measure(Bench& bench) const {
    const std::int64_t places = filled_places(bench);
    std::vector<double> runs;
    double seconds = 0;
    while (std::ssize(runs) < kMostRuns &&
           (std::ssize(runs) < kFewestRuns || seconds < kEnoughSeconds)) {
      runs.push_back(next_run(bench, places, std::ssize(runs)));
      seconds += runs.back();
    }
    const auto middle = runs.begin() + std::ssize(runs) / 2;
    std::nth_element(runs.begin(), middle, runs.end());
    return std::max(*middle, 1e-9);
  }

  // Until the fastest ones agree: beside other programs few runs have all cores to themselves.
  double fastest(Bench& bench) const {
    const std::int64_t places = filled_places(bench);
    std::array<double, 3> best;  // ascending
    best.fill(std::numeric_limits<double>::infinity());
    double seconds = 0;
    for (int run = 0; run < kMostFastRuns && seconds < kMostFastSeconds; ++run) {
      const double one = next_run(bench, places, run);
      seconds += one;
      best.back() = std::min(best.back(), one);
      std::sort(best.begin(), best.end());
      if (run >= kFewestFastRuns && best.back() <= kAgreement * best.front()) break;
    }
    return std::max(best.front(), 1e-9);
  }

 private:
  explicit Region(device::CpuArena arena) : arena_(std::move(arena)) {}

  // How many operands lie in the region, each of them read once.
  std::int64_t filled_places(Bench& bench) const {
    const std::int64_t places =
        std::clamp<std::int64_t>(arena_.size().value / bench.bytes(), 1, kMostPlaces);
    for (std::int64_t place = 0; place < places; ++place) bench.fill(at(bench, place));
    bench.run(at(bench, 0), at(bench, 0));
    return places;
  }
  double next_run(Bench& bench, std::int64_t places, std::int64_t run) const {
    return bench.run(at(bench, 0), at(bench, (run + 1) % places));
  }
  std::byte* at(const Bench& bench, std::int64_t place) const {
    return arena_.data() + place * bench.bytes();
  }

  device::CpuArena arena_;
};

}  // namespace

Status measure_operators(const ir::Graph& graph, const MeasureOptions& options,
                         schedule::DeviceProfile& profile) {
  if (options.backend != nullptr && !options.backend->device().computes_on_host())
    return measure_on_device(graph, options, profile);
  std::map<std::string, NodeId> signatures;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    std::string signature = ops::signature(graph, graph.nodes[n]);
    if (options.only_new && profile.measured.contains(signature)) continue;
    signatures.try_emplace(std::move(signature), NodeId(n));
  }
  std::vector<std::unique_ptr<kernels::Kernel>> kernels;
  std::vector<Bench> benches;
  const Recent recent(graph);
  Bytes largest(kBehindCaches);
  std::erase_if(signatures, [&](const auto& signature) {
    return !can_be_measured(graph, graph.node(signature.second));
  });
  for (const auto& [signature, node] : signatures) {
    PLIMSOLL_TRY(std::unique_ptr<kernels::Kernel> kernel,
                 kernels::make_cpu_kernel(graph, graph.node(node), {options.threads}));
    benches.emplace_back(graph, node, *kernel, recent);
    largest = std::max(largest, Bytes(2 * benches.back().bytes()));
    kernels.push_back(std::move(kernel));
  }
  PLIMSOLL_TRY(const Region region, Region::make(largest));
  std::size_t done = 0;
  for (const auto& [signature, node] : signatures) {
    if (options.on_progress) options.on_progress(done, signatures.size());
    Bench& bench = benches[done++];
    profile.measured[signature] = options.fastest ? region.fastest(bench) : region.measure(bench);
  }
  return {};
}

}  // namespace plimsoll::profile
