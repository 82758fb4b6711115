#include "plimsoll/runtime/model_weights.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/base/clock.h"
#include "plimsoll/base/log.h"
#include "plimsoll/codec/weights/float_values.h"
#include "plimsoll/ops/products/encoded_weight.h"
#include "plimsoll/ops/registry.h"
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

// One weight on its way into an executor's memory.
class WeightLoading {
 public:
  WeightLoading(Executor& executor, const store::WeightsFile& file, const LoadOptions& options,
                WeightsLoaded& loaded)
      : executor_(executor), file_(file), options_(options), loaded_(loaded) {}

  Status read(ValueId id, const WeightTensor& tensor) {
    const ir::Value& value = executor_.graph().value(id);
    auto type = store::tensor_type(tensor.element, tensor.dims);
    if (!type) return forward(type, fmt::format("{} '{}'", ir::name(value.kind), value.name));
    const auto from = float_kind(type->dtype);
    const auto to = float_kind(value.type.dtype);
    const bool same = type->dtype == value.type.dtype;
    if (type->shape != value.type.shape || (!same && (!from || !to)))
      return bad_input("{} '{}': the file has {}, the model expects {}", ir::name(value.kind),
                       value.name, ir::to_string(*type), ir::to_string(value.type));
    ++loaded_.tensors;
    return executor_.write(id, [&](std::span<std::byte> memory) -> Status {
      if (same && value.type.layout.is_row_major()) return read_plain(tensor, memory);
      std::vector<std::byte> bytes(tensor.bytes);
      PLIMSOLL_RETURN_IF_ERROR(read_plain(tensor, bytes));
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

  // In the form that the file has it in; `reader` says what the graph takes it for.
  Status read_encoded(ValueId id, const ir::Node& reader, const WeightTensor& tensor) {
    const ir::Value& value = executor_.graph().value(id);
    const ops::AttributeReader expected = ops::attributes_of(reader);
    const ir::Ints dims = expected.integers("dims");
    const auto dtype = store::dtype_of(tensor.element);
    const auto bytes = static_cast<std::int64_t>(file_.encoded_bytes(tensor));
    const bool same = std::equal(
        dims.begin(), dims.end(), tensor.dims.begin(), tensor.dims.end(),
        [](std::int64_t a, std::uint64_t b) { return static_cast<std::uint64_t>(a) == b; });
    if (!same || !dtype || ir::name(*dtype) != expected.text("dtype") ||
        tensor.form != expected.text("form") || bytes != ir::bytes_of(value.type).value)
      return bad_input(
          "{} '{}': the plan keeps it encoded as {} of {} bytes, the file has {} as {} of {} "
          "bytes; "
          "plan again with this file",
          ir::name(value.kind), value.name, expected.text("form"), ir::bytes_of(value.type).value,
          store::to_string(tensor.element, tensor.dims), tensor.form, bytes);
    WeightsLoaded::Kept& kept = loaded_.encoded[tensor.form];
    ++kept.tensors;
    kept.encoded += Bytes(bytes);
    kept.decoded += Bytes(4 * static_cast<std::int64_t>(ops::encoded_type(expected)->elements));
    ++loaded_.tensors;
    count(file_.read_method(tensor), bytes);
    return executor_.write(
        id, [&](std::span<std::byte> memory) { return file_.read_encoded(tensor, memory); });
  }

 private:
  void count(std::optional<store::ReadMethod> method, std::int64_t bytes) {
    loaded_.by_method[std::string(method ? store::name(*method) : "copied")] += Bytes(bytes);
  }
  bool in_arena(std::span<const std::byte> memory) const {
    const auto arenas = executor_.arenas();
    return !arenas.empty() && !arenas[0].empty() && memory.data() >= arenas[0].data() &&
           memory.data() + memory.size() <= arenas[0].data() + arenas[0].size();
  }
  Status read_plain(const WeightTensor& tensor, std::span<std::byte> memory) {
    if (options_.may_lay_pages && in_arena(memory)) {
      PLIMSOLL_TRY(std::shared_ptr<const store::FilePages> pages, file_.lay_over(tensor, memory));
      if (pages && executor_.keep(pages)) {
        loaded_.pages.emplace_back(pages);
        count(store::ReadMethod::kMapped, static_cast<std::int64_t>(tensor.bytes));
        return {};
      }
    }
    std::optional<store::ReadMethod> method = file_.read_method(tensor);
    if (method == store::ReadMethod::kMapped) method = store::ReadMethod::kCached;
    count(method, static_cast<std::int64_t>(tensor.bytes));
    return file_.read_into(tensor, memory);
  }

  Executor& executor_;
  const store::WeightsFile& file_;
  const LoadOptions& options_;
  WeightsLoaded& loaded_;
};

}  // namespace

bool WeightsLoaded::was_cut() const {
  return std::any_of(pages.begin(), pages.end(), [](const auto& laid) {
    const auto there = laid.lock();
    return there && there->was_cut();
  });
}

Result<std::shared_ptr<const ModelWeights>> ModelWeights::open(
    const std::string& path, std::optional<store::ReadMethod> method) {
  PLIMSOLL_TRY(store::WeightsFile file, store::WeightsFile::open(path));
  file.set_read_method(method);
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

std::map<std::string, EncodedForm> ModelWeights::encoded_forms(const ir::Graph& graph) const {
  std::map<std::string, EncodedForm> out;
  const auto tensors = by_model_name(graph);
  for (const ir::Value& value : graph.values) {
    const auto found = tensors.find(value.name);
    if (value.kind != ir::ValueKind::kWeight || found == tensors.end()) continue;
    const WeightTensor& tensor = *found->second;
    const auto type = store::tensor_type(tensor.element, tensor.dims);
    const auto bytes = static_cast<std::int64_t>(file_.encoded_bytes(tensor));
    if (!type || bytes == 0 || type->shape != value.type.shape) continue;
    out[value.name] = {tensor.form, type->dtype, Bytes(bytes)};
  }
  return out;
}

std::unordered_set<std::string> ModelWeights::names_in(const ir::Graph& graph) const {
  std::unordered_set<std::string> out;
  for (const auto& [name, tensor] : by_model_name(graph)) out.insert(name);
  return out;
}

Bytes ModelWeights::bytes_on_pages() const {
  return Bytes(static_cast<std::int64_t>(file_.bytes_on_pages()));
}

Status ModelWeights::load(Executor& executor, const LoadOptions& options,
                          WeightsLoaded& loaded) const {
  const Stopwatch watch;
  const bool allow_missing = options.allow_missing;
  loaded = {};
  loaded.file = path_;
  loaded.format = file_.format();
  const ir::Graph& graph = executor.graph();
  PLIMSOLL_TRY(const auto encoded, ops::encoded_weights(graph));
  const auto tensors = by_model_name(graph);
  const bool trains = ir::has_phase(graph, ir::Phase::kUpdate);
  std::vector<std::string> missing;
  std::unordered_set<std::string_view> used;
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const ir::Value& value = graph.values[v];
    if (!ir::is_persistent(value.kind)) continue;
    if (tensors.contains(value.name)) {
      used.insert(value.name);
    } else if (encoded.contains(ValueId(v))) {
      return bad_input("{}: weight '{}', which the plan keeps encoded, is not in it", path_,
                       value.name);
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
  WeightLoading loading(executor, file_, options, loaded);
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    if (!ir::is_persistent(graph.values[v].kind)) continue;
    const auto found = tensors.find(graph.values[v].name);
    if (found == tensors.end()) continue;
    const auto reader = encoded.find(ValueId(v));
    PLIMSOLL_RETURN_IF_ERROR(
        reader == encoded.end()
            ? loading.read(ValueId(v), *found->second)
            : loading.read_encoded(ValueId(v), *reader->second, *found->second));
  }
  loaded.seconds = watch.seconds();
  return {};
}

}  // namespace plimsoll::runtime
