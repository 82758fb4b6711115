#include "plimsoll/model/onnx/fold_batch_norm.h"

#include <cmath>
#include <cstring>

#include "plimsoll/rewrite/pattern.h"

namespace plimsoll::model::onnx {
namespace {

using rewrite::GraphEditor;
using Floats = std::vector<float>;

class Folder {
 public:
  Folder(GraphEditor& edit, store::WeightSource& weights) : edit_(edit), weights_(weights) {}

  Status fold(NodeId id) {
    const ir::Node norm = edit_.graph().node(id);
    if (norm.op != "batch_norm_inference" || !norm.attributes.text("activation", "").empty()) return {};
    const ir::Node* found = rewrite::made_by(edit_, norm.inputs[0], "conv");
    if (found == nullptr || !edit_.has_one_reader(norm.inputs[0])) return {};
    const ir::Node conv = *found;
    const auto w = content(conv.inputs[1]);
    const auto gamma = content(norm.inputs[1]);
    const auto beta = content(norm.inputs[2]);
    const auto mean = content(norm.inputs[3]);
    const auto variance = content(norm.inputs[4]);
    const bool biased = conv.inputs.size() > 2 && conv.inputs[2].valid();
    const auto bias = biased ? content(conv.inputs[2]) : std::optional(Floats(gamma ? gamma->size() : 0, 0.0F));
    if (!w || !gamma || !beta || !mean || !variance || !bias || gamma->empty()) return {};
    const std::size_t channels = gamma->size();
    const std::size_t per_channel = w->size() / channels;
    const double epsilon = norm.attributes.real("epsilon", 1e-5);
    Floats new_w(w->size());
    Floats new_bias(channels);
    for (std::size_t c = 0; c < channels; ++c) {
      const double scale = (*gamma)[c] / std::sqrt((*variance)[c] + epsilon);
      new_bias[c] = static_cast<float>(((*bias)[c] - (*mean)[c]) * scale + (*beta)[c]);
      for (std::size_t i = c * per_channel; i < (c + 1) * per_channel; ++i) new_w[i] = static_cast<float>((*w)[i] * scale);
    }
    const ValueId folded = add(conv.inputs[1], edit_.graph().value(conv.inputs[1]).type, new_w);
    const ValueId shift = add(norm.inputs[2], edit_.graph().value(norm.inputs[2]).type, new_bias);
    PLIMSOLL_TRY(const auto made, edit_.insert(id, "conv", {conv.inputs[0], folded, shift}, conv.attributes));
    edit_.replace(norm.outputs[0], made[0]);
    return {};
  }

 private:
  // Numbers of an fp32 source whose content is known.
  std::optional<Floats> content(ValueId id) const {
    const ir::Value& value = edit_.graph().value(id);
    if (value.type.dtype != ir::DType::kF32) return std::nullopt;
    std::span<const std::byte> bytes;
    if (const auto* data = edit_.graph().data(id)) {
      bytes = *data;
    } else if (const auto* entry = weights_.find(value.name); entry != nullptr && ir::is_persistent(value.kind)) {
      bytes = entry->bytes;
    } else {
      return std::nullopt;
    }
    Floats out(bytes.size() / sizeof(float));
    if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }

  ValueId add(ValueId like, const ir::TensorType& type, const Floats& numbers) {
    std::vector<std::byte> bytes(numbers.size() * sizeof(float));
    std::memcpy(bytes.data(), numbers.data(), bytes.size());
    const std::string name = fmt::format("{}/folded#{}", edit_.graph().value(like).name, edit_.graph().values.size());
    weights_.add_owned(name, type, std::move(bytes));
    return edit_.insert_weight(name, type);
  }

  GraphEditor& edit_;
  store::WeightSource& weights_;
};

}  // namespace

Result<ir::Graph> fold_batch_norm(ir::Graph graph, store::WeightSource& weights) {
  GraphEditor edit(std::move(graph));
  Folder folder(edit, weights);
  for (std::size_t n = 0; n < edit.original_nodes(); ++n) PLIMSOLL_RETURN_IF_ERROR(folder.fold(NodeId(n)));
  return edit.finish();
}

}  // namespace plimsoll::model::onnx
