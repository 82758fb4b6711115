#include "plimsoll/api/load_model.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "plimsoll/api/file_kind.h"
#include "plimsoll/api/onnx_file.h"
#include "plimsoll/base/file.h"
#include "plimsoll/base/log.h"
#include "plimsoll/ir/text.h"
#include "plimsoll/model/loss.h"
#include "plimsoll/model/zoo.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/mixed_precision.h"

namespace plimsoll::api {
namespace {

Result<ir::DType> parse_float(const ModelRequest& request, std::string_view option,
                              std::string_view text) {
  const auto dtype = ir::parse_dtype(text);
  if (!dtype || !ir::is_float(*dtype)) {
    return fail(ErrorCode::kUsage, "{}: --{} {} is no float type; fp64, fp32, fp16 and bf16 are",
                request.model, option, text);
  }
  return *dtype;
}

Result<ir::Graph> load_built_in(const ModelRequest& request, bool train) {
  if (!request.loss.empty() && request.loss != "cross-entropy") {
    return fail(ErrorCode::kUsage, "{}: a built-in model has its own loss; --loss {} is for files",
                request.model, request.loss);
  }
  model::ModelOptions sizes = request.sizes;
  PLIMSOLL_TRY(sizes.dtype, parse_float(request, "dtype", request.dtype));
  if (!request.amp.empty()) {
    PLIMSOLL_TRY(sizes.amp, parse_float(request, "amp", request.amp));
    if (ir::bits(*sizes.amp) != 16)
      return fail(ErrorCode::kUsage, "{}: --amp {}: expects bf16 or fp16", request.model,
                  request.amp);
    if (sizes.amp == sizes.dtype)
      return fail(ErrorCode::kUsage,
                  "{}: --amp {} would change nothing, because --dtype is {}; leave out one of them",
                  request.model, request.amp, request.dtype);
  }
  sizes.training = train;
  sizes.seed = request.seed;
  return model::build_model(request.model, sizes);
}

// A file's sizes are its own, but for batch and seq where it has symbols for them; saying one that
// would have no effect is a mistake worth naming.
Status refuse_sizes(const ModelRequest& request) {
  const model::ModelOptions& sizes = request.sizes;
  const std::array<std::pair<const char*, bool>, 10> given = {
      {{"image", sizes.image.has_value()},
       {"frames", sizes.frames.has_value()},
       {"depth", sizes.depth.has_value()},
       {"width", sizes.width.has_value()},
       {"layers", sizes.layers.has_value()},
       {"heads", sizes.heads.has_value()},
       {"classes", sizes.classes.has_value()},
       {"vocab", sizes.vocab.has_value()},
       {"experts", sizes.experts.has_value()},
       {"dropout", sizes.dropout.has_value()}}};
  for (const auto& [name, is_given] : given) {
    if (is_given)
      return fail(ErrorCode::kUsage, "{}: --{} is for built-in models; a file's sizes are fixed",
                  request.model, name);
  }
  if (request.dtype != "fp32") {
    return fail(ErrorCode::kUsage,
                "{}: --dtype is for built-in models; a file's types are its own, --amp {} computes "
                "in another",
                request.model, request.dtype);
  }
  return {};
}

// --amp of a file: a forward graph computed in a narrow type.
Status narrow(const ModelRequest& request, ir::Graph& graph) {
  if (request.amp.empty()) return {};
  PLIMSOLL_TRY(const ir::DType compute, parse_float(request, "amp", request.amp));
  if (ir::bits(compute) != 16)
    return fail(ErrorCode::kUsage, "{}: --amp {}: expects bf16 or fp16", request.model,
                request.amp);
  if (has_backward(graph))
    return fail(ErrorCode::kUsage, "{}: --amp is for a forward graph, this is a training step",
                request.model);
  auto narrowed = rewrite::mixed_precision(graph, compute);
  if (!narrowed) return forward(narrowed, request.model);
  graph = *std::move(narrowed);
  return {};
}

// --batch, --seq and --dim NAME=SIZE.
Result<std::vector<ir::SymbolSize>> symbol_sizes(const ModelRequest& request) {
  PLIMSOLL_TRY(const auto dims, parse_dims(request.dims));
  std::vector<ir::SymbolSize> out;
  for (const auto& [name, size] : dims) out.push_back({name, size});
  if (request.sizes.batch) out.push_back({"batch", *request.sizes.batch});
  if (request.sizes.seq) out.push_back({"seq", *request.sizes.seq});
  return out;
}

// What a file does not say and training has to decide: said once, because either may be wrong.
void say_what_is_trained(const ModelRequest& request, const model::TrainedInitialisers& trained) {
  if (request.quiet) return;
  if (trained.shared > 0 && !request.untie) {
    log::warn(
        "{}: {} weights stand in {} places: {} shared, '{}' by {}; each is trained as one weight, "
        "--untie gives every place its own",
        request.model, trained.weights, trained.places,
        trained.shared == 1 ? "1 is" : fmt::format("{} are", trained.shared), trained.most_shared,
        trained.most_places);
  }
  std::int64_t count = 0;
  std::string why;
  for (const auto& [reason, many] : trained.not_trained) {
    count += many;
    why += fmt::format("{}{} ({})", why.empty() ? "" : ", ", reason, many);
  }
  if (count > 0)
    log::warn(
        "{}: {} not trained, no parameters: {}", request.model,
        count == 1 ? "1 float initialiser is" : fmt::format("{} float initialisers are", count),
        why);
}

// What exporters call every graph says nothing of this one.
bool is_exporters_word(std::string_view name) {
  constexpr std::array<std::string_view, 6> kWords = {
      "", "main_graph", "torch_jit", "torch-jit-export", "graph", "main"};
  return std::find(kWords.begin(), kWords.end(), name) != kWords.end();
}

Result<LoadedModel> load_file(const ModelRequest& request, bool train) {
  LoadedModel out;
  PLIMSOLL_RETURN_IF_ERROR(refuse_sizes(request));
  if (request.model.ends_with(".onnx")) {
    PLIMSOLL_TRY(model::ImportedModel imported, import_onnx_file(request, train));
    out.graph = std::move(imported.graph);
    if (is_exporters_word(out.graph.name))
      out.graph.name = std::filesystem::path(request.model).stem().string();
    if (train) say_what_is_trained(request, imported.trained);
    out.weights = std::move(imported.weights);
  } else {
    PLIMSOLL_TRY(const std::vector<ir::SymbolSize> sizes, symbol_sizes(request));
    PLIMSOLL_TRY(const MappedFile file, MappedFile::open(request.model));
    auto parsed = ir::parse_text(file.text(), sizes);
    if (!parsed) return forward(parsed, request.model);
    out.graph = *std::move(parsed);
  }
  const Status known = ops::verify(out.graph);
  if (!known) return forward(known, request.model);
  PLIMSOLL_RETURN_IF_ERROR(narrow(request, out.graph));
  if (train && !request.loss.empty()) {
    PLIMSOLL_TRY(out.graph, model::with_loss(std::move(out.graph), request.loss));
  }
  return out;
}

bool is_file(const std::string& model) {
  return model.ends_with(".graph") || model.ends_with(".onnx");
}

}  // namespace

bool has_backward(const ir::Graph& graph) {
  return ir::has_phase(graph, ir::Phase::kBackward);
}

Result<LoadedModel> load_forward(const ModelRequest& request) {
  const bool file = is_file(request.model);
  if (file || model::find_model(request.model) == nullptr) {
    // What ends in .onnx or .graph and is of no known kind is for its reader to refuse.
    const auto kind = file ? kind_of_file(request.model) : kind_of_any(request.model);
    if (kind) {
      return bad_input("{}: no model but {}; a MODEL is a built-in name, an .onnx or a .graph file",
                       request.model, *kind);
    }
    if (!file && request.model.find_first_of("./") != std::string::npos)
      return bad_input("{}: no such file; a MODEL is a built-in name, an .onnx or a .graph file",
                       request.model);
  }
  const bool train = request.train.value_or(!file);
  LoadedModel out;
  if (file) {
    PLIMSOLL_TRY(out, load_file(request, train));
  } else {
    PLIMSOLL_TRY(out.graph, load_built_in(request, train));
  }
  out.training = train;
  return out;
}

Result<autodiff::TrainingOptions> training_options(const ModelRequest& request) {
  autodiff::TrainingOptions how;
  PLIMSOLL_TRY(how.optimizer, autodiff::parse_optimizer(request.optimizer));
  how.learning_rate =
      request.learning_rate.value_or(autodiff::default_learning_rate(how.optimizer));
  how.weight_decay = request.weight_decay.value_or(how.weight_decay);
  how.decay_always = request.weight_decay.has_value();
  how.clip_norm = request.clip_norm;
  how.accumulate = request.accumulate;
  how.freeze = request.freeze;
  return how;
}

}  // namespace plimsoll::api
