#include "plimsoll/api/plan_weights.h"

#include <algorithm>
#include <filesystem>

#include "plimsoll/api/onnx_file.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/content_hash.h"
#include "plimsoll/base/log.h"
#include "plimsoll/ops/products/encoded_weight.h"
#include "plimsoll/store/data_folder.h"
#include "plimsoll/store/weights_file.h"

namespace plimsoll::api {
namespace {

namespace fs = std::filesystem;
using plan::WeightsOrigin;

// Of a model's file; weights that stay encoded are of the file that --weights names.
std::vector<const ir::Value*> from_file(const ir::Graph& graph) {
  const auto encoded = ops::encoded_weights(graph);
  std::vector<const ir::Value*> out;
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const ir::Value& value = graph.values[v];
    if (ir::is_source(value.kind) && value.init.kind == ir::Init::Kind::kFile &&
        !(encoded && encoded->contains(ValueId(v))))
      out.push_back(&value);
  }
  return out;
}

// Below the folder of the plan, by a relative path without ".."; else absolute.
std::string path_in_plan(const std::string& model, const std::string& plan_file) {
  std::error_code error;
  const fs::path target = fs::weakly_canonical(fs::absolute(model), error);
  const fs::path folder = fs::weakly_canonical(fs::absolute(plan_file).parent_path(), error);
  const fs::path relative = target.lexically_relative(folder);
  if (relative.empty() || *relative.begin() == "..") return target.string();
  return relative.string();
}

std::vector<WeightsOrigin::File> files_of(const store::WeightSource& weights) {
  std::vector<WeightsOrigin::File> out;
  for (const store::WeightSource::SourceFile& file : weights.files()) {
    const auto bytes = file.file->bytes();
    const std::uint64_t hash =
        content_hash(bytes, [&](std::span<const std::byte> piece) { file.file->release(piece); });
    out.push_back({file.in_folder ? file.name : "", Bytes(static_cast<std::int64_t>(bytes.size())),
                   hash_text(hash)});
  }
  return out;
}

// What differs from what the plan remembers; empty: nothing. Sizes first, they cost nothing.
std::string difference(const WeightsOrigin& origin, const store::WeightSource& weights) {
  const auto called = [&](const std::string& name) { return name.empty() ? origin.model : name; };
  for (const WeightsOrigin::File& was : origin.files) {
    const auto files = weights.files();
    const auto is = std::find_if(files.begin(), files.end(), [&](const auto& file) {
      return (file.in_folder ? file.name : "") == was.name;
    });
    if (is == files.end()) return fmt::format("'{}' is no longer part of it", called(was.name));
    const auto bytes = static_cast<std::int64_t>(is->file->bytes().size());
    if (bytes != was.bytes.value) {
      return fmt::format("'{}' had {} bytes, now it has {}", called(was.name),
                         grouped(was.bytes.value), grouped(bytes));
    }
  }
  const std::vector<WeightsOrigin::File> now = files_of(weights);
  if (now.size() != origin.files.size())
    return fmt::format("it was {} files, now it is {}", origin.files.size(), now.size());
  for (const WeightsOrigin::File& is : now) {
    const auto was = std::find_if(origin.files.begin(), origin.files.end(),
                                  [&](const auto& file) { return file.name == is.name; });
    if (was == origin.files.end() || was->hash == is.hash) continue;
    return fmt::format("'{}' had the hash {}, now it has {}", called(is.name), was->hash, is.hash);
  }
  return "";
}

// The model beside the plan, where it may be opened without having been named.
Result<std::string> model_beside(const std::string& model, const std::string& plan_file) {
  if (fs::path(model).is_absolute()) {
    return bad_input(
        "{}: its weights are in '{}', which is not in the plan's folder; name it to use it: "
        "--weights {}",
        plan_file, model, model);
  }
  const fs::path folder = fs::path(plan_file).parent_path();
  const fs::path path = folder / model;
  std::error_code error;
  if (!fs::exists(path, error)) {
    return bad_input(
        "{}: its weights are in '{}', which is not there; put it back, or name the model it was "
        "planned from: --weights MODEL.onnx",
        plan_file, path.string());
  }
  store::DataFolder opened(folder);
  const auto bytes = opened.open(model, 0, std::nullopt);
  if (!bytes)
    return bad_input("{}: its weights are in '{}', which may not be opened ({}); name it to use it",
                     plan_file, model, bytes.error().message);
  return path.string();
}

}  // namespace

bool lies_beside(const std::string& model, const std::string& plan_file) {
  return !fs::path(path_in_plan(model, plan_file)).is_absolute();
}

bool takes_weights_from_file(const ir::Graph& graph) {
  return !from_file(graph).empty();
}

Result<WeightsOrigin> origin_of_weights(const ModelRequest& request,
                                        const store::WeightSource& weights,
                                        const std::string& plan_file) {
  WeightsOrigin out;
  out.model = path_in_plan(request.model, plan_file);
  out.files = files_of(weights);
  out.training = request.train.value_or(false);  // as files are loaded (load_model.h)
  out.untied = request.untie;
  out.batch = request.sizes.batch;
  out.seq = request.sizes.seq;
  PLIMSOLL_TRY(out.dims, parse_dims(request.dims));
  return out;
}

Result<store::WeightSource> load_plan_weights(const plan::Plan& plan, const std::string& plan_file,
                                              const std::string& named) {
  if (!plan.weights) {
    return bad_input(
        "{}: its weights came from a file that it does not name; give them: --weights "
        "WEIGHTS.npz, or plan again",
        plan_file);
  }
  const WeightsOrigin& origin = *plan.weights;
  ModelRequest request;
  request.model = named;
  if (named.empty()) {
    PLIMSOLL_TRY(request.model, model_beside(origin.model, plan_file));
  }
  request.sizes.batch = origin.batch;
  request.sizes.seq = origin.seq;
  request.untie = origin.untied;
  for (const auto& [name, size] : origin.dims)
    request.dims.push_back(fmt::format("{}={}", name, size));
  auto imported = import_onnx_file(request, origin.training);
  if (!imported) return forward(imported, plan_file + ": its weights");
  const std::string changed = difference(origin, imported->weights);
  if (!changed.empty() && named.empty()) {
    return bad_input(
        "{}: the weights have changed since it was planned: {}; plan again, or name the model to "
        "use it as it is: --weights {}",
        plan_file, changed, request.model);
  }
  if (!changed.empty())
    log::warn("{}: not what {} was planned from: {}", named, plan_file, changed);
  return std::move(imported->weights);
}

Status require_weights_in(const ir::Graph& graph, const std::vector<std::string>& archives,
                          const Error& otherwise) {
  std::vector<store::WeightsFile> files;
  for (const std::string& archive : archives) {
    if (archive.empty()) continue;
    PLIMSOLL_TRY(store::WeightsFile file, store::WeightsFile::open(archive));
    files.push_back(std::move(file));
  }
  for (const ir::Value* value : from_file(graph)) {
    const bool there = std::any_of(files.begin(), files.end(), [&](const store::WeightsFile& file) {
      return file.find(value->name) != nullptr;
    });
    if (!there) return tl::unexpected<Error>(otherwise);
  }
  return {};
}

}  // namespace plimsoll::api
