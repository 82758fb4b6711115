// softmax(q k^T * scale + mask) v, over heads, as one operator.
//
// The core is matmul(softmax(scores), v); behind the scores lie, in any order, a factor (on the
// scores, on q, on k or on both), a mask that is added, and a choice between scores and a very
// negative number. q, k and v are taken as [B,H,S,D]; the transposes and reshapes that brought them
// there cancel against those inserted here (merge_nodes.cpp). Heads of keys and values repeated for
// groups of queries are taken unrepeated.
//
// A constant mask that hides exactly the future is causality, which needs no memory.
#include <cmath>
#include <limits>

#include "plimsoll/ops/evaluation/array.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/pattern.h"
#include "plimsoll/rewrite/recover.h"

namespace plimsoll::rewrite {
namespace {

// Below this a score is as good as hidden.
constexpr double kHidden = -1e4;

struct Scores {
  ValueId q;  // [B,H,Sq,D]
  ValueId k;  // [B,H,D,Sk], or [B,H,Sk,D] when `k_rows`
  bool k_rows = false;
  double scale = 1;
  ValueId mask;       // added; invalid when there is none
  ValueId condition;  // true where a score counts; invalid when there is none
  double hidden = 0;  // what stands where it does not
};

const ir::Shape& shape_of(const GraphEditor& edit, ValueId value) {
  return edit.graph().value(value).type.shape;
}

// Factors on an operand of the product go to the scale.
ValueId without_factor(const GraphEditor& edit, ValueId value, double& scale) {
  if (const auto times = with_number(edit, value, "mul")) {
    scale *= times->number;
    return times->other;
  }
  if (const auto over = with_number(edit, value, "div"); over && over->number != 0) {
    scale /= over->number;
    return over->other;
  }
  return value;
}

std::optional<Scores> peel(const GraphEditor& edit, ValueId value, int depth = 0) {
  const ir::Node* node = edit.producer(value);
  if (node == nullptr || depth > 4 || !edit.has_one_reader(value)) return std::nullopt;
  if (node->op == "matmul") {
    if (ops::attributes_of(*node).integer("trans_a") != 0) return std::nullopt;
    Scores out;
    out.q = without_factor(edit, node->inputs[0], out.scale);
    out.k = without_factor(edit, node->inputs[1], out.scale);
    out.k_rows = ops::attributes_of(*node).integer("trans_b") != 0;
    return out;
  }
  double factor = 1;
  if (const ValueId inner = without_factor(edit, value, factor); inner != value) {
    auto out = peel(edit, inner, depth + 1);
    if (!out || out->mask.valid() || out->condition.valid()) return std::nullopt;
    out->scale *= factor;
    return out;
  }
  if (node->op == "add") {
    for (std::size_t side = 0; side < 2; ++side) {
      if (shape_of(edit, node->inputs[side]) != shape_of(edit, value)) continue;
      auto out = peel(edit, node->inputs[side], depth + 1);
      if (!out || out->mask.valid()) continue;
      out->mask = node->inputs[1 - side];
      return out;
    }
  }
  if (node->op == "where") {
    const auto hidden = number_of(edit, node->inputs[2]);
    if (!hidden || *hidden > kHidden || shape_of(edit, node->inputs[1]) != shape_of(edit, value))
      return std::nullopt;
    auto out = peel(edit, node->inputs[1], depth + 1);
    if (!out || out->condition.valid() || out->mask.valid()) return std::nullopt;
    out->condition = node->inputs[0];
    out->hidden = *hidden;
    return out;
  }
  return std::nullopt;
}

// P when value = where(is_nan(P), 0, P): rows that see nothing give zeros.
ValueId without_nan_guard(const GraphEditor& edit, ValueId value) {
  const ir::Node* guard = made_by(edit, value, "where");
  if (guard == nullptr || !is_number(edit, guard->inputs[1], 0, 0)) return value;
  const ir::Node* test = made_by(edit, guard->inputs[0], "is_nan");
  return test != nullptr && test->inputs[0] == guard->inputs[2] ? guard->inputs[2] : value;
}

std::optional<ops::Array> content_of(const GraphEditor& edit, ValueId value) {
  const ir::Value& v = edit.graph().value(value);
  if (v.kind != ir::ValueKind::kConstant) return std::nullopt;
  auto array = ops::Array::from_bytes(v.type, *edit.graph().data(value));
  return array ? std::optional(std::move(*array)) : std::nullopt;
}

// Whether every matrix [Sq,Sk] of the constant shows the past and hides the future.
template <typename Seen>
bool is_causal(const ops::Array& array, std::int64_t rows, std::int64_t columns, Seen seen) {
  const ir::Shape& shape = array.type.shape;
  if (shape.rank() < 2 || shape[shape.rank() - 2] != rows || shape[shape.rank() - 1] != columns ||
      rows > columns)
    return false;
  for (std::int64_t i = 0; i < array.elements(); ++i) {
    const std::int64_t row = i / columns % rows;
    const int state = seen(array.number(i));
    if (state != (i % columns <= row + columns - rows ? 1 : 0)) return false;
  }
  return true;
}

class AttentionBuilder {
 public:
  AttentionBuilder(GraphEditor& edit, NodeId at) : edit_(edit), at_(at) {}

  Result<ValueId> insert(std::string_view op, std::vector<ValueId> inputs,
                         ir::Attributes attributes) {
    PLIMSOLL_TRY(const auto made, edit_.insert(at_, op, std::move(inputs), std::move(attributes)));
    return made[0];
  }
  Result<ValueId> reshape(ValueId x, const ir::Ints& shape) {
    return insert("reshape", {x}, {{"shape", shape}});
  }
  Result<ValueId> transpose(ValueId x, const ir::Ints& perm) {
    return insert("transpose", {x}, {{"perm", perm}});
  }

  // [B,H,S,D] as [B,S,H*D].
  Result<ValueId> joined(ValueId x) {
    const ir::Shape shape = shape_of(edit_, x);
    PLIMSOLL_TRY(const ValueId turned, transpose(x, {0, 2, 1, 3}));
    return reshape(turned, {shape[0], shape[2], shape[1] * shape[3]});
  }
  // [B,H,D,S] as [B,H,S,D].
  Result<ValueId> rows_of_keys(const Scores& scores) {
    if (scores.k_rows) return scores.k;
    return transpose(scores.k, {0, 1, 3, 2});
  }

 private:
  GraphEditor& edit_;
  NodeId at_;
};

// k [B,Hk,S,D] when x = k repeated to [B,H,S,D].
ValueId unrepeated(const GraphEditor& edit, ValueId x) {
  const ir::Node* join = made_by(edit, x, "reshape");
  const ir::Node* wide = join != nullptr ? made_by(edit, join->inputs[0], "expand") : nullptr;
  if (wide == nullptr) return x;
  const ir::Shape& from = shape_of(edit, wide->inputs[0]);
  const ir::Shape& to = shape_of(edit, wide->outputs[0]);
  const ir::Shape& out = shape_of(edit, x);
  const bool fits = from.rank() == 5 && out.rank() == 4 && from[2] == 1 && from[0] == to[0] &&
                    from[1] == to[1] && from[3] == to[3] && from[4] == to[4] && out[0] == to[0] &&
                    out[1] == to[1] * to[2] && out[2] == to[3];
  return fits ? wide->inputs[0] : x;
}

// A mask in a form the operator takes, and whether it is just causality.
struct Mask {
  ValueId value;
  bool causal = false;
  bool usable = true;
};

Result<Mask> mask_of(GraphEditor& edit, AttentionBuilder& build, const Scores& scores,
                     std::int64_t rows, std::int64_t columns) {
  Mask out;
  if (scores.condition.valid()) {
    const auto content = content_of(edit, scores.condition);
    if (content && is_causal(*content, rows, columns, [](double v) { return v != 0 ? 1 : 0; })) {
      out.causal = true;
    } else {
      const ir::TensorType number{edit.graph().value(scores.q).type.dtype, {}, {}};
      const auto fill = [&](double value) {
        return build.insert("fill", {},
                            {{"shape", ir::Ints{}},
                             {"dtype", std::string(ir::name(number.dtype))},
                             {"value", value}});
      };
      PLIMSOLL_TRY(const ValueId zero, fill(0));
      PLIMSOLL_TRY(const ValueId low, fill(scores.hidden));
      PLIMSOLL_TRY(out.value, build.insert("where", {scores.condition, zero, low}, {}));
    }
  }
  if (scores.mask.valid()) {
    const auto content = content_of(edit, scores.mask);
    const auto seen = [](double v) { return v == 0 ? 1 : v <= kHidden ? 0 : 2; };
    if (content && is_causal(*content, rows, columns, seen)) {
      out.causal = true;
    } else if (out.value.valid()) {
      PLIMSOLL_TRY(out.value, build.insert("add", {out.value, scores.mask}, {}));
    } else {
      out.value = scores.mask;
    }
  }
  if (!out.value.valid()) return out;
  const ir::Shape& shape = shape_of(edit, out.value);
  out.usable = shape.rank() <= 4;
  if (shape.rank() < 4) {
    ir::Ints full(shape.begin(), shape.end());
    full.insert(full.begin(), static_cast<std::size_t>(4 - shape.rank()), 1);
    PLIMSOLL_TRY(out.value, build.reshape(out.value, full));
  }
  return out;
}

// Values that a float weight has a part in. By readers, not in the order of nodes: what was
// inserted stands at the end.
std::vector<bool> touched_by_weights(const GraphEditor& edit) {
  const ir::Graph& graph = edit.graph();
  std::vector<bool> out(graph.values.size(), false);
  std::vector<ValueId> fresh;
  const auto touch = [&](ValueId value) {
    if (out[value.index()] || !ir::is_float(graph.value(value).type.dtype)) return;
    out[value.index()] = true;
    fresh.push_back(value);
  };
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    if (graph.values[v].kind == ir::ValueKind::kWeight) touch(ValueId(v));
  }
  while (!fresh.empty()) {
    const ValueId value = fresh.back();
    fresh.pop_back();
    for (const NodeId reader : edit.readers(value)) {
      for (const ValueId output : graph.node(reader).outputs) touch(output);
    }
  }
  return out;
}

Result<bool> recover_one(GraphEditor& edit, NodeId id, const std::vector<bool>& learned) {
  const ir::Node node = edit.graph().node(id);
  if (node.op != "matmul" || ops::attributes_of(node).integer("trans_a") != 0 ||
      ops::attributes_of(node).integer("trans_b") != 0)
    return false;
  if (shape_of(edit, node.outputs[0]).rank() != 4) return false;
  const ValueId weights = without_nan_guard(edit, node.inputs[0]);
  const ir::Node* softmax = made_by(edit, weights, "softmax");
  if (softmax == nullptr) return false;
  const std::int64_t axis = ops::attributes_of(*softmax).integer("axis");
  if (axis != -1 && axis != 3) return false;
  const auto scores = peel(edit, softmax->inputs[0]);
  if (!scores || shape_of(edit, scores->q).rank() != 4 || shape_of(edit, scores->k).rank() != 4 ||
      shape_of(edit, node.inputs[1]).rank() != 4) {
    return false;
  }
  const auto is_learned = [&](ValueId v) {
    return v.valid() && v.index() < learned.size() && learned[v.index()];
  };
  if (is_learned(scores->mask)) return false;

  AttentionBuilder build(edit, id);
  PLIMSOLL_TRY(ValueId k, build.rows_of_keys(*scores));
  const bool repeated_rows = scores->k_rows;
  ValueId v = node.inputs[1];
  const ir::Shape q_shape = shape_of(edit, scores->q);
  // Broadcast batches (a shared key for all heads) are left apart.
  if (q_shape[0] != shape_of(edit, k)[0] || q_shape[0] != shape_of(edit, v)[0] ||
      q_shape[1] != shape_of(edit, k)[1] || q_shape[1] != shape_of(edit, v)[1]) {
    return false;
  }
  std::int64_t kv_heads = q_shape[1];
  // The transpose for the product stands behind the repetition.
  const ir::Node* turned = repeated_rows ? nullptr : made_by(edit, scores->k, "transpose");
  const ValueId k_source =
      repeated_rows ? scores->k
      : turned != nullptr && turned->attributes.integers("perm") == ir::Ints{0, 1, 3, 2}
          ? turned->inputs[0]
          : ValueId();
  if (k_source.valid()) {
    const ValueId own_k = unrepeated(edit, k_source);
    const ValueId own_v = unrepeated(edit, v);
    if (own_k != k_source && own_v != v && shape_of(edit, own_k)[1] == shape_of(edit, own_v)[1]) {
      const auto four = [&](ValueId x) -> Result<ValueId> {
        const ir::Shape s = shape_of(edit, x);
        return build.reshape(x, {s[0], s[1], s[3], s[4]});
      };
      PLIMSOLL_TRY(k, four(own_k));
      PLIMSOLL_TRY(v, four(own_v));
      kv_heads = shape_of(edit, k)[1];
    }
  }
  PLIMSOLL_TRY(const Mask mask, mask_of(edit, build, *scores, q_shape[2], shape_of(edit, k)[2]));
  if (!mask.usable) return false;
  PLIMSOLL_TRY(const ValueId q_rows, build.joined(scores->q));
  PLIMSOLL_TRY(const ValueId k_rows, build.joined(k));
  PLIMSOLL_TRY(const ValueId v_rows, build.joined(v));
  std::vector<ValueId> inputs{q_rows, k_rows, v_rows};
  if (mask.value.valid()) inputs.push_back(mask.value);
  PLIMSOLL_TRY(const ValueId y, build.insert("attention", inputs,
                                             {{"heads", q_shape[1]},
                                              {"kv_heads", kv_heads},
                                              {"scale", scores->scale},
                                              {"causal", std::int64_t{mask.causal}}}));
  const std::int64_t width = shape_of(edit, v)[3];
  PLIMSOLL_TRY(const ValueId apart, build.reshape(y, {q_shape[0], q_shape[2], q_shape[1], width}));
  PLIMSOLL_TRY(const ValueId back, build.transpose(apart, {0, 2, 1, 3}));
  edit.replace(node.outputs[0], back);
  return true;
}

// q, k and v cut side by side from one tensor, in this order: where its parts begin.
struct Cut {
  ValueId whole;
  std::int64_t start = 0;
  std::int64_t end = 0;
};

std::int64_t axis_in(const ir::Node& node) {
  return ops::attributes_of(node).integer("axis");
}

std::optional<Cut> cut_of(const GraphEditor& edit, ValueId value) {
  const ir::Node* node = edit.producer(value);
  if (node == nullptr || edit.graph().value(value).type.shape.rank() != 3) return std::nullopt;
  const ir::Shape& whole = shape_of(edit, node->inputs.empty() ? value : node->inputs[0]);
  if (node->op == "split" && (axis_in(*node) == 2 || axis_in(*node) == -1)) {
    const ir::Ints sizes = node->attributes.integers("sizes");
    std::int64_t start = 0;
    for (std::size_t i = 0; i < node->outputs.size(); ++i) {
      if (node->outputs[i] == value) return Cut{node->inputs[0], start, start + sizes[i]};
      start += sizes[i];
    }
  }
  if (node->op == "slice" && whole.rank() == 3) {
    const ir::Ints starts = node->attributes.integers("starts");
    const ir::Ints ends = node->attributes.integers("ends");
    const bool outer_whole =
        starts[0] == 0 && starts[1] == 0 && ends[0] == whole[0] && ends[1] == whole[1];
    if (outer_whole && node->attributes.integers("steps") == ir::Ints{1, 1, 1})
      return Cut{node->inputs[0], starts[2], ends[2]};
  }
  return std::nullopt;
}

Result<bool> take_packed(GraphEditor& edit, NodeId id) {
  const ir::Node node = edit.graph().node(id);
  if (node.op != "attention" || !edit.readers(node.outputs[1]).empty() ||
      edit.is_output(node.outputs[1]))
    return false;
  const std::int64_t heads = ops::attributes_of(node).integer("heads");
  if (node.attributes.integer("kv_heads", heads) != heads) return false;
  const auto q = cut_of(edit, node.inputs[0]);
  const auto k = cut_of(edit, node.inputs[1]);
  const auto v = cut_of(edit, node.inputs[2]);
  if (!q || !k || !v || q->whole != k->whole || q->whole != v->whole) return false;
  const std::int64_t width = q->end - q->start;
  const ir::Shape& whole = shape_of(edit, q->whole);
  if (q->start != 0 || k->start != width || k->end != 2 * width || v->start != 2 * width ||
      v->end != 3 * width || whole[2] != 3 * width)
    return false;
  std::vector<ValueId> inputs{q->whole};
  if (node.inputs.size() > 3 && node.inputs[3].valid()) inputs.push_back(node.inputs[3]);
  ir::Attributes attributes;
  for (const auto& [name, value] : node.attributes.entries()) {
    if (name != "kv_heads") attributes.set(name, value);
  }
  PLIMSOLL_TRY(const auto made, edit.insert(id, "attention_qkv", inputs, attributes));
  edit.replace(node.outputs[0], made[0]);
  return true;
}

}  // namespace

Result<int> recover_attention(GraphEditor& edit, const RecoverOptions& options) {
  const std::vector<bool> learned =
      options.training ? touched_by_weights(edit) : std::vector<bool>();
  int changes = 0;
  for (std::size_t n = 0; n < edit.original_nodes(); ++n) {
    const NodeId id(n);
    const ValueId y = edit.graph().node(id).outputs.front();
    if (edit.readers(y).empty() && !edit.is_output(y)) continue;
    PLIMSOLL_TRY(bool changed, recover_one(edit, id, learned));
    if (!changed) {
      PLIMSOLL_TRY(changed, take_packed(edit, id));
    }
    changes += changed ? 1 : 0;
  }
  return changes;
}

}  // namespace plimsoll::rewrite
