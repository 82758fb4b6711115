#include "plimsoll/model/onnx_import.h"

#include <fmt/format.h>

#include "plimsoll/model/onnx/convert/operator_table.h"
#include "plimsoll/model/onnx/format/model_file.h"
#include "plimsoll/model/onnx/format/tensor_content.h"
#include "plimsoll/model/onnx/importer.h"

namespace plimsoll::model {
namespace {

Result<ImportedModel> import_model(std::span<const std::byte> bytes, store::DataFolder* folder,
                                   const ImportOptions& options) {
  PLIMSOLL_TRY(const onnx::ModelFile file, onnx::read_model(bytes));
  return onnx::Importer(file, folder, options, onnx::operator_set()).run();
}

void add_content(std::string_view name, onnx::TensorContent content, store::WeightSource& out) {
  if (content.is_owned) {
    out.add_owned(std::string(name), content.type, std::move(content.owned));
  } else {
    out.add(std::string(name), content.type, content.bytes);
  }
}

// Weights that a file has as Constant nodes, as PaddlePaddle's exporter writes them: floats, and
// more than one. Sizes, axes and epsilons are no weights.
Status add_constants(const onnx::GraphFile& graph, store::DataFolder& folder,
                     store::WeightSource& out) {
  for (const onnx::WireBytes& message : graph.nodes) {
    PLIMSOLL_TRY(const onnx::NodeFile node, onnx::read_node(message));
    if (node.op != "Constant" || node.outputs.size() != 1) continue;
    for (const onnx::AttributeFile& attribute : node.attributes) {
      if (attribute.name != "value" || !attribute.has_t) continue;
      PLIMSOLL_TRY(const onnx::TensorFile tensor, onnx::read_tensor(attribute.t));
      auto content = onnx::content_of(tensor, &folder);
      if (!content) return forward(content, fmt::format("constant '{}'", node.outputs[0]));
      if (!ir::is_float(content->type.dtype) || content->type.shape.elements() < 2) continue;
      add_content(node.outputs[0], std::move(*content), out);
    }
  }
  return {};
}

Status add_contents(std::span<const std::byte> bytes, store::DataFolder& folder,
                    store::WeightSource& out) {
  PLIMSOLL_TRY(const onnx::ModelFile file, onnx::read_model(bytes));
  for (const onnx::TensorFile& tensor : file.graph.initializers) {
    auto content = onnx::content_of(tensor, &folder);
    if (!content) return forward(content, fmt::format("initialiser '{}'", tensor.name));
    add_content(tensor.name, std::move(*content), out);
  }
  return add_constants(file.graph, folder, out);
}

}  // namespace

Result<ImportedModel> import_onnx(const std::filesystem::path& path, const ImportOptions& options) {
  PLIMSOLL_TRY(MappedFile file, MappedFile::open(path));
  store::DataFolder folder(path.parent_path(), options.follow_links);
  auto model = import_model(file.bytes(), &folder, options);
  if (!model) return forward(model, path.string());
  model->weights.keep(path.string(), std::move(file));
  model->weights.keep(std::move(folder));
  return model;
}

Result<ImportedModel> import_onnx_bytes(std::span<const std::byte> bytes,
                                        const ImportOptions& options) {
  return import_model(bytes, nullptr, options);
}

Result<store::WeightSource> read_onnx_weights(const std::filesystem::path& path) {
  PLIMSOLL_TRY(MappedFile file, MappedFile::open(path));
  store::DataFolder folder(path.parent_path());
  store::WeightSource out;
  const Status added = add_contents(file.bytes(), folder, out);
  if (!added) return forward(added, path.string());
  out.keep(path.string(), std::move(file));
  out.keep(std::move(folder));
  return out;
}

}  // namespace plimsoll::model
