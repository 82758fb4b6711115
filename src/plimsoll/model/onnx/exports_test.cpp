// Small models as PyTorch exports them, by both exporters: the same outputs as PyTorch's.
// Made by tools/references/export_onnx.py.
#include <gtest/gtest.h>

#include <set>

#include "plimsoll/base/testing/test_paths.h"
#include "plimsoll/model/onnx/testing/backend_case.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/store/npz.h"

namespace plimsoll::model::onnx {
namespace {

namespace fs = std::filesystem;

const fs::path kExports = test_source_dir() / "tests/onnx/exports";

std::vector<std::string> export_names() {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(kExports)) {
    if (entry.path().extension() == ".onnx") names.insert(entry.path().stem().string());
  }
  return {names.begin(), names.end()};
}

// "gpt2.dynamo" has its arrays in gpt2.npz.
std::map<std::string, ops::Array> arrays_of(const std::string& name) {
  std::map<std::string, ops::Array> out;
  const auto arrays = store::read_npz(kExports / (name.substr(0, name.find('.')) + ".npz"));
  EXPECT_TRUE(arrays) << arrays.error().message;
  if (!arrays) return out;
  for (const store::NamedTensor& array : *arrays)
    out.emplace(array.name, *ops::Array::from_bytes(array.type, array.bytes));
  return out;
}

class Exports : public testing::TestWithParam<std::string> {};

TEST_P(Exports, GiveTheOutputsOfPytorch) {
  const auto arrays = arrays_of(GetParam());
  ASSERT_FALSE(arrays.empty());
  std::vector<NamedArray> inputs;
  for (const auto& [name, array] : arrays) {
    if (name.starts_with("in.")) inputs.push_back({name.substr(3), array});
  }
  ImportOptions how;  // open dimensions take the sizes of what was recorded
  for (const NamedArray& input : inputs) how.shapes[input.name] = input.array.type.shape;
  const auto model = import_onnx(kExports / (GetParam() + ".onnx"), how);
  ASSERT_TRUE(model) << model.error().message;
  ASSERT_TRUE(ops::verify(model->graph));
  const auto outputs = run_reference(*model, inputs);
  ASSERT_TRUE(outputs) << outputs.error().message;
  const Status same = compare(outputs->front(), arrays.at("out.0"), {1e-4, 1e-4});
  EXPECT_TRUE(same) << same.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    Pytorch, Exports, testing::ValuesIn(export_names()), [](const auto& instance) {
      std::string name = instance.param;
      std::replace_if(
          name.begin(), name.end(),
          [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
      return name;
    });

}  // namespace
}  // namespace plimsoll::model::onnx
