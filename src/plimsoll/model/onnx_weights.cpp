#include "plimsoll/model/onnx_weights.h"

#include <fmt/format.h>

#include "plimsoll/model/onnx/format/model_file.h"
#include "plimsoll/model/onnx/format/tensor_content.h"

namespace plimsoll::model {
namespace {

Status add_contents(std::span<const std::byte> bytes, store::DataFolder& folder,
                    store::WeightSource& out) {
  PLIMSOLL_TRY(const onnx::ModelFile file, onnx::read_model(bytes));
  for (const onnx::TensorFile& tensor : file.graph.initializers) {
    auto content = onnx::content_of(tensor, &folder);
    if (!content) return forward(content, fmt::format("initialiser '{}'", tensor.name));
    if (content->is_owned) {
      out.add_owned(std::string(tensor.name), content->type, std::move(content->owned));
    } else {
      out.add(std::string(tensor.name), content->type, content->bytes);
    }
  }
  return {};
}

}  // namespace

Result<store::WeightSource> read_onnx_weights(const std::filesystem::path& path) {
  PLIMSOLL_TRY(MappedFile file, MappedFile::open(path));
  store::DataFolder folder(path.parent_path());
  store::WeightSource out;
  const Status added = add_contents(file.bytes(), folder, out);
  if (!added) return forward(added, path.string());
  out.keep(std::move(file));
  out.keep(std::move(folder));
  return out;
}

}  // namespace plimsoll::model
