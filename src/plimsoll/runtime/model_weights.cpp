#include "plimsoll/runtime/model_weights.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/base/clock.h"
#include "plimsoll/base/log.h"
#include "plimsoll/codec/weights/encoded_matrix.h"
#include "plimsoll/codec/weights/float_values.h"
#include "plimsoll/codec/weights/weight_codec.h"
#include "plimsoll/ops/collective/shard.h"
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

// A run without these starts from other numbers than were meant: the weights, and for inference the
// statistics too, unless a model's own file has them.
bool is_needed(const ir::Value& value, bool trains) {
  return value.kind == ir::ValueKind::kWeight || (value.kind == ir::ValueKind::kState && !trains &&
                                                  value.init.kind != ir::Init::Kind::kFile);
}

// What a checkpoint has beside a weight that was trained.
bool is_optimizer_state(std::string_view name,
                        const std::unordered_set<std::string_view>& weights) {
  if (name == "optimizer.step") return true;
  for (const std::string_view end : {".m", ".v", ".momentum"}) {
    if (name.ends_with(end) && weights.contains(name.substr(0, name.size() - end.size())))
      return true;
  }
  return false;
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
      count_in_pieces(tensor);
      if (same) return read_pieces(value.type, tensor, memory, {});
      return read_pieces(value.type, tensor, memory, [&](std::span<const std::byte> piece) {
        floats_.resize(piece.size() / static_cast<std::size_t>(ir::bits(type->dtype) / 8));
        codec::to_floats(piece, *from, floats_);
        if (*to == codec::WeightKind::kF32) return std::as_bytes(std::span(floats_));
        converted_.resize(floats_.size() *
                          static_cast<std::size_t>(ir::bits(value.type.dtype) / 8));
        codec::from_floats(floats_, *to, converted_);
        return std::span<const std::byte>(converted_);
      });
    });
  }

  // In the form that the file has it in; `reader` says what the graph takes it for.
  Status read_encoded(ValueId id, const ir::Node& reader, const WeightTensor& tensor) {
    const ir::Value& value = executor_.graph().value(id);
    const ops::AttributeReader expected = ops::attributes_of(reader);
    const ir::Ints dims = expected.integers("dims");
    const auto dtype = store::dtype_of(tensor.element);
    const auto in_file = static_cast<std::int64_t>(file_.encoded_bytes(tensor));
    const bool plain = in_file == 0;
    const std::int64_t bytes = plain ? ir::bytes_of(value.type).value : in_file;
    const bool same = std::equal(
        dims.begin(), dims.end(), tensor.dims.begin(), tensor.dims.end(),
        [](std::int64_t a, std::uint64_t b) { return static_cast<std::uint64_t>(a) == b; });
    if (!same || !dtype || ir::name(*dtype) != expected.text("dtype") ||
        (!plain && tensor.form != expected.text("form")) || bytes != ir::bytes_of(value.type).value)
      return bad_input(
          "{} '{}': the plan keeps it encoded as {} of {} bytes, the file has {} as {} of {} "
          "bytes; "
          "plan again with this file",
          ir::name(value.kind), value.name, expected.text("form"), ir::bytes_of(value.type).value,
          store::to_string(tensor.element, tensor.dims), tensor.form, bytes);
    const std::string form = expected.text("form");
    const Bytes decoded(4 * static_cast<std::int64_t>(ops::encoded_type(expected)->elements));
    WeightsLoaded::Kept& kept = loaded_.encoded[form];
    ++kept.tensors;
    kept.encoded += Bytes(bytes);
    kept.decoded += decoded;
    ++loaded_.tensors;
    loaded_.kept.push_back({value.name, form, Bytes(bytes), decoded, std::nullopt});
    if (plain) return encode(id, tensor, form);
    return executor_.write(id, [&](std::span<std::byte> memory) -> Status {
      count(file_.read_method(tensor, true), bytes);
      if (in_arena(memory)) return wait_for_others(tensor, memory, true);
      return file_.read_encoded(tensor, memory, staging());
    });
  }

  // What waited.
  Status read_together() {
    Status read = file_.read_all(together_, staging());
    together_.clear();
    return read;
  }

 private:
  using Convert = std::function<std::span<const std::byte>(std::span<const std::byte>)>;

  // A weight that the file has plain.
  Status encode(ValueId id, const WeightTensor& tensor, const std::string& name) {
    PLIMSOLL_TRY(const store::Form form, store::parse_form(name));
    count_in_pieces(tensor);
    store::FormError error;
    PLIMSOLL_RETURN_IF_ERROR(executor_.write(id, [&](std::span<std::byte> memory) {
      return file_.encode_into(tensor, form, memory, error);
    }));
    loaded_.kept.back().max_error = error.max_error();
    return {};
  }
  // A piece at a time, each converted and put where the layout has its elements.
  Status read_pieces(const ir::TensorType& type, const WeightTensor& tensor,
                     std::span<std::byte> memory, const Convert& convert) {
    if (!type.layout.is_row_major()) std::memset(memory.data(), 0, memory.size());
    std::int64_t first = 0;
    return file_.for_chunks(tensor, [&](std::span<const std::byte> piece) -> Status {
      const std::span<const std::byte> values = convert ? convert(piece) : piece;
      place_row_major(type, first, values, memory);
      first += static_cast<std::int64_t>(values.size()) * 8 / ir::bits(type.dtype);
      return {};
    });
  }
  // Blocks of cold files pass through what is free in the arena yet.
  store::PartReader::Staging staging() const { return executor_.free_memory(); }
  void count(std::optional<store::ReadMethod> method, std::int64_t bytes) {
    loaded_.by_method[std::string(method ? store::name(*method) : "copied")] += Bytes(bytes);
  }
  // Pieces are read through the page cache, whatever was asked for.
  void count_in_pieces(const WeightTensor& tensor) {
    auto method = file_.read_method(tensor);
    if (method && *method != store::ReadMethod::kNetwork) method = store::ReadMethod::kCached;
    count(method, static_cast<std::int64_t>(tensor.bytes));
  }
  bool in_arena(std::span<const std::byte> memory) const {
    const auto arenas = executor_.arenas();
    return !arenas.empty() && !arenas[0].empty() && memory.data() >= arenas[0].data() &&
           memory.data() + memory.size() <= arenas[0].data() + arenas[0].size();
  }
  // What can be is read together at the end, so that a disk always has work, and every core.
  Status wait_for_others(const WeightTensor& tensor, std::span<std::byte> memory, bool encoded) {
    together_.push_back({&tensor, memory, encoded});
    return {};
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
    std::optional<store::ReadMethod> method = file_.read_method(tensor, true);
    if (method == store::ReadMethod::kMapped) method = store::ReadMethod::kCached;
    count(method, static_cast<std::int64_t>(tensor.bytes));
    if (in_arena(memory)) return wait_for_others(tensor, memory, false);
    return file_.read_into(tensor, memory, staging());
  }

  std::vector<float> floats_;
  std::vector<std::byte> converted_;
  std::vector<store::WeightsFile::Wanted> together_;
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
  std::string_view best_off;
  std::string_view best_on;
  std::size_t most = 0;
  for (const std::string_view off : kTakenOff) {
    for (const std::string_view on : kPutOn) {
      std::size_t found = 0;
      for (const WeightTensor& tensor : file_.tensors())
        if (tensor.name.starts_with(off) && wanted.contains(renamed(tensor.name, off, on))) ++found;
      if (found <= most) continue;
      most = found;
      best_off = off;
      best_on = on;
    }
  }
  std::unordered_map<std::string, const WeightTensor*> best;
  for (const WeightTensor& tensor : file_.tensors())
    if (tensor.name.starts_with(best_off))
      best.emplace(renamed(tensor.name, best_off, best_on), &tensor);
  return best;
}

Bytes ModelWeights::loading_bytes(const ir::Graph& graph, bool encodes) const {
  // What libraries make for their calls, a page that is written in part, lists of losses.
  constexpr std::uint64_t kAllowance = 72 << 10;
  constexpr std::uint64_t kOfName = 320;  // in tables of names, beside the names themselves
  std::uint64_t most = 0;
  std::uint64_t names = 0;
  const auto tensors = by_model_name(graph);
  for (const auto& [name, tensor] : tensors) names += kOfName + 4 * name.size();
  for (const ir::Value& value : graph.values) {
    const auto found = tensors.find(value.name);
    if (!ir::is_persistent(value.kind) || found == tensors.end()) continue;
    names += kOfName + 4 * value.name.size();
    const WeightTensor& tensor = *found->second;
    const bool same = store::dtype_of(tensor.element) == value.type.dtype;
    // A layout of its own is chosen later, and never for matrices.
    const bool may_encode =
        encodes && value.type.shape.rank() > 1 && file_.encoded_bytes(tensor) == 0;
    const bool visited = !same || value.type.shape.rank() > 2 || may_encode;
    std::uint64_t bytes = visited ? file_.visiting_bytes(tensor) : file_.reading_bytes(tensor);
    if (may_encode) bytes += file_.encoding_bytes(tensor);
    // As fp32, which is twice what 16 bits were, and from there to what the model has.
    if (!same) bytes += (value.type.dtype == ir::DType::kF32 ? 2 : 3) * codec::kChunkBytes;
    most = std::max(most, bytes);
  }
  return Bytes(static_cast<std::int64_t>(most + names + tables_ + kAllowance));
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

Result<std::map<std::string, std::vector<EncodedForm>>> ModelWeights::possible_forms(
    const ir::Graph& graph, const std::function<bool(const ir::Value&)>& wanted,
    const std::vector<std::string>& lossy) const {
  std::map<std::string, std::vector<EncodedForm>> out;
  std::vector<store::Form> forms;
  for (const store::Form form : store::all_forms())
    if (store::is_lossless(form) && store::stays_in_memory(form)) forms.push_back(form);
  for (const std::string& name : lossy) {
    PLIMSOLL_TRY(const store::Form form, store::parse_form(name));
    forms.push_back(form);
  }
  const auto tensors = by_model_name(graph);
  for (const ir::Value& value : graph.values) {
    const auto found = tensors.find(value.name);
    if (value.kind != ir::ValueKind::kWeight || found == tensors.end() || !wanted(value)) continue;
    const WeightTensor& tensor = *found->second;
    const auto type = store::tensor_type(tensor.element, tensor.dims);
    const bool narrow =
        tensor.element == store::Element::kF16 || tensor.element == store::Element::kBF16;
    if (!type || type->shape != value.type.shape || file_.encoded_bytes(tensor) > 0 ||
        (tensor.element != store::Element::kF32 && !narrow))
      continue;
    PLIMSOLL_TRY(const std::vector<std::uint64_t> bytes, file_.bytes_in_forms(tensor, forms));
    const auto plain = static_cast<std::uint64_t>(ir::bytes_of(value.type).value);
    const auto add = [&](store::Form form, std::uint64_t taken) {
      if (taken == 0 || taken >= plain) return;
      out[value.name].push_back(
          {std::string(store::name(form)), type->dtype, Bytes(static_cast<std::int64_t>(taken))});
    };
    if (narrow)
      add(store::Form::kRaw,
          codec::encoded_table_bytes(store::chunks_of(tensor.bytes)) + tensor.bytes);
    for (std::size_t f = 0; f < forms.size(); ++f) add(forms[f], bytes[f]);
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
  for (const ops::ShardedState& part : ops::sharded_state(graph)) {
    if (graph.value(part.value).kind == ir::ValueKind::kWeight)
      return fail(ErrorCode::kUsage,
                  "--weights {}: ranks share the weights of this model, and each would read its "
                  "part; not yet: share optimizer,gradients, or --resume a checkpoint",
                  path_);
  }
  PLIMSOLL_TRY(const auto encoded, ops::encoded_weights(graph));
  const auto tensors = by_model_name(graph);
  const bool trains = ir::has_phase(graph, ir::Phase::kUpdate);
  std::vector<std::string> missing;
  bool from_model = false;
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
      from_model = value.init.kind == ir::Init::Kind::kFile;
    }
  }
  // In the order of the file.
  std::vector<const WeightTensor*> strangers;
  for (const auto& [name, tensor] : tensors)
    if (!used.contains(name) && !is_known_extra(name) && !is_optimizer_state(name, used))
      strangers.push_back(tensor);
  std::sort(strangers.begin(), strangers.end());
  std::vector<std::string> extra;
  for (const WeightTensor* tensor : strangers) extra.push_back(tensor->name);
  if (used.empty())
    return bad_input("{}: none of its {} arrays ({}) is a weight of the model, which has {}", path_,
                     file_.tensors().size(), few_of(extra), few_of(missing));
  const char* const instead = from_model ? "as the model's own file has them" : "from the seed";
  const char* const sizes =
      from_model ? "" : ", if the model's sizes (--layers, --width, ...) are right";
  if (!missing.empty() && !allow_missing)
    return bad_input(
        "{}: {} of the model's weights are not in it ({}), {} are; --allow-missing takes those "
        "{}{}",
        path_, missing.size(), few_of(missing), used.size(), instead, sizes);
  if (!missing.empty())
    log::warn("{}: {} weights are taken {} ({})", path_, missing.size(), instead, few_of(missing));
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
  PLIMSOLL_RETURN_IF_ERROR(loading.read_together());
  loaded.seconds = watch.seconds();
  return {};
}

}  // namespace plimsoll::runtime
