#include "plimsoll/api/onnx_file.h"

#include "plimsoll/model/onnx_export.h"
#include "plimsoll/runtime/initial_content.h"
#include "plimsoll/store/npy.h"

namespace plimsoll::api {
namespace {

// A model that asks at import for the content of an input says so in this phrase.
bool wants_content(const Error& error) { return error.message.find("is not a constant") != std::string::npos; }

}  // namespace

Result<model::ImportedModel> import_onnx_file(const ModelRequest& request, bool train) {
  model::ImportOptions how;
  how.batch = request.sizes.batch;
  how.seq = request.sizes.seq;
  how.training = train;
  PLIMSOLL_TRY(how.dims, parse_dims(request.dims));
  std::vector<store::NamedTensor> arrays;
  if (!request.inputs.empty()) {
    PLIMSOLL_TRY(arrays, store::read_npz(request.inputs));
    for (const store::NamedTensor& array : arrays) how.shapes.emplace(array.name, array.type.shape);
  }
  auto model = model::import_onnx(request.model, how);
  if (model || arrays.empty() || !wants_content(model.error())) return model;
  for (const store::NamedTensor& array : arrays) {
    if (ir::is_float(array.type.dtype)) continue;
    PLIMSOLL_TRY(ops::Array content, ops::Array::from_bytes(array.type, array.bytes));
    how.values.emplace(array.name, std::move(content));
  }
  return model::import_onnx(request.model, how);
}

Status write_onnx_file(const ModelRequest& request, const std::filesystem::path& path) {
  PLIMSOLL_TRY(const LoadedModel loaded, load_model(request));
  const auto content = [&](const ir::Value& value) -> Result<std::vector<std::byte>> {
    if (const auto* entry = loaded.weights.find(value.name)) return std::vector<std::byte>(entry->bytes.begin(), entry->bytes.end());
    std::vector<std::byte> out(static_cast<std::size_t>(ir::bytes_of(value.type).value));
    runtime::fill_source(value, request.seed, 0, out);
    return out;
  };
  const Status written = model::write_onnx(path, loaded.graph, content);
  if (!written) return forward(written, request.model);
  return {};
}

}  // namespace plimsoll::api
