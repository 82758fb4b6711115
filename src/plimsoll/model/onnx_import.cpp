#include "plimsoll/model/onnx_import.h"

#include "plimsoll/model/onnx/convert/operator_table.h"
#include "plimsoll/model/onnx/importer.h"

namespace plimsoll::model {
namespace {

Result<ImportedModel> import_model(std::span<const std::byte> bytes, store::DataFolder* folder,
                                   const ImportOptions& options) {
  PLIMSOLL_TRY(const onnx::ModelFile file, onnx::read_model(bytes));
  return onnx::Importer(file, folder, options, onnx::operator_set()).run();
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

}  // namespace plimsoll::model
