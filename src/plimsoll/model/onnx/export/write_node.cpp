// One operator of ours as ONNX writes it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "plimsoll/model/onnx/convert/operator_table.h"
#include "plimsoll/model/onnx/export/graph_writer.h"
#include "plimsoll/model/onnx/format/tensor_content.h"
#include "plimsoll/ops/elementwise/fused_relu.h"
#include "plimsoll/ops/evaluation/interpreter.h"

namespace plimsoll::model::onnx {
namespace {

class NodeWriter {
 public:
  NodeWriter(GraphWriter& out, const ir::Node& node) : out_(out), node_(node) {}

  Status write() {
    if (is("reorder")) return done("Identity", inputs());
    if (may_lie_outside()) return write_with_spare_row();
    if (const Operator* row = find_same(node_.op))
      return done(row->name, inputs(), kept(row->name));
    if (node_.inputs.empty()) return constant();
    if (write_shaping() || write_reduction() || write_product() || write_norm() || write_rest())
      return {};
    return bad_input("operator '{}' of {} has no ONNX form", node_.op,
                     node_.layer.empty() ? "the graph" : node_.layer);
  }

 private:
  bool is(std::string_view op) const { return node_.op == op; }
  std::string in(std::size_t i) const {
    return i < node_.inputs.size() ? out_.name(node_.inputs[i]) : "";
  }
  bool has(std::size_t i) const { return i < node_.inputs.size() && node_.inputs[i].valid(); }
  std::string result(std::size_t i = 0) const { return out_.name(node_.outputs[i]); }
  const ir::Shape& shape(std::size_t i = 0) const { return out_.shape(node_.inputs[i]); }
  const ir::Shape& result_shape() const { return out_.shape(node_.outputs[0]); }
  ir::DType dtype() const { return out_.graph().value(node_.inputs[0]).type.dtype; }
  ops::AttributeReader attributes() const { return ops::attributes_of(node_); }
  static ir::Ints ints(const ir::Shape& s) { return {s.begin(), s.end()}; }

  std::vector<std::string> inputs() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < node_.inputs.size(); ++i) names.push_back(in(i));
    while (!names.empty() && names.back().empty()) names.pop_back();
    return names;
  }
  // Those of the node's attributes that the ONNX operator has under the same name, in the order of
  // the definition, without one that only old operator sets have.
  std::vector<OnnxAttribute> kept(std::string_view op, std::string_view old = {}) const {
    const Operator* row = find_operator("", op);
    std::vector<OnnxAttribute> list;
    for (const ops::AttributeSpec& spec : attributes().specs()) {
      const ir::Attribute* value = node_.attributes.find(spec.name);
      if (value != nullptr && row->has(spec.name) && spec.name != old)
        list.emplace_back(spec.name, *value);
    }
    return list;
  }
  Status done(std::string_view op, const std::vector<std::string>& names,
              const std::vector<OnnxAttribute>& list = {}) {
    std::vector<std::string> outputs;
    for (std::size_t i = 0; i < node_.outputs.size(); ++i) outputs.push_back(result(i));
    out_.node(op, names, list, outputs);
    return {};
  }
  // Only the first output.
  bool finish(std::string_view op, const std::vector<std::string>& names,
              const std::vector<OnnxAttribute>& list = {}) {
    out_.node(op, names, list, {result()});
    return true;
  }
  std::string number(double value) { return out_.scalar(dtype(), value); }
  std::string reshape(const std::string& x, const ir::Ints& to) {
    return out_.node("Reshape", {x, out_.integers(to)}, {{"allowzero", std::int64_t{1}}});
  }
  std::string transpose(const std::string& x, const ir::Ints& perm) {
    return out_.node("Transpose", {x}, {{"perm", perm}});
  }

  // Places that are counted (tokens of an expert, what NonZero found) may lie outside of the table:
  // with us they read zeros and write nothing, ONNX forbids them.
  bool may_lie_outside() const {
    return (node_.op.starts_with("gather") || node_.op.starts_with("scatter")) &&
           out_.is_counted(node_.inputs[1]);
  }

  // The axes of the table that the places count along.
  ir::Ints counted_axes(const ir::Shape& table) const {
    ir::Ints axes;
    if (is("gather_nd") || is("scatter_nd")) {
      const std::int64_t first = attributes().integer("batch_dims");
      for (std::int64_t i = 0; i < shape(1)[shape(1).rank() - 1]; ++i) axes.push_back(first + i);
    } else {
      const std::int64_t axis = attributes().integer("axis");
      axes.push_back(axis < 0 ? axis + table.rank() : axis);
    }
    return axes;
  }

  // The table with zeros behind its last row, which all places outside mean.
  Status write_with_spare_row() {
    const ir::Shape& table = is("gather_grad") ? result_shape() : shape();
    const ir::Ints axes = counted_axes(table);
    if (is("gather_grad") && (axes[0] != 0 || has(2) || !attributes().integers("rows", {}).empty()))
      return bad_input("operator '{}' of {} has no ONNX form", node_.op, node_.layer);
    ir::Ints pads(2 * static_cast<std::size_t>(table.rank()), 0);
    ir::Ints rows;
    for (const std::int64_t axis : axes) {
      pads[static_cast<std::size_t>(table.rank() + axis)] = 1;
      rows.push_back(table[static_cast<int>(axis)]);
    }
    const std::string places = inside(rows);
    std::string written;
    if (is("gather_grad")) {
      ir::Ints longer = ints(table);
      ++longer[0];
      ir::Ints column = ints(shape(1));
      column.push_back(1);
      const std::string zeros = out_.node("Expand", {number(0), out_.integers(longer)});
      written = out_.node("ScatterND", {zeros, reshape(places, column), in(0)},
                          {{"reduction", std::string("add")}});
    } else {
      const std::string padded = out_.node("Pad", {in(0), out_.integers(pads), number(0)});
      const std::string name = find_same(node_.op)->name;
      if (node_.op.starts_with("gather")) return done(name, {padded, places}, kept(name));
      written = out_.node(name, {padded, places, in(2)}, kept(name));
    }
    return done("Slice", {written, out_.integers(ir::Ints(axes.size(), 0)), out_.integers(rows),
                          out_.integers(axes), out_.integers(ir::Ints(axes.size(), 1))});
  }

  // Of so many rows: from the first, and the one behind the last for all that are none of them.
  std::string inside(const ir::Ints& rows) {
    const auto element =
        static_cast<std::int64_t>(element_of(out_.graph().value(node_.inputs[1]).type.dtype));
    const auto numbers = [&](const ir::Ints& list) {
      const std::string made = list.size() == 1
                                   ? out_.scalar(ir::DType::kI64, static_cast<double>(list[0]))
                                   : out_.integers(list);
      return out_.node("Cast", {made}, {{"to", element}});
    };
    const std::string count = numbers(rows);
    const std::string zero = numbers(ir::Ints(rows.size(), 0));
    const std::string first = out_.node(
        "Where", {out_.node("Less", {in(1), zero}), out_.node("Add", {in(1), count}), in(1)});
    const std::string at_least =
        out_.node("Where", {out_.node("Less", {first, zero}), count, first});
    return out_.node("Min", {at_least, count});
  }

  // fill, iota: what they make, as a table.
  Status constant() {
    const ir::TensorType& type = out_.graph().value(node_.outputs[0]).type;
    if (is("fill") && type.shape.elements() > 1024) {
      const std::string one = out_.scalar(type.dtype, attributes().real("value"));
      return done("Expand", {one, out_.integers(ints(type.shape))});
    }
    if (type.shape.elements() > (1 << 24))
      return bad_input("operator '{}' makes too large a constant", node_.op);
    const auto made = ops::evaluate(out_.graph(), node_, {});
    out_.tensor(result(), type, made.front().to_bytes());
    return {};
  }

  bool write_shaping() {
    if (is("reshape"))
      return finish("Reshape", {in(0), out_.integers(ints(result_shape()))},
                    {{"allowzero", std::int64_t{1}}});
    if (is("expand")) return finish("Expand", {in(0), out_.integers(ints(result_shape()))});
    if (is("cast")) {
      return finish("Cast", {in(0)},
                    {{"to", static_cast<std::int64_t>(
                                element_of(out_.graph().value(node_.outputs[0]).type.dtype))}});
    }
    if (is("slice")) return slice();
    if (is("pad")) {
      return finish(
          "Pad",
          {in(0), out_.integers(attributes().integers("pads")), number(attributes().real("value"))},
          {{"mode", attributes().text("mode")}});
    }
    if (is("split")) {
      std::vector<std::string> outputs;
      for (std::size_t i = 0; i < node_.outputs.size(); ++i) outputs.push_back(result(i));
      out_.node("Split", {in(0), out_.integers(attributes().integers("sizes"))},
                {{"axis", attributes().integer("axis")}}, outputs);
      return true;
    }
    if (is("tile")) return finish("Tile", {in(0), out_.integers(attributes().integers("repeats"))});
    if (is("triangle")) {
      const std::string k =
          out_.scalar(ir::DType::kI64, static_cast<double>(attributes().integer("diagonal")));
      return finish("Trilu", {in(0), k}, {{"upper", attributes().integer("upper")}});
    }
    if (is("depth_to_space")) {
      return finish(
          "DepthToSpace", {in(0)},
          {{"blocksize", attributes().integer("block")}, {"mode", attributes().text("mode")}});
    }
    if (is("space_to_depth"))
      return finish("SpaceToDepth", {in(0)}, {{"blocksize", attributes().integer("block")}});
    return false;
  }

  bool slice() {
    const ir::Ints steps = attributes().integers("steps");
    ir::Ints ends = attributes().integers("ends");
    for (std::size_t i = 0; i < ends.size(); ++i) {
      // -1 is "through the first element" with us, and counts from the end with ONNX.
      if (steps[i] < 0 && ends[i] < 0) ends[i] = std::numeric_limits<std::int64_t>::min();
    }
    ir::Ints axes;
    for (std::size_t i = 0; i < ends.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
    return finish("Slice", {in(0), out_.integers(attributes().integers("starts")),
                            out_.integers(ends), out_.integers(axes), out_.integers(steps)});
  }

  bool write_reduction() {
    if (node_.op.starts_with("reduce_")) {
      std::vector<std::string> list{in(0)};
      if (attributes().has("axes")) list.push_back(out_.integers(attributes().integers("axes")));
      return finish(onnx_name(node_.op), list, {{"keepdims", attributes().integer("keepdims")}});
    }
    if (is("argmax") || is("argmin")) {
      return finish(is("argmax") ? "ArgMax" : "ArgMin", {in(0)},
                    {{"axis", attributes().integer("axis")},
                     {"keepdims", attributes().integer("keepdims")},
                     {"select_last_index", attributes().integer("last")}});
    }
    if (is("cumsum")) {
      const std::string axis =
          out_.scalar(ir::DType::kI64, static_cast<double>(attributes().integer("axis")));
      return finish("CumSum", {in(0), axis}, kept("CumSum"));
    }
    if (is("top_k")) {
      return done("TopK", {in(0), out_.integers({attributes().integer("k")})}, kept("TopK", "k"))
          .has_value();
    }
    if (is("softmax") || is("log_softmax"))
      return finish(onnx_name(node_.op), {in(0)}, {{"axis", attributes().integer("axis")}});
    return false;
  }

  static ir::Ints swapped(int rank) {
    ir::Ints perm;
    for (int i = 0; i < rank; ++i) perm.push_back(i);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    return perm;
  }

  bool write_product() {
    if (is("matmul")) {
      const auto operand = [&](std::size_t i, std::string_view flag) {
        return attributes().integer(flag) != 0 ? transpose(in(i), swapped(shape(i).rank())) : in(i);
      };
      const std::string a = operand(0, "trans_a");
      return finish("MatMul", {a, operand(1, "trans_b")});
    }
    if (is("linear")) {
      if (shape().rank() == 2) {
        std::vector<std::string> list{in(0), in(1)};
        if (has(2)) list.push_back(in(2));
        return finish("Gemm", list, {{"transB", attributes().integer("trans_w")}});
      }
      const std::string w = attributes().integer("trans_w") != 0 ? transpose(in(1), {1, 0}) : in(1);
      if (!has(2)) return finish("MatMul", {in(0), w});
      return finish("Add", {out_.node("MatMul", {in(0), w}), in(2)});
    }
    if (is("attention")) return attention(in(0), in(1), in(2), shape(0), shape(1), shape(2), 3);
    if (is("attention_qkv")) {
      ir::Shape part = shape();
      part[2] /= 3;
      const std::string q = out_.node(
          "Slice", {in(0), out_.integers({0}), out_.integers({part[2]}), out_.integers({2})});
      const std::string k = out_.node("Slice", {in(0), out_.integers({part[2]}),
                                                out_.integers({2 * part[2]}), out_.integers({2})});
      const std::string v = out_.node("Slice", {in(0), out_.integers({2 * part[2]}),
                                                out_.integers({3 * part[2]}), out_.integers({2})});
      return attention(q, k, v, part, part, part, 1);
    }
    return false;
  }

  bool attention(const std::string& q, const std::string& k, const std::string& v,
                 const ir::Shape& qs, const ir::Shape& ks, const ir::Shape& vs,
                 std::size_t mask_at) {
    const std::int64_t heads = attributes().integer("heads");
    const std::int64_t kv_heads = attributes().integer("kv_heads", heads);
    const auto apart = [&](const std::string& x, const ir::Shape& s, std::int64_t h) {
      std::string y = transpose(reshape(x, {s[0], s[1], h, s[2] / h}), {0, 2, 1, 3});
      if (h == heads) return y;
      y = reshape(y, {s[0], h, 1, s[1], s[2] / h});
      y = out_.node("Expand", {y, out_.integers({s[0], h, heads / h, s[1], s[2] / h})});
      return reshape(y, {s[0], heads, s[1], s[2] / h});
    };
    const std::string keys = transpose(apart(k, ks, kv_heads), {0, 1, 3, 2});
    const std::int64_t width = qs[2] / heads;
    const double scale = attributes().real("scale", 1 / std::sqrt(static_cast<double>(width)));
    std::string scores =
        out_.node("Mul", {out_.node("MatMul", {apart(q, qs, heads), keys}), number(scale)});
    if (has(mask_at)) scores = out_.node("Add", {scores, in(mask_at)});
    if (attributes().integer("causal") != 0) {
      ops::Array mask({dtype(), {qs[1], ks[1]}, {}});
      for (std::int64_t i = 0; i < mask.elements(); ++i) {
        if (i % ks[1] > i / ks[1] + ks[1] - qs[1])
          mask.set_number(i, -std::numeric_limits<double>::infinity());
      }
      const std::string name = out_.name(node_.outputs[0]) + "/causal";
      out_.tensor(name, mask.type, mask.to_bytes());
      scores = out_.node("Add", {scores, name});
    }
    const std::string weights = out_.node("Softmax", {scores}, {{"axis", std::int64_t{-1}}});
    const std::string y =
        transpose(out_.node("MatMul", {weights, apart(v, vs, kv_heads)}), {0, 2, 1, 3});
    return finish("Reshape", {y, out_.integers(ints(result_shape()))},
                  {{"allowzero", std::int64_t{1}}});
  }

  bool write_norm() {
    if (!attributes().declares("epsilon")) return false;
    const double epsilon = attributes().real("epsilon");
    if (is("batch_norm_inference")) {
      if (!ops::has_relu(attributes()))
        return finish("BatchNormalization", inputs(), {{"epsilon", epsilon}});
      return finish("Relu", {out_.node("BatchNormalization", inputs(), {{"epsilon", epsilon}})});
    }
    if (is("layer_norm")) {
      return finish("LayerNormalization", inputs(),
                    {{"axis", attributes().integer("axis")}, {"epsilon", epsilon}});
    }
    if (is("rms_norm")) {
      ir::Ints axes;
      const std::int64_t axis = attributes().integer("axis");
      for (std::int64_t i = axis < 0 ? axis + shape().rank() : axis; i < shape().rank(); ++i)
        axes.push_back(i);
      const std::string mean =
          out_.node("ReduceMean", {out_.node("Mul", {in(0), in(0)}), out_.integers(axes)},
                    {{"keepdims", std::int64_t{1}}});
      const std::string root = out_.node("Sqrt", {out_.node("Add", {mean, number(epsilon)})});
      return finish("Mul", {out_.node("Div", {in(0), root}), in(1)});
    }
    if (is("group_norm")) {
      const ir::Shape& s = shape();
      const std::int64_t groups = attributes().integer("groups");
      const auto table = [&](double value) {
        return out_.node("Expand", {number(value), out_.integers({groups})});
      };
      const std::string flat =
          reshape(in(0), {s[0], groups, s.elements() / std::max<std::int64_t>(s[0] * groups, 1)});
      const std::string normal = reshape(
          out_.node("InstanceNormalization", {flat, table(1), table(0)}, {{"epsilon", epsilon}}),
          ints(s));
      ir::Ints channels(static_cast<std::size_t>(s.rank()) - 1, 1);
      channels.front() = s[1];
      return finish(
          "Add", {out_.node("Mul", {normal, reshape(in(1), channels)}), reshape(in(2), channels)});
    }
    return false;
  }

  bool write_rest() {
    if (is("conv")) {
      const auto list = kept("Conv");
      if (!ops::has_relu(attributes())) return finish("Conv", inputs(), list);
      return finish("Relu", {out_.node("Conv", inputs(), list)});
    }
    if (is("rsqrt")) return finish("Reciprocal", {out_.node("Sqrt", {in(0)})});
    if (is("silu")) return finish("Mul", {in(0), out_.node("Sigmoid", {in(0)})});
    if (is("add_relu")) return finish("Relu", {out_.node("Add", {in(0), in(1)})});
    if (is("clip")) {
      std::vector<std::string> list{in(0), "", ""};
      if (attributes().has("min")) list[1] = number(attributes().real("min"));
      if (attributes().has("max")) list[2] = number(attributes().real("max"));
      while (list.back().empty()) list.pop_back();
      return finish("Clip", list);
    }
    if (is("bit_shift")) {
      return finish("BitShift", inputs(),
                    {{"direction",
                      std::string(attributes().text("direction") == "left" ? "LEFT" : "RIGHT")}});
    }
    if (is("one_hot")) {
      const ir::TensorType& type = out_.graph().value(node_.outputs[0]).type;
      ops::Array values({type.dtype, {2}, {}});
      values.set_number(0, attributes().real("off"));
      values.set_number(1, attributes().real("on"));
      const std::string name = result() + "/values";
      out_.tensor(name, values.type, values.to_bytes());
      const std::string depth =
          out_.scalar(ir::DType::kI64, static_cast<double>(attributes().integer("depth")));
      return finish("OneHot", {in(0), depth, name}, {{"axis", attributes().integer("axis")}});
    }
    if (is("lrn")) {
      return finish("LRN", {in(0)},
                    {{"size", attributes().integer("size")},
                     {"alpha", attributes().real("alpha")},
                     {"beta", attributes().real("beta")},
                     {"bias", attributes().real("k")}});
    }
    if (is("max_pool") || is("avg_pool")) return pool();
    if (is("cross_entropy") && attributes().integer("per_row") == 0) {
      const ir::Shape& s = shape();
      const std::string logits = reshape(in(0), {s.elements(0, s.rank() - 1), s[s.rank() - 1]});
      const std::string labels = reshape(in(1), {s.elements(0, s.rank() - 1)});
      return finish("SoftmaxCrossEntropyLoss", {logits, labels},
                    {{"ignore_index", attributes().integer("ignore_index")}});
    }
    return false;
  }

  bool pool() {
    std::vector<OnnxAttribute> list = kept("MaxPool");
    list.emplace_back("kernel_shape", attributes().integers("kernel"));
    if (is("max_pool")) return finish("MaxPool", {in(0)}, list);
    list.emplace_back("count_include_pad", attributes().integer("count_include_pad"));
    return finish("AveragePool", {in(0)}, list);
  }

  GraphWriter& out_;
  const ir::Node& node_;
};

// Outputs after the first (statistics, indices) are for gradients; who reads one cannot be written.
bool reads_only_first(const ir::Graph& graph, const ir::Node& node) {
  if (node.op == "split" || node.op == "top_k") return true;
  return std::none_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
    if (!input.valid() || !graph.value(input).producer.valid() || graph.value(input).output == 0)
      return false;
    const std::string& op = graph.node(graph.value(input).producer).op;
    return op != "split" && op != "top_k";
  });
}

}  // namespace

Status write_node(GraphWriter& out, const ir::Node& node) {
  if (node.phase != ir::Phase::kForward)
    return bad_input("operator '{}': a training step has no ONNX form; use --infer", node.op);
  if (!reads_only_first(out.graph(), node))
    return bad_input("operator '{}' reads what ONNX has no output for", node.op);
  return NodeWriter(out, node).write();
}

}  // namespace plimsoll::model::onnx
