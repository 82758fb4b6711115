#include "plimsoll/model/onnx/testing/backend_case.h"

#include <cmath>

#include "plimsoll/base/file.h"
#include "plimsoll/model/onnx/format/model_file.h"
#include "plimsoll/model/onnx/format/tensor_content.h"
#include "plimsoll/ops/evaluation/interpreter.h"

namespace plimsoll::model::onnx {
namespace {

Result<std::vector<NamedArray>> read_arrays(const std::filesystem::path& folder,
                                            std::string_view stem,
                                            const std::vector<std::string>& names) {
  std::vector<NamedArray> out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto path = folder / fmt::format("{}_{}.pb", stem, i);
    if (!std::filesystem::exists(path)) break;
    PLIMSOLL_TRY(ops::Array array, read_tensor_file(path));
    out.push_back({names[i], std::move(array)});
  }
  return out;
}

}  // namespace

Result<ops::Array> read_tensor_file(const std::filesystem::path& path) {
  PLIMSOLL_TRY(const MappedFile file, MappedFile::open(path));
  PLIMSOLL_TRY(const TensorFile tensor, read_tensor(file.bytes()));
  auto array = array_of(tensor, nullptr);
  if (!array) return forward(array, path.filename().string());
  return array;
}

Result<BackendCase> read_backend_case(const std::filesystem::path& folder) {
  BackendCase out;
  out.model = folder / "model.onnx";
  PLIMSOLL_TRY(const MappedFile file, MappedFile::open(out.model));
  PLIMSOLL_TRY(const ModelFile model, read_model(file.bytes()));
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  for (const ValueFile& value : model.graph.inputs) inputs.emplace_back(value.name);
  for (const ValueFile& value : model.graph.outputs) outputs.emplace_back(value.name);
  const auto data = folder / "test_data_set_0";
  PLIMSOLL_TRY(out.inputs, read_arrays(data, "input", inputs));
  PLIMSOLL_TRY(out.outputs, read_arrays(data, "output", outputs));
  return out;
}

Result<ImportedModel> import_case(const BackendCase& test, const ImportOptions& options) {
  ImportOptions with_shapes = options;
  for (const NamedArray& input : test.inputs)
    with_shapes.shapes.emplace(input.name, input.array.type.shape);
  auto model = import_onnx(test.model, with_shapes);
  if (model || model.error().message.find("not a constant") == std::string::npos) return model;
  for (std::size_t i = 1; i < test.inputs.size(); ++i) {
    with_shapes.values.emplace(test.inputs[i].name, test.inputs[i].array);
  }
  model = import_onnx(test.model, with_shapes);
  if (model || test.inputs.empty() || test.inputs.front().array.is_real()) return model;
  with_shapes.values.emplace(test.inputs.front().name, test.inputs.front().array);
  return import_onnx(test.model, with_shapes);
}

Result<std::vector<ops::Array>> run_reference(const ImportedModel& model,
                                              const std::vector<NamedArray>& inputs) {
  std::unordered_map<std::string, ops::Array> sources;
  for (const NamedArray& input : inputs) sources.emplace(input.name, input.array);
  for (const ir::Value& value : model.graph.values) {
    if (!ir::is_persistent(value.kind) || sources.contains(value.name)) continue;
    if (value.init.kind == ir::Init::Kind::kFile) {
      const auto* entry = model.weights.find(value.name);
      if (entry == nullptr) return bad_input("weight '{}' is not in the file", value.name);
      PLIMSOLL_TRY(ops::Array array, ops::Array::from_bytes(entry->type, entry->bytes));
      sources.emplace(value.name, std::move(array));
    } else {
      ops::Array array(value.type);
      for (std::int64_t i = 0; i < array.elements(); ++i) array.set_number(i, value.init.a);
      array.round();
      sources.emplace(value.name, std::move(array));
    }
  }
  PLIMSOLL_TRY(ops::Environment values, ops::interpret(model.graph, sources));
  std::vector<ops::Array> out;
  for (const ValueId output : model.graph.outputs) out.push_back(*values[output.index()]);
  return out;
}

Status compare(const ops::Array& got, const ops::Array& expected, Tolerance tolerance) {
  if (got.type.dtype != expected.type.dtype || got.type.shape != expected.type.shape) {
    return bad_input("is {}, expected {}", ir::to_string(got.type), ir::to_string(expected.type));
  }
  // Two units in the last place of bfloat16, as ONNX's own runner allows.
  if (got.type.dtype == ir::DType::kBF16)
    tolerance.relative = std::max(tolerance.relative, 1.0 / 64);
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    const double a = got.number(i);
    const double b = expected.number(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!(std::abs(a - b) <= tolerance.absolute + tolerance.relative * std::abs(b))) {
      return bad_input("element {} is {}, expected {}", i, a, b);
    }
  }
  return {};
}

}  // namespace plimsoll::model::onnx
