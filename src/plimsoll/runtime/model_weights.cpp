#include "plimsoll/runtime/model_weights.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/base/log.h"
#include "plimsoll/codec/weights/float_values.h"
#include "plimsoll/runtime/layout_copy.h"

namespace plimsoll::runtime {
namespace {

using store::WeightTensor;

constexpr std::string_view kTakenOff[] = {"",
                                          "module.",
                                          "_orig_mod.",
                                          "model.",
                                          "state_dict.",
                                          "model.module.",
                                          "model_state_dict.",
                                          "state_dict.module."};
constexpr std::string_view kPutOn[] = {"", "transformer.", "bert.", "model."};

// The first few of many names.
std::string few_of(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 3;
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i)
    out += fmt::format("{}'{}'", i == 0 ? "" : ", ", names[i]);
  return names.size() > kShown ? out + ", ..." : out;
}

// A run without these starts from made-up numbers: the weights, and for inference the statistics
// too.
bool is_needed(const ir::Value& value, bool trains) {
  return value.init.kind != ir::Init::Kind::kFile &&
         (value.kind == ir::ValueKind::kWeight || (value.kind == ir::ValueKind::kState && !trains));
}

std::string renamed(std::string_view name, std::string_view off, std::string_view on) {
  std::string out(on);
  out += name.substr(off.size());
  const auto replace_end = [&](std::string_view end, std::string_view with) {
    if (out.ends_with(end)) out.replace(out.size() - end.size(), end.size(), with);
  };
  replace_end("LayerNorm.gamma", "LayerNorm.weight");
  replace_end("LayerNorm.beta", "LayerNorm.bias");
  return out;
}

// What checkpoints hold besides weights, and layers that share a weight with another.
bool is_known_extra(std::string_view name) {
  for (const std::string_view end :
       {".attn.bias", ".attn.masked_bias", "lm_head.weight", "proj_out.weight", "position_ids",
        "num_batches_tracked", "cls.predictions.decoder.weight", "cls.predictions.decoder.bias"})
    if (name.ends_with(end)) return true;
  return name.find("cls.seq_relationship.") != std::string_view::npos ||
         name.find("pooler.dense.") != std::string_view::npos || name == kStepsDone;
}

std::optional<codec::WeightKind> float_kind(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kF64:
      return codec::WeightKind::kF64;
    case ir::DType::kF32:
      return codec::WeightKind::kF32;
    case ir::DType::kF16:
      return codec::WeightKind::kF16;
    case ir::DType::kBF16:
      return codec::WeightKind::kBF16;
    default:
      return std::nullopt;
  }
}

Status read_weight(Executor& executor, ValueId id, const store::WeightsFile& file,
                   const WeightTensor& tensor) {
  const ir::Value& value = executor.graph().value(id);
  auto type = store::tensor_type(tensor.element, tensor.dims);
  if (!type) return forward(type, fmt::format("{} '{}'", ir::name(value.kind), value.name));
  const auto from = float_kind(type->dtype);
  const auto to = float_kind(value.type.dtype);
  const bool same = type->dtype == value.type.dtype;
  if (type->shape != value.type.shape || (!same && (!from || !to)))
    return bad_input("{} '{}': the file has {}, the model expects {}", ir::name(value.kind),
                     value.name, ir::to_string(*type), ir::to_string(value.type));
  return executor.write(id, [&](std::span<std::byte> memory) -> Status {
    if (same && value.type.layout.is_row_major()) return file.read_into(tensor, memory);
    std::vector<std::byte> bytes(tensor.bytes);
    PLIMSOLL_RETURN_IF_ERROR(file.read_into(tensor, bytes));
    if (!same) {
      std::vector<float> floats(static_cast<std::size_t>(type->shape.elements()));
      codec::to_floats(bytes, *from, floats);
      bytes.resize(floats.size() * static_cast<std::size_t>(ir::bits(value.type.dtype) / 8));
      codec::from_floats(floats, *to, bytes);
    }
    copy_from_row_major(value.type, bytes, memory);
    return {};
  });
}

}  // namespace

Result<std::shared_ptr<const ModelWeights>> ModelWeights::open(const std::string& path) {
  PLIMSOLL_TRY(store::WeightsFile file, store::WeightsFile::open(path));
  return std::shared_ptr<const ModelWeights>(new ModelWeights(path, std::move(file)));
}

std::unordered_map<std::string, const WeightTensor*> ModelWeights::by_model_name(
    const ir::Graph& graph) const {
  std::unordered_set<std::string_view> wanted;
  for (const ir::Value& value : graph.values)
    if (ir::is_persistent(value.kind)) wanted.insert(value.name);
  std::unordered_map<std::string, const WeightTensor*> best;
  std::size_t most = 0;
  for (const std::string_view off : kTakenOff) {
    for (const std::string_view on : kPutOn) {
      std::unordered_map<std::string, const WeightTensor*> names;
      std::size_t found = 0;
      for (const WeightTensor& tensor : file_.tensors()) {
        if (!tensor.name.starts_with(off)) continue;
        std::string name = renamed(tensor.name, off, on);
        found += wanted.contains(name) ? 1 : 0;
        names.emplace(std::move(name), &tensor);
      }
      if (found <= most && !(best.empty() && off.empty() && on.empty())) continue;
      most = found;
      best = std::move(names);
    }
  }
  return best;
}

Status ModelWeights::load(Executor& executor, bool allow_missing) const {
  const ir::Graph& graph = executor.graph();
  const auto tensors = by_model_name(graph);
  const bool trains = ir::has_phase(graph, ir::Phase::kUpdate);
  std::vector<std::string> missing;
  std::unordered_set<std::string_view> used;
  for (const ir::Value& value : graph.values) {
    if (!ir::is_persistent(value.kind)) continue;
    if (tensors.contains(value.name)) {
      used.insert(value.name);
    } else if (is_needed(value, trains)) {
      missing.push_back(value.name);
    }
  }
  // In the order of the file.
  std::vector<const WeightTensor*> strangers;
  for (const auto& [name, tensor] : tensors)
    if (!used.contains(name) && !is_known_extra(name)) strangers.push_back(tensor);
  std::sort(strangers.begin(), strangers.end());
  std::vector<std::string> extra;
  for (const WeightTensor* tensor : strangers) extra.push_back(tensor->name);
  if (used.empty())
    return bad_input("{}: none of its {} arrays ({}) is a weight of the model, which has {}", path_,
                     file_.tensors().size(), few_of(extra), few_of(missing));
  if (!missing.empty() && !allow_missing)
    return bad_input(
        "{}: {} of the model's weights are not in it ({}), {} are; --allow-missing starts those "
        "from the seed",
        path_, missing.size(), few_of(missing), used.size());
  if (!missing.empty())
    log::warn("{}: {} weights start from the seed ({})", path_, missing.size(), few_of(missing));
  if (!extra.empty())
    log::warn("{}: {} arrays belong to nothing in the model ({})", path_, extra.size(),
              few_of(extra));
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    if (!ir::is_persistent(graph.values[v].kind)) continue;
    const auto found = tensors.find(graph.values[v].name);
    if (found == tensors.end()) continue;
    PLIMSOLL_RETURN_IF_ERROR(read_weight(executor, ValueId(v), file_, *found->second));
  }
  return {};
}

}  // namespace plimsoll::runtime
