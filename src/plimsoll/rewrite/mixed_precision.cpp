#include "plimsoll/rewrite/mixed_precision.h"

#include <algorithm>
#include <array>

#include "plimsoll/ops/builder.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::rewrite {
namespace {

using ops::Var;

constexpr std::array<std::string_view, 31> kNarrowOperators = {
    "matmul",     "linear",        "conv",       "conv_transpose",
    "attention",  "attention_qkv", "add",        "sub",
    "mul",        "neg",           "maximum",    "minimum",
    "relu",       "leaky_relu",    "elu",        "selu",
    "celu",       "hard_sigmoid",  "gelu",       "silu",
    "mish",       "hard_swish",    "sigmoid",    "tanh",
    "add_relu",   "dropout",       "batch_norm", "batch_norm_inference",
    "layer_norm", "rms_norm",      "softmax"};
constexpr std::array<std::string_view, 17> kMovingOperators = {
    "reshape", "transpose", "expand",         "slice",          "slice_assign",    "pad",
    "concat",  "split",     "tile",           "gather",         "gather_elements", "gather_nd",
    "where",   "identity",  "depth_to_space", "space_to_depth", "max_pool"};

template <typename Names>
bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Narrowing {
 public:
  Narrowing(const ir::Graph& from, ir::DType compute)
      : from_(from), compute_(compute), builder_(from.name), forms_(from.values.size()) {}

  Result<ir::Graph> run() {
    for (std::size_t v = 0; v < from_.values.size(); ++v) copy_source(ValueId(v));
    for (const ir::Node& node : from_.nodes) {
      PLIMSOLL_RETURN_IF_ERROR(copy_node(node));
      if (builder_.error()) return tl::unexpected<Error>(*builder_.error());
    }
    std::vector<Var> outputs;
    builder_.set_phase(ir::Phase::kForward);
    builder_.set_layer("");
    for (const ValueId id : from_.outputs) {
      const Var out = in_own_type(id);
      builder_.graph().value(out.id()).name = from_.value(id).name;
      outputs.push_back(out);
    }
    for (const ir::Update& update : from_.updates)
      builder_.update(forms_[update.source.index()].made, in_own_type(update.next));
    if (builder_.error()) return tl::unexpected<Error>(*builder_.error());
    return builder_.finish(outputs);
  }

 private:
  // A value of the original as it was made here, and its casts.
  struct Forms {
    Var made;
    Var wide;
    Var narrow;
  };

  bool is_wide(ValueId id) const { return from_.value(id).type.dtype == ir::DType::kF32; }

  void copy_source(ValueId id) {
    const ir::Value& value = from_.value(id);
    if (!ir::is_source(value.kind)) return;
    const ValueId made =
        builder_.graph().add_source(value.name, value.kind, value.type, value.init);
    if (const auto* data = from_.data(id)) builder_.graph().constants.push_back({made, *data});
    forms_[id.index()].made = builder_.var(made);
  }

  Var cast_once(ValueId id, ir::DType dtype, Var Forms::*form) {
    Forms& forms = forms_[id.index()];
    if (forms.made.dtype() == dtype) return forms.made;
    if (!(forms.*form)) {
      forms.*form = builder_.call1("cast", {forms.made}, {{"to", std::string(ir::name(dtype))}});
    }
    return forms.*form;
  }

  Var in_own_type(ValueId id) { return cast_once(id, from_.value(id).type.dtype, &Forms::wide); }

  // Statistics and other states are never narrowed.
  Var input_of(ValueId id, bool narrow) {
    if (!id.valid()) return {};
    if (!is_wide(id)) return forms_[id.index()].made;
    const bool state = from_.value(id).kind == ir::ValueKind::kState;
    return narrow && !state ? cast_once(id, compute_, &Forms::narrow) : in_own_type(id);
  }

  bool wants_narrow(const ir::Node& node) const {
    if (contains(kNarrowOperators, node.op)) return true;
    if (!contains(kMovingOperators, node.op)) return false;
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
      return id.valid() && is_wide(id) && forms_[id.index()].made.dtype() == compute_;
    });
  }

  // Whether the operator takes these types.
  bool is_allowed(const ir::Node& node, const std::vector<Var>& inputs) const {
    ir::Node tried = node;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      tried.inputs[i] = inputs[i] ? inputs[i].id() : ValueId();
    return ops::infer(builder_.graph(), tried).has_value();
  }

  Status copy_node(const ir::Node& node) {
    builder_.set_layer(node.layer);
    builder_.set_phase(node.phase);
    const auto inputs_in = [&](bool narrow) {
      std::vector<Var> out;
      for (const ValueId id : node.inputs) out.push_back(input_of(id, narrow));
      return out;
    };
    std::vector<Var> inputs;
    if (wants_narrow(node)) inputs = inputs_in(true);
    if (inputs.empty() || !is_allowed(node, inputs)) inputs = inputs_in(false);
    if (builder_.error()) return {};
    const std::vector<Var> made = builder_.call(node.op, inputs, node.attributes);
    for (std::size_t i = 0; i < node.outputs.size() && i < made.size(); ++i) {
      forms_[node.outputs[i].index()].made = made[i];
      if (made[i]) builder_.graph().value(made[i].id()).name = from_.value(node.outputs[i]).name;
    }
    return {};
  }

  const ir::Graph& from_;
  ir::DType compute_;
  ops::Builder builder_;
  std::vector<Forms> forms_;  // by value of the original
};

}  // namespace

Result<ir::Graph> mixed_precision(const ir::Graph& graph, ir::DType compute) {
  PLIMSOLL_TRY(ir::Graph out, Narrowing(graph, compute).run());
  PLIMSOLL_RETURN_IF_ERROR(ops::verify(out));
  return out;
}

}  // namespace plimsoll::rewrite
