// Control flow that is decided at import, and what is refused.
#include "plimsoll/model/onnx/convert/building_blocks.h"
#include "plimsoll/model/onnx/convert/operator_table.h"

namespace plimsoll::model::onnx {
namespace {

Result<const GraphFile*> body_of(OperatorCall& call, std::string_view name) {
  const AttributeFile* attribute = call.attribute(name);
  if (attribute == nullptr || !attribute->has_g) return bad_input("its {} is missing", name);
  PLIMSOLL_TRY(GraphFile graph, read_graph(attribute->g));
  return &call.importer().keep(std::move(graph));
}

// Both branches are built and each output selected: right for pure operators, at the price of both.
Status select_branches(OperatorCall& call) {
  PLIMSOLL_TRY(const GraphFile* then_graph, body_of(call, "then_branch"));
  PLIMSOLL_TRY(const GraphFile* else_graph, body_of(call, "else_branch"));
  PLIMSOLL_TRY(const auto when_true, call.importer().inline_graph(*then_graph, {}, call.scope()));
  PLIMSOLL_TRY(const auto when_false, call.importer().inline_graph(*else_graph, {}, call.scope()));
  if (when_true.size() != when_false.size())
    return bad_input("its branches make different numbers of outputs");
  for (std::size_t i = 0; i < when_true.size(); ++i) {
    PLIMSOLL_TRY(const Var a, call.importer().in_graph(when_true[i]));
    PLIMSOLL_TRY(const Var b, call.importer().in_graph(when_false[i]));
    if (a.type() != b.type()) {
      return bad_input("its condition is not a constant and output {} is {} or {}", i,
                       ir::to_string(a.type()), ir::to_string(b.type()));
    }
    call.out(static_cast<int>(i),
             call.builder().call1("where", {reshape_to(call.in(0), {}), a, b}));
  }
  return {};
}

Status if_then_else(OperatorCall& call) {
  if (!call.has(0)) return bad_input("its condition is missing");
  const Array* condition = call.known(0);
  if (call.shape(0).elements() != 1)
    return bad_input("its condition has {} elements", call.shape(0).elements());
  if (condition == nullptr) return select_branches(call);
  PLIMSOLL_TRY(const GraphFile* graph,
               body_of(call, condition->number(0) != 0 ? "then_branch" : "else_branch"));
  PLIMSOLL_TRY(const auto made, call.importer().inline_graph(*graph, {}, call.scope()));
  for (std::size_t i = 0; i < made.size(); ++i) call.out_alias(static_cast<int>(i), made[i]);
  return {};
}

// What a loop collects: one tensor per round, stacked along a new axis.
Result<Var> stacked(OperatorCall& call, const std::vector<TensorId>& rounds, int axis,
                    bool reversed) {
  std::vector<Var> parts;
  for (const TensorId round : rounds) {
    PLIMSOLL_TRY(const Var part, call.importer().in_graph(round));
    if (part.rank() >= ir::kMaxRank || axis > part.rank())
      return bad_input("cannot stack along axis {}", axis);
    ir::Ints shape = dims_of(part.shape());
    shape.insert(shape.begin() + axis, 1);
    parts.push_back(reshape_to(part, shape));
  }
  if (reversed) std::reverse(parts.begin(), parts.end());
  return concat_all(parts, axis);
}

Status loop(OperatorCall& call) {
  PLIMSOLL_TRY(const GraphFile* body, body_of(call, "body"));
  std::int64_t trips = kMostSteps;
  if (call.has(0)) {
    PLIMSOLL_TRY(trips, call.known_integer(0, "the trip count", 0));
  }
  bool going = true;
  if (call.has(1)) {
    PLIMSOLL_TRY(const Array* condition, call.must_know(1, "the condition"));
    going = condition->elements() >= 1 && condition->number(0) != 0;
  }
  std::vector<TensorId> carried;
  for (int i = 2; i < call.inputs(); ++i) carried.push_back(call.input(i));
  if (body->outputs.size() < carried.size() + 1) return bad_input("its body makes too few outputs");
  std::vector<std::vector<TensorId>> collected(body->outputs.size() - carried.size() - 1);
  for (std::int64_t i = 0; i < trips && going; ++i) {
    if (i >= kMostSteps) return bad_input("runs more than {} rounds", kMostSteps);
    std::vector<TensorId> inputs{
        call.importer().add_known("round", std::make_shared<Array>(Array::of_integers({}, {i}))),
        call.importer().add_known(
            "go_on", std::make_shared<Array>(Array::of_integers({}, {1}, ir::DType::kBool)))};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    PLIMSOLL_TRY(const auto made, call.importer().inline_graph(*body, inputs, call.scope()));
    PLIMSOLL_TRY(const Array* condition, call.importer().known(made.front()));
    if (condition == nullptr || condition->elements() != 1) {
      return bad_input(
          "its condition depends on data: only loops with a known number of rounds are supported");
    }
    going = condition->number(0) != 0;
    for (std::size_t k = 0; k < carried.size(); ++k) carried[k] = made[k + 1];
    for (std::size_t k = 0; k < collected.size(); ++k)
      collected[k].push_back(made[k + 1 + carried.size()]);
  }
  for (std::size_t k = 0; k < carried.size(); ++k) call.out_alias(static_cast<int>(k), carried[k]);
  for (std::size_t k = 0; k < collected.size(); ++k) {
    const int at = static_cast<int>(carried.size() + k);
    if (!call.wants(at)) continue;
    if (collected[k].empty())
      return bad_input("output {} of a loop without rounds has no shape", at);
    PLIMSOLL_TRY(const Var y, stacked(call, collected[k], 0, false));
    call.out(at, y);
  }
  return {};
}

// Scan walks over its last inputs slice by slice; the number of slices is their extent.
Status scan(OperatorCall& call) {
  if (call.version() < 9) return bad_input("Scan of operator set 8 is not supported");
  PLIMSOLL_TRY(const GraphFile* body, body_of(call, "body"));
  const std::int64_t scans = call.integer("num_scan_inputs", 0);
  if (scans < 1 || scans > call.inputs()) return bad_input("num_scan_inputs is {}", scans);
  const int states = call.inputs() - static_cast<int>(scans);
  if (static_cast<int>(body->outputs.size()) < states)
    return bad_input("its body makes too few outputs");
  const auto collects = body->outputs.size() - static_cast<std::size_t>(states);
  const ir::Ints axes =
      call.integers("scan_input_axes", ir::Ints(static_cast<std::size_t>(scans), 0));
  const ir::Ints backwards =
      call.integers("scan_input_directions", ir::Ints(static_cast<std::size_t>(scans), 0));
  const ir::Ints out_axes = call.integers("scan_output_axes", ir::Ints(collects, 0));
  const ir::Ints out_backwards = call.integers("scan_output_directions", ir::Ints(collects, 0));
  if (axes.size() != static_cast<std::size_t>(scans) || backwards.size() != axes.size() ||
      out_axes.size() != collects || out_backwards.size() != collects) {
    return bad_input("its axes or directions have the wrong length");
  }
  std::vector<TensorId> carried;
  for (int i = 0; i < states; ++i) carried.push_back(call.input(i));
  std::vector<std::vector<TensorId>> collected(collects);
  std::int64_t rounds = 1;
  for (std::int64_t i = 0; i < rounds; ++i) {
    std::vector<TensorId> inputs = carried;
    for (std::int64_t k = 0; k < scans; ++k) {
      const auto place = static_cast<std::size_t>(k);
      const Var x = call.in(states + static_cast<int>(k));
      if (!x) return bad_input("a scanned input is missing");
      PLIMSOLL_TRY(const int axis, normal_axis_of(axes[place], x.rank()));
      if (k == 0) rounds = x.dim(axis);
      if (x.dim(axis) != rounds || rounds > kMostSteps)
        return bad_input("its scanned inputs have different or too many slices");
      if (rounds == 0) return bad_input("scans over nothing");
      const Var part = select(x, axis, backwards[place] != 0 ? rounds - 1 - i : i);
      if (call.builder().error()) return {};
      inputs.push_back(call.importer().add({.name = "slice", .type = part.type(), .var = part}));
    }
    PLIMSOLL_TRY(const auto made, call.importer().inline_graph(*body, inputs, call.scope()));
    for (std::size_t k = 0; k < carried.size(); ++k) carried[k] = made[k];
    for (std::size_t k = 0; k < collects; ++k) collected[k].push_back(made[carried.size() + k]);
  }
  for (std::size_t k = 0; k < carried.size(); ++k) call.out_alias(static_cast<int>(k), carried[k]);
  for (std::size_t k = 0; k < collects; ++k) {
    const int at = static_cast<int>(carried.size() + k);
    if (!call.wants(at)) continue;
    const int rank = call.importer().tensor(collected[k].front()).type.shape.rank() + 1;
    PLIMSOLL_TRY(const int axis, normal_axis_of(out_axes[k], rank));
    PLIMSOLL_TRY(const Var y, stacked(call, collected[k], axis, out_backwards[k] != 0));
    call.out(at, y);
  }
  return {};
}

Status no_strings(OperatorCall&) {
  return bad_input("strings are not supported");
}

}  // namespace

std::vector<Operator> control_operators() {
  return {
      {"If", if_then_else, "else_branch then_branch", {}, false},
      {"Loop", loop, "body", {}, false},
      {"Scan",
       scan,
       "body num_scan_inputs scan_input_axes scan_input_directions scan_output_axes "
       "scan_output_directions",
       {},
       false},
      {"StringNormalizer", no_strings, {}, {}, false},
      {"StringConcat", no_strings, {}, {}, false},
      {"StringSplit", no_strings, {}, {}, false},
      {"RegexFullMatch", no_strings, {}, {}, false},
      {"TfIdfVectorizer", no_strings, {}, {}, false},
  };
}

}  // namespace plimsoll::model::onnx
