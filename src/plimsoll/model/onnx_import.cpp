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

// The weights of a graph, and of the bodies of its control flow: a model that decides by its input
// (one network for each sampling rate) has all of them there.
class OnnxWeights {
 public:
  OnnxWeights(store::DataFolder& folder, store::WeightSource& out) : folder_(folder), out_(out) {}

  // `within` is the body's place, for names that two bodies have.
  Status add(const onnx::GraphFile& graph, const std::string& within, int depth) {
    if (depth > onnx::kMostDepth)
      return bad_input("bodies of control flow are nested more than {} deep", onnx::kMostDepth);
    for (const onnx::TensorFile& tensor : graph.initializers) {
      auto content = onnx::content_of(tensor, &folder_);
      if (!content) return forward(content, fmt::format("initialiser '{}'", tensor.name));
      add_content(tensor.name, within, std::move(*content));
    }
    for (const onnx::WireBytes& message : graph.nodes) {
      PLIMSOLL_TRY(const onnx::NodeFile node, onnx::read_node(message));
      PLIMSOLL_RETURN_IF_ERROR(add_constant(node, within));
      for (const onnx::AttributeFile& attribute : node.attributes) {
        if (!attribute.has_g) continue;
        PLIMSOLL_TRY(const onnx::GraphFile body, onnx::read_graph(attribute.g));
        const std::string_view name =
            node.name.empty() && !node.outputs.empty() ? node.outputs[0] : node.name;
        PLIMSOLL_RETURN_IF_ERROR(
            add(body, fmt::format("{}{}/{}/", within, name, attribute.name), depth + 1));
      }
    }
    return {};
  }

 private:
  // Weights that a file has as Constant nodes, as PaddlePaddle's exporter writes them: floats, and
  // more than one. Sizes, axes and epsilons are no weights.
  Status add_constant(const onnx::NodeFile& node, const std::string& within) {
    if (node.op != "Constant" || node.outputs.size() != 1) return {};
    for (const onnx::AttributeFile& attribute : node.attributes) {
      if (attribute.name != "value" || !attribute.has_t) continue;
      PLIMSOLL_TRY(const onnx::TensorFile tensor, onnx::read_tensor(attribute.t));
      auto content = onnx::content_of(tensor, &folder_);
      if (!content) return forward(content, fmt::format("constant '{}'", node.outputs[0]));
      if (!ir::is_float(content->type.dtype) || content->type.shape.elements() < 2) continue;
      add_content(node.outputs[0], within, std::move(*content));
    }
    return {};
  }
  void add_content(std::string_view name, const std::string& within, onnx::TensorContent content) {
    std::string free(name);
    if (!within.empty() && out_.find(free) != nullptr) free = within + free;
    if (content.is_owned) {
      out_.add_owned(std::move(free), content.type, std::move(content.owned));
    } else {
      out_.add(std::move(free), content.type, content.bytes);
    }
  }

  store::DataFolder& folder_;
  store::WeightSource& out_;
};

Status add_contents(std::span<const std::byte> bytes, store::DataFolder& folder,
                    store::WeightSource& out) {
  PLIMSOLL_TRY(const onnx::ModelFile file, onnx::read_model(bytes));
  return OnnxWeights(folder, out).add(file.graph, "", 0);
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
