// What we write we read back, and it computes the same.
#include "plimsoll/base/testing/test_paths.h"
#include "plimsoll/model/onnx_export.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "plimsoll/base/random.h"
#include "plimsoll/model/onnx/testing/backend_case.h"
#include "plimsoll/ops/functions.h"

namespace plimsoll::model::onnx {
namespace {

namespace fs = std::filesystem;

ops::Array random_array(const ir::TensorType& type, std::uint64_t seed) {
  Random random(seed);
  ops::Array out(type);
  for (std::int64_t i = 0; i < out.elements(); ++i)
    out.set_number(i, ir::is_float(type.dtype) ? random.normal() : random.below(4));
  out.round();
  return out;
}

// Outputs of the model before and after the trip through a file.
void expect_round_trip(const ImportedModel& model, const std::vector<NamedArray>& inputs) {
  const auto content = [&](const ir::Value& value) -> Result<std::vector<std::byte>> {
    const auto* entry = model.weights.find(value.name);
    if (entry == nullptr) return bad_input("no weight '{}'", value.name);
    return std::vector<std::byte>(entry->bytes.begin(), entry->bytes.end());
  };
  const auto file = export_onnx(model.graph, content);
  ASSERT_TRUE(file) << file.error().message;
  const auto again =
      import_onnx_bytes({reinterpret_cast<const std::byte*>(file->data()), file->size()});
  ASSERT_TRUE(again) << again.error().message;
  const auto before = run_reference(model, inputs);
  const auto after = run_reference(*again, inputs);
  ASSERT_TRUE(before && after) << (before ? after : before).error().message;
  for (std::size_t i = 0; i < before->size(); ++i) {
    const Status same = compare((*after)[i], (*before)[i], {1e-5, 1e-5});
    EXPECT_TRUE(same) << same.error().message;
  }
}

TEST(OnnxExport, ReadsBackTheSameModel) {
  const auto exports = test_source_dir() / "tests/onnx/exports";
  for (const std::string name :
       {"resnet.dynamo", "mobilenet_v3.dynamo", "gpt2_mask.script", "llama.dynamo", "unet.dynamo",
        "vit.script", "swin.script", "routed.script", "routed_twice.dynamo"}) {
    SCOPED_TRACE(name);
    const auto model = import_onnx(exports / (name + ".onnx"));
    ASSERT_TRUE(model) << model.error().message;
    std::vector<NamedArray> inputs;
    for (const ir::Value& value : model->graph.values) {
      if (value.kind == ir::ValueKind::kInput)
        inputs.push_back({value.name, random_array(value.type, 5)});
    }
    expect_round_trip(*model, inputs);
  }
}

// Ours read zeros and write nothing; ONNX forbids such places, so none of them may be written.
TEST(OnnxExport, CountedPlacesOutsideOfATableMeanASpareRow) {
  ops::Builder builder("counted");
  const ir::TensorType six{ir::DType::kI64, {6}, {}}, four_rows{ir::DType::kF32, {4, 2}, {}},
      six_rows{ir::DType::kF32, {6, 2}, {}};
  const ops::Var marks = builder.input("marks", six);
  const ops::Var table = builder.input("table", four_rows);
  const ops::Var rows = builder.input("rows", six_rows);
  const ops::Var places = ops::cumsum(marks, 0, true);
  const auto graph =
      builder.finish({ops::gather(table, places), ops::gather_grad(rows, places, 0, {4, 2})});
  ASSERT_TRUE(graph) << graph.error().message;
  ImportedModel model;
  model.graph = *graph;
  ops::Array twos(six);
  for (std::int64_t i = 0; i < 6; ++i) twos.set_number(i, 2);
  expect_round_trip(model, {{"marks", twos},
                            {"table", random_array(four_rows, 1)},
                            {"rows", random_array(six_rows, 2)}});
  const auto file =
      export_onnx(*graph, [](const ir::Value&) { return Result<std::vector<std::byte>>(); });
  ASSERT_TRUE(file) << file.error().message;
  const auto again =
      import_onnx_bytes({reinterpret_cast<const std::byte*>(file->data()), file->size()});
  ASSERT_TRUE(again) << again.error().message;
  // Both read the same places, which are held inside once; one table is longer, one is cut.
  for (const char* op : {"minimum", "pad", "slice"})
    EXPECT_EQ(std::ranges::count(again->graph.nodes, op, &ir::Node::op), 1) << op;
}

TEST(OnnxExport, PutsLargeWeightsBesideTheFile) {
  ops::Builder builder("beside");
  const ops::Var x = builder.input("x", {ir::DType::kF32, {2, 64}, {}});
  const ops::Var w =
      builder.weight("w", {ir::DType::kF32, {64, 64}, {}}, {ir::Init::Kind::kConstant, 0.5, 0});
  const auto graph = builder.finish({builder.call1("linear", {x, w})});
  ASSERT_TRUE(graph);
  std::string data;
  const auto content = [](const ir::Value& value) -> Result<std::vector<std::byte>> {
    return random_array(value.type, 3).to_bytes();
  };
  const auto file = export_onnx(*graph, content, &data, "weights.data");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(data.size(), 64U * 64 * 4);
  EXPECT_LT(file->size(), 2000U);
}

TEST(OnnxExport, RefusesWhatHasNoForm) {
  ops::Builder builder("step");
  const ops::Var x = builder.input("x", {ir::DType::kF32, {2}, {}});
  builder.set_phase(ir::Phase::kBackward);
  const ops::Var y = x * 2.0;
  const auto graph = builder.finish({y});
  ASSERT_TRUE(graph);
  const auto file = export_onnx(
      *graph, [](const ir::Value&) -> Result<std::vector<std::byte>> { return bad_input("none"); });
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().message.find("--infer"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::model::onnx
