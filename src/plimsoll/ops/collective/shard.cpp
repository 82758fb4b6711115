#include "plimsoll/ops/collective/shard.h"

#include <algorithm>
#include <numeric>
#include <sstream>
#include <unordered_map>

#include "plimsoll/base/checked.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/expect.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::ops {
namespace {

constexpr std::int64_t kMostRanks = 1 << 20;

std::int64_t run_element_bytes(ir::DType dtype) {
  return ir::bits(dtype) / 8;
}

// `range` of own_part and gather_update: {first element, how many}, or nothing.
Status check_range(const AttributeReader& attributes, int tensors, const ir::Shape& tensor) {
  const ir::Ints range = attributes.integers("range", {});
  if (range.empty()) return {};
  if (range.size() != 2 || tensors != 1)
    return bad_input("range: {} numbers for {} tensors, expects 2 for one", range.size(), tensors);
  const std::int64_t elements = tensor.elements();
  if (range[0] < 0 || range[1] < 1 || range[0] > elements || range[1] > elements - range[0])
    return bad_input("range: {} elements from {} on, of a tensor of {}", range[1], range[0],
                     elements);
  return {};
}

// Elements in the run, of tensors with these.
std::vector<std::int64_t> counts_in_run(std::vector<std::int64_t> counts, const ir::Ints& range) {
  if (range.size() == 2 && counts.size() == 1) counts[0] = range[1];
  return counts;
}

ir::Ints run_range_of(const ir::Node& node) {
  return attributes_of(node).integers("range", {});
}

bool takes_range(std::string_view op) {
  return op == "own_part" || op == "gather_update";
}

// Of inputs from `first` on.
Result<RunParts> checked_run(const Call& call, int first) {
  const AttributeReader& attributes = call.attributes();
  const std::int64_t ranks = attributes.integer("ranks");
  const std::int64_t align = attributes.integer("align");
  if (ranks < 1 || ranks > kMostRanks)
    return bad_input("ranks {}: expects 1 to {}", ranks, kMostRanks);
  if (align < 8 || align > 1 << 20 || (align & (align - 1)) != 0)
    return bad_input("align {}: expects a power of two from 8 to {}", align, 1 << 20);
  std::vector<std::int64_t> counts;
  std::int64_t bytes = 0;
  for (int i = first; i < call.size(); ++i) {
    if (!call.has(i)) return bad_input("input {} is missing", i);
    PLIMSOLL_RETURN_IF_ERROR(expect_float(call, i));
    PLIMSOLL_RETURN_IF_ERROR(expect_dtype(call, i, call.type(first).dtype));
    counts.push_back(call.shape(i).elements());
    bytes += round_up(std::min(ir::bytes_of(call.type(i)).value, kMostOfRun), align);
    if (bytes > kMostOfRun)
      return bad_input("a run of more than {} bytes; ranks share at most that at once", kMostOfRun);
  }
  return run_parts(std::move(counts), call.type(first).dtype, align, ranks);
}

// The run of whole tensors, or of a range of one.
Result<RunParts> checked_range(const Call& call, int first) {
  PLIMSOLL_TRY(const RunParts whole, checked_run(call, first));
  PLIMSOLL_RETURN_IF_ERROR(check_range(call.attributes(), call.size() - first, call.shape(first)));
  return run_parts(counts_in_run(whole.count, call.attributes().integers("range", {})),
                   call.type(first).dtype, call.attributes().integer("align"),
                   call.attributes().integer("ranks"));
}

Result<std::vector<TensorType>> infer_part(const Call& call) {
  PLIMSOLL_TRY(const RunParts run, checked_range(call, 0));
  return std::vector{TensorType{call.type(0).dtype, {run.part}, {}}};
}

Result<std::vector<TensorType>> infer_scatter(const Call& call) {
  PLIMSOLL_TRY(const RunParts run, checked_run(call, 0));
  if (const ir::Ints of = call.attributes().integers("of", {}); !of.empty()) {
    PLIMSOLL_TRY(const ir::Shape whole, ir::Shape::make(std::span(of).subspan(1)));
    if (call.size() != 1 || of[0] < 0 || of[0] > whole.elements() ||
        run.count[0] > whole.elements() - of[0])
      return bad_input("of: {} elements from {} on, of a tensor of {}", run.count[0], of[0],
                       ir::to_string(whole));
  }
  return std::vector{TensorType{call.type(0).dtype, {run.part}, {}}};
}

Result<std::vector<TensorType>> infer_gather_update(const Call& call) {
  PLIMSOLL_TRY(const RunParts run, checked_range(call, 1));
  PLIMSOLL_RETURN_IF_ERROR(expect_type(call, 0, call.type(1).dtype, {run.part}));
  std::vector<TensorType> out;
  for (int i = 1; i < call.size(); ++i) out.push_back(call.type(i));
  return out;
}

Result<std::vector<ir::Shape>> shapes_of(const ir::Ints& numbers) {
  std::vector<ir::Shape> out;
  for (std::size_t at = 0; at < numbers.size();) {
    const std::int64_t rank = numbers[at++];
    if (rank < 0 || rank > ir::kMaxRank || static_cast<std::size_t>(rank) > numbers.size() - at)
      return bad_input("shapes: a tensor of {} axes, with {} numbers left", rank,
                       numbers.size() - at);
    std::int64_t elements = 1;
    for (std::size_t i = 0; i < static_cast<std::size_t>(rank); ++i) {
      const std::int64_t extent = numbers[at + i];
      const auto product = extent < 0 ? std::nullopt : checked_multiply(elements, extent);
      if (!product || *product > kMostOfRun)
        return bad_input("shapes: an extent of {} is too large or negative", extent);
      elements = *product;
    }
    out.emplace_back(std::span(numbers).subspan(at, static_cast<std::size_t>(rank)));
    at += static_cast<std::size_t>(rank);
  }
  if (out.empty() || out.size() > static_cast<std::size_t>(kMostOfRunTensors))
    return bad_input("shapes: of {} tensors, expects 1 to {}", out.size(), kMostOfRunTensors);
  return out;
}

Result<std::vector<TensorType>> infer_gather_weights(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_float(call, 0));
  PLIMSOLL_TRY(const std::vector<ir::Shape> shapes,
               shapes_of(call.attributes().integers("shapes", {})));
  std::vector<TensorType> out;
  for (const ir::Shape& shape : shapes) out.push_back({call.type(0).dtype, shape, {}});
  std::vector<const TensorType*> types;
  for (const TensorType& type : out) types.push_back(&type);
  PLIMSOLL_TRY(const RunParts run, checked_run(Call(std::move(types), call.attributes()), 0));
  PLIMSOLL_RETURN_IF_ERROR(expect_shape(call, 0, {run.part}));
  return out;
}

// Of operators that have none, too.
ir::Ints run_range_of(const Evaluation& e) {
  return e.attributes.given().integers("range", {});
}

std::int64_t first_in_tensor(const Evaluation& e) {
  const ir::Ints range = run_range_of(e);
  return range.empty() ? 0 : range[0];
}

RunParts parts_of_arrays(const Evaluation& e, std::span<const Array> arrays) {
  std::vector<std::int64_t> counts;
  for (const Array& array : arrays) counts.push_back(std::ssize(array.reals));
  counts = counts_in_run(std::move(counts), run_range_of(e));
  return run_parts(std::move(counts), arrays.front().type.dtype, e.attributes.integer("align"),
                   e.attributes.integer("ranks"));
}

RunParts parts_of_inputs(const Evaluation& e) {
  std::vector<std::int64_t> counts;
  for (const Array* array : e.inputs) counts.push_back(std::ssize(array->reals));
  counts = counts_in_run(std::move(counts), run_range_of(e));
  return run_parts(std::move(counts), e.in(0).type.dtype, e.attributes.integer("align"),
                   e.attributes.integer("ranks"));
}

// Rank 0's part, times what sums of ranks that hold the same are.
void take_part(const Evaluation& e, double factor) {
  const RunParts run = parts_of_inputs(e);
  for (std::size_t t = 0; t < e.inputs.size(); ++t) {
    const std::vector<double>& from = e.inputs[t]->reals;
    for (std::int64_t i = 0; i < run.count[t] && run.first[t] + i < run.part; ++i)
      e.out().reals[static_cast<std::size_t>(run.first[t] + i)] =
          factor * from[static_cast<std::size_t>(first_in_tensor(e) + i)];
  }
}

void evaluate_scatter_sums(const Evaluation& e) {
  take_part(e, static_cast<double>(e.attributes.integer("ranks")));
}

void evaluate_own_part(const Evaluation& e) {
  take_part(e, 1);
}

void evaluate_gather_update(const Evaluation& e) {
  const RunParts run = parts_of_arrays(e, e.outputs);
  for (std::size_t t = 0; t < e.outputs.size(); ++t) {
    e.outputs[t].reals = e.inputs[t + 1]->reals;
    for (std::int64_t i = 0; i < run.count[t] && run.first[t] + i < run.part; ++i)
      e.outputs[t].reals[static_cast<std::size_t>(first_in_tensor(e) + i)] =
          e.in(0).reals[static_cast<std::size_t>(run.first[t] + i)];
  }
}

void evaluate_gather_weights(const Evaluation& e) {
  const RunParts run = parts_of_arrays(e, e.outputs);
  for (std::size_t t = 0; t < e.outputs.size(); ++t) {
    for (std::int64_t i = 0; i < run.count[t]; ++i)
      e.outputs[t].reals[static_cast<std::size_t>(i)] =
          e.in(0).reals[static_cast<std::size_t>((run.first[t] + i) % run.part)];
  }
}

std::vector<InPlace::Pair> each_over_its_weight() {
  std::vector<InPlace::Pair> out;
  for (int i = 0; i + 1 < kMostOfRunTensors; ++i) out.push_back({i, i + 1});
  return out;
}

OpDefinition shard_definition(std::string_view name, Arity inputs, Arity outputs, InferRule infer,
                              InPlace in_place, EvaluateRule evaluate) {
  return {.name = name,
          .inputs = inputs,
          .outputs = outputs,
          .attributes = {attribute::integer("ranks", 1), attribute::integer("align", kRunAlignment),
                         attribute::choice("order", {"any", "fixed"})},
          .infer = infer,
          .gradient = Gradient::none(),
          .in_place = std::move(in_place),
          .cost = bytes_cost,
          .recompute = Recompute::kNever,
          .layout = LayoutRule::kPlain,
          .evaluate = evaluate};
}

// Nothing where the line is not as inits_attribute() writes it.
ir::Init init_of(const std::string& line) {
  std::istringstream text(line);
  int kind = 0;
  ir::Init out;
  if (!(text >> kind >> out.a >> out.b) || kind < 0 ||
      kind > static_cast<int>(ir::Init::Kind::kFile))
    return {};
  out.kind = static_cast<ir::Init::Kind>(kind);
  return out;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

}  // namespace

RunParts run_parts(std::vector<std::int64_t> counts, ir::DType dtype, std::int64_t align,
                   std::int64_t ranks) {
  const std::int64_t unit = std::max<std::int64_t>(1, align / run_element_bytes(dtype));
  RunParts out;
  out.count = std::move(counts);
  for (const std::int64_t count : out.count) {
    const std::int64_t first = round_up(out.end, unit);
    out.first.push_back(first);
    out.end = first + count;
  }
  out.part = round_up((out.end + ranks - 1) / ranks, unit);
  return out;
}

std::int64_t first_of_range(const ir::Node& node) {
  const ir::Ints range = takes_range(node.op) ? run_range_of(node) : ir::Ints{};
  return range.empty() ? 0 : range[0];
}

RunParts run_parts(const ir::Graph& graph, const ir::Node& node) {
  const AttributeReader attributes = attributes_of(node);
  const bool gathers = node.op.starts_with("gather");
  const std::vector<ValueId>& tensors = gathers ? node.outputs : node.inputs;
  std::vector<std::int64_t> counts;
  for (const ValueId id : tensors) counts.push_back(graph.value(id).type.shape.elements());
  if (takes_range(node.op)) counts = counts_in_run(std::move(counts), run_range_of(node));
  return run_parts(std::move(counts), graph.value(tensors.front()).type.dtype,
                   attributes.integer("align"), attributes.integer("ranks"));
}

Bytes run_bytes(const ir::Graph& graph, const ir::Node& node) {
  const RunParts run = run_parts(graph, node);
  const std::int64_t elements =
      std::accumulate(run.count.begin(), run.count.end(), std::int64_t{0});
  return Bytes(elements * run_element_bytes(graph.value(node.outputs.front()).type.dtype));
}

bool is_shard_operator(std::string_view op) {
  return op == "scatter_sums" || op == "own_part" || op == "gather_update" ||
         op == "gather_weights";
}

std::vector<std::int64_t> shapes_attribute(std::span<const ir::Shape> shapes) {
  std::vector<std::int64_t> out;
  for (const ir::Shape& shape : shapes) {
    out.push_back(shape.rank());
    out.insert(out.end(), shape.begin(), shape.end());
  }
  return out;
}

std::string inits_attribute(std::span<const ir::Init> inits) {
  std::string out;
  for (const ir::Init& init : inits)
    out += fmt::format("{}{} {} {}", out.empty() ? "" : "\n", static_cast<int>(init.kind), init.a,
                       init.b);
  return out;
}

namespace {

bool is_update_of_part(const ir::Node& node) {
  return (node.op == "adamw" || node.op == "adam" || node.op == "momentum") &&
         node.attributes.find("first") != nullptr;
}

// Moments of parts of weights, which one process has all of (ops/update/update.h).
void add_moments_of_parts(const ir::Graph& graph, const ir::Node& node,
                          std::vector<ShardedState>& out) {
  const AttributeReader attributes = attributes_of(node);
  const std::vector<std::string> names = lines_of(node.attributes.text("of", ""));
  for (std::size_t i = 0; i < names.size() && i + 2 < node.inputs.size(); ++i) {
    const ValueId id = node.inputs[i + 2];
    if (!id.valid() || !ir::is_persistent(graph.value(id).kind)) continue;
    const std::int64_t count = graph.value(id).type.shape.elements();
    ShardedState::Member member{names[i], graph.value(node.inputs[0]).type.shape};
    member.begin = attributes.integer("first");
    member.count = count;
    out.push_back({id, 1, count, {std::move(member)}});
  }
}

}  // namespace

std::vector<ShardedState> sharded_state(const ir::Graph& graph) {
  // Whatever an update of a part reads besides the gradient is a part too.
  std::unordered_map<ValueId, const ir::Node*> scattered;
  for (const ir::Node& node : graph.nodes) {
    if (node.op == "scatter_sums") scattered.emplace(node.outputs.front(), &node);
  }
  std::vector<ShardedState> out;
  for (const ir::Node& node : graph.nodes) {
    if (is_update_of_part(node)) add_moments_of_parts(graph, node, out);
    if (node.phase != ir::Phase::kUpdate || node.inputs.size() < 2) continue;
    ValueId gradient = node.inputs[1];
    // Sums of micro-batches: parts that were added up.
    while (gradient.valid() && !scattered.contains(gradient) &&
           graph.value(gradient).producer.valid() &&
           graph.node(graph.value(gradient).producer).op == "add")
      gradient = graph.node(graph.value(gradient).producer).inputs[0];
    const auto found = scattered.find(gradient);
    if (found == scattered.end()) continue;
    const ir::Node& scatter = *found->second;
    const RunParts run = run_parts(graph, scatter);
    const ir::Attributes& given = attributes_of(scatter).given();
    const std::vector<std::string> names = lines_of(given.text("members", ""));
    const std::vector<std::string> inits = lines_of(given.text("inits", ""));
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      if (i == 1 || !id.valid() || !ir::is_persistent(graph.value(id).kind) ||
          graph.value(id).type.shape != ir::Shape{run.part})
        continue;
      ShardedState state{id, attributes_of(scatter).integer("ranks"), run.part, {}};
      const std::string end = i == 0                  ? ""
                              : node.op == "momentum" ? ".momentum"
                              : i == 2                ? ".m"
                                                      : ".v";
      for (std::size_t t = 0; t < scatter.inputs.size() && t < names.size(); ++t) {
        ShardedState::Member member{names[t] + end, graph.value(scatter.inputs[t]).type.shape,
                                    run.first[t],
                                    i == 0 && t < inits.size() ? init_of(inits[t]) : ir::Init{}};
        member.count = run.count[t];
        if (const ir::Ints of = attributes_of(scatter).integers("of", {}); !of.empty()) {
          member.begin = of[0];
          member.shape = ir::Shape(std::span(of).subspan(1));
        }
        state.members.push_back(std::move(member));
      }
      out.push_back(std::move(state));
    }
  }
  return out;
}

std::vector<OpDefinition> shard_definitions() {
  auto scatter = shard_definition("scatter_sums", between(1, kMostOfRunTensors), exactly(1),
                                  infer_scatter, InPlace::never(), evaluate_scatter_sums);
  scatter.attributes.push_back(attribute::integers("of"));
  scatter.attributes.push_back(attribute::text("members"));
  scatter.attributes.push_back(attribute::text("inits"));
  auto gather = shard_definition("gather_weights", exactly(1), between(1, kMostOfRunTensors),
                                 infer_gather_weights, InPlace::never(), evaluate_gather_weights);
  gather.attributes.push_back(attribute::integers("shapes"));
  auto own = shard_definition("own_part", between(1, kMostOfRunTensors), exactly(1), infer_part,
                              InPlace::never(), evaluate_own_part);
  auto update = shard_definition("gather_update", between(2, kMostOfRunTensors),
                                 between(1, kMostOfRunTensors - 1), infer_gather_update,
                                 InPlace::update(each_over_its_weight()), evaluate_gather_update);
  own.attributes.push_back(attribute::integers("range"));
  update.attributes.push_back(attribute::integers("range"));
  return {std::move(scatter), std::move(own), std::move(update), std::move(gather)};
}

}  // namespace plimsoll::ops
