#include "plimsoll/api/load_model.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "plimsoll/api/onnx_file.h"
#include "plimsoll/base/file.h"
#include "plimsoll/ir/text.h"
#include "plimsoll/model/loss.h"
#include "plimsoll/model/zoo.h"
#include "plimsoll/ops/registry.h"

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
       {"dropout", sizes.dropout.has_value()},
       {"amp", !request.amp.empty()}}};
  for (const auto& [name, is_given] : given) {
    if (is_given)
      return fail(ErrorCode::kUsage, "{}: --{} is for built-in models; a file's sizes are fixed",
                  request.model, name);
  }
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

Result<LoadedModel> load_file(const ModelRequest& request, bool train) {
  LoadedModel out;
  PLIMSOLL_RETURN_IF_ERROR(refuse_sizes(request));
  if (request.model.ends_with(".onnx")) {
    PLIMSOLL_TRY(model::ImportedModel imported, import_onnx_file(request, train));
    out.graph = std::move(imported.graph);
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
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const ir::Node& node) { return node.phase == ir::Phase::kBackward; });
}

Result<LoadedModel> load_forward(const ModelRequest& request) {
  const bool file = is_file(request.model);
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
