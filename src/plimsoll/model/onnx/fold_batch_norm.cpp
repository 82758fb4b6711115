#include "plimsoll/model/onnx/fold_batch_norm.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/pattern.h"

namespace plimsoll::model::onnx {
namespace {

using rewrite::GraphEditor;
using Floats = std::vector<float>;

// y = x * scale + shift, channel by channel.
struct Lines {
  std::vector<double> scale;
  std::vector<double> shift;

  // Otherwise folding could make NaN of what was infinite.
  bool finite() const {
    const auto fine = [](double number) { return std::isfinite(number); };
    return std::all_of(scale.begin(), scale.end(), fine) &&
           std::all_of(shift.begin(), shift.end(), fine);
  }

  void then(const Lines& next) {
    for (std::size_t c = 0; c < scale.size(); ++c) {
      scale[c] *= next.scale[c];
      shift[c] = shift[c] * next.scale[c] + next.shift[c];
    }
  }
};

class Folder {
 public:
  Folder(GraphEditor& edit, store::WeightSource& weights)
      : edit_(edit), weights_(weights), taken_(edit.original_nodes(), false) {}

  Status fold(NodeId id) {
    const ir::Node head = edit_.graph().node(id);
    if (taken_[id.index()] || (head.op != "conv" && head.op != "batch_norm_inference")) return {};
    const auto [lines, last] = lines_behind(head);
    if (!last.valid()) return {};
    return head.op == "conv" ? into_convolution(head, lines, last) : into_norm(head, lines, last);
  }

 private:
  struct Chain {
    Lines lines;
    NodeId last;  // not valid where there is none
  };

  // All that follows the node and nobody else reads.
  Chain lines_behind(const ir::Node& head) {
    Chain out;
    ValueId y = head.outputs[0];
    while (edit_.has_one_reader(y)) {
      const NodeId id = edit_.readers(y).front();
      const ir::Node& reader = edit_.graph().node(id);
      const auto next = lines_of(reader, y);
      if (!next || !next->finite()) break;
      if (out.last.valid()) {
        out.lines.then(*next);
      } else {
        out.lines = *next;
      }
      out.last = id;
      taken_[id.index()] = true;
      y = reader.outputs[0];
    }
    return out;
  }

  std::optional<Lines> lines_of(const ir::Node& node, ValueId x) {
    if (node.op == "batch_norm_inference")
      return node.inputs[0] == x ? lines_of_norm(node) : std::nullopt;
    const bool turns = node.op == "mul" || node.op == "add";
    if (!turns && node.op != "div" && node.op != "sub") return std::nullopt;
    if (node.inputs[0] == node.inputs[1] || (node.inputs[0] != x && !turns)) return std::nullopt;
    const ValueId other = node.inputs[0] == x ? node.inputs[1] : node.inputs[0];
    const ir::Shape& shape = edit_.graph().value(x).type.shape;
    if (edit_.graph().value(node.outputs[0]).type.shape != shape) return std::nullopt;
    const auto numbers = each_channel(other, shape);
    if (!numbers) return std::nullopt;
    Lines out{std::vector<double>(numbers->size(), 1), std::vector<double>(numbers->size(), 0)};
    for (std::size_t c = 0; c < numbers->size(); ++c) {
      const double number = (*numbers)[c];
      if (node.op == "mul") out.scale[c] = number;
      if (node.op == "div") out.scale[c] = 1 / number;
      if (node.op == "add") out.shift[c] = number;
      if (node.op == "sub") out.shift[c] = -number;
    }
    return out;
  }

  std::optional<Lines> lines_of_norm(const ir::Node& norm) {
    const auto gamma = content(norm.inputs[1]);
    const auto beta = content(norm.inputs[2]);
    const auto mean = content(norm.inputs[3]);
    const auto variance = content(norm.inputs[4]);
    if (!gamma || !beta || !mean || !variance || gamma->empty()) return std::nullopt;
    const double epsilon = ops::attributes_of(norm).real("epsilon");
    Lines out;
    for (std::size_t c = 0; c < gamma->size(); ++c) {
      out.scale.push_back((*gamma)[c] / std::sqrt((*variance)[c] + epsilon));
      out.shift.push_back((*beta)[c] - (*mean)[c] * out.scale.back());
    }
    return out;
  }

  // One number for each channel of a tensor of this shape, where the value broadcasts along the
  // channels only.
  std::optional<Floats> each_channel(ValueId id, const ir::Shape& shape) {
    const ir::Shape& own = edit_.graph().value(id).type.shape;
    const int channel_axis = own.rank() - shape.rank() + 1;
    const bool along =
        channel_axis >= 0 && own.elements() == shape[1] && own[channel_axis] == shape[1];
    if (own.rank() > shape.rank() || (own.elements() != 1 && !along)) return std::nullopt;
    const ir::Node* moved = rewrite::made_by(edit_, id, "reshape");
    auto numbers = content(moved != nullptr ? moved->inputs[0] : id);
    if (numbers && numbers->size() == 1)
      numbers->resize(static_cast<std::size_t>(shape[1]), numbers->front());
    return numbers;
  }

  Status into_convolution(const ir::Node& conv, const Lines& lines, NodeId last) {
    const std::size_t channels = lines.scale.size();
    const bool biased = conv.inputs.size() > 2 && conv.inputs[2].valid();
    auto bias = biased ? content(conv.inputs[2]) : std::optional(Floats(channels, 0.0F));
    if (!bias) return {};
    auto w = content(conv.inputs[1]);
    if (!w) return {};
    const std::size_t each = w->size() / channels;
    for (std::size_t c = 0; c < channels; ++c) {
      (*bias)[c] = static_cast<float>((*bias)[c] * lines.scale[c] + lines.shift[c]);
      for (std::size_t i = c * each; i < (c + 1) * each; ++i)
        (*w)[i] = static_cast<float>((*w)[i] * lines.scale[c]);
    }
    const ir::TensorType type = edit_.graph().value(conv.inputs[1]).type;
    const ValueId folded = add(conv.inputs[1], type, *w);
    const ValueId shift =
        add(conv.inputs[1], {ir::DType::kF32, {static_cast<std::int64_t>(channels)}, {}}, *bias);
    return replace(last, "conv", {conv.inputs[0], folded, shift}, conv.attributes);
  }

  Status into_norm(const ir::Node& norm, const Lines& lines, NodeId last) {
    auto gamma = content(norm.inputs[1]);
    auto beta = content(norm.inputs[2]);
    if (!gamma || !beta) return {};
    for (std::size_t c = 0; c < gamma->size(); ++c) {
      (*gamma)[c] = static_cast<float>((*gamma)[c] * lines.scale[c]);
      (*beta)[c] = static_cast<float>((*beta)[c] * lines.scale[c] + lines.shift[c]);
    }
    const ir::TensorType type = edit_.graph().value(norm.inputs[1]).type;
    const ValueId scale = add(norm.inputs[1], type, *gamma);
    const ValueId shift = add(norm.inputs[2], type, *beta);
    return replace(last, norm.op, {norm.inputs[0], scale, shift, norm.inputs[3], norm.inputs[4]},
                   norm.attributes);
  }

  Status replace(NodeId last, std::string_view op, std::vector<ValueId> inputs,
                 const ir::Attributes& attributes) {
    PLIMSOLL_TRY(const auto made, edit_.insert(last, op, std::move(inputs), attributes));
    edit_.replace(edit_.graph().node(last).outputs[0], made[0]);
    return {};
  }

  // Numbers of an fp32 source whose content is known.
  std::optional<Floats> content(ValueId id) {
    const ir::Value& value = edit_.graph().value(id);
    if (value.type.dtype != ir::DType::kF32) return std::nullopt;
    std::span<const std::byte> bytes;
    if (const auto* data = edit_.graph().data(id)) {
      bytes = *data;
    } else if (const auto* entry = weights_.find(value.name);
               entry != nullptr && ir::is_persistent(value.kind)) {
      bytes = entry->bytes;
    } else if (ir::is_persistent(value.kind) && value.init.kind == ir::Init::Kind::kConstant) {
      return filled(value);
    } else {
      return std::nullopt;
    }
    Floats out(bytes.size() / sizeof(float));
    if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }

  std::optional<Floats> filled(const ir::Value& value) {
    const std::int64_t elements = value.type.shape.elements();
    if (elements > std::min(kMostFilledEach, kMostFilled - filled_)) return std::nullopt;
    filled_ += elements;
    return Floats(static_cast<std::size_t>(elements), static_cast<float>(value.init.a));
  }

  ValueId add(ValueId like, const ir::TensorType& type, const Floats& numbers) {
    std::vector<std::byte> bytes(numbers.size() * sizeof(float));
    std::memcpy(bytes.data(), numbers.data(), bytes.size());
    const std::string name =
        fmt::format("{}/folded#{}", edit_.graph().value(like).name, edit_.graph().values.size());
    weights_.add_owned(name, type, std::move(bytes));
    return edit_.insert_weight(name, type);
  }

  GraphEditor& edit_;
  store::WeightSource& weights_;
  std::vector<bool> taken_;  // by node: part of a chain that was looked at
  std::int64_t filled_ = 0;  // elements written out so far
};

}  // namespace

Result<ir::Graph> fold_batch_norm(ir::Graph graph, store::WeightSource& weights) {
  GraphEditor edit(std::move(graph));
  Folder folder(edit, weights);
  for (std::size_t n = 0; n < edit.original_nodes(); ++n)
    PLIMSOLL_RETURN_IF_ERROR(folder.fold(NodeId(n)));
  return edit.finish();
}

}  // namespace plimsoll::model::onnx
