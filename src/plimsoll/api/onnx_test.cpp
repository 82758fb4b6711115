// Imported models through every module: kernels, plans, gradients.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "plimsoll/api/pipeline.h"
#include "plimsoll/api/planning.h"
#include "plimsoll/autodiff/differentiate.h"
#include "plimsoll/autodiff/training.h"
#include "plimsoll/base/testing/test_paths.h"
#include "plimsoll/model/loss.h"
#include "plimsoll/model/onnx/testing/backend_case.h"
#include "plimsoll/model/zoo.h"
#include "plimsoll/ops/evaluation/interpreter.h"
#include "plimsoll/ops/functions.h"
#include "plimsoll/rewrite/simplify.h"
#include "plimsoll/runtime/initial_content.h"
#include "plimsoll/runtime/layout_copy.h"
#include "plimsoll/runtime/on_demand.h"
#include "plimsoll/store/npz.h"

namespace plimsoll::api {
namespace {

namespace fs = std::filesystem;
using model::onnx::NamedArray;

const fs::path kOnnx = test_source_dir() / "tests/onnx";
// PLIMSOLL_EXPORTS names another folder of the same form (tools/references/export_onnx.py FOLDER).
const fs::path kExports = std::getenv("PLIMSOLL_EXPORTS") != nullptr
                              ? fs::path(std::getenv("PLIMSOLL_EXPORTS"))
                              : kOnnx / "exports";

using Arrays = std::map<std::string, ops::Array>;

Arrays arrays_of(const std::string& name) {
  Arrays out;
  const auto arrays = store::read_npz(kExports / (name.substr(0, name.find('.')) + ".npz"));
  EXPECT_TRUE(arrays) << arrays.error().message;
  if (!arrays) return out;
  for (const store::NamedTensor& array : *arrays)
    out.emplace(array.name, *ops::Array::from_bytes(array.type, array.bytes));
  return out;
}

std::vector<std::string> export_names() {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(kExports)) {
    if (entry.path().extension() == ".onnx") names.insert(entry.path().stem().string());
  }
  return {names.begin(), names.end()};
}

// Runs one step on the CPU's kernels; sources by name, weights from the file.
Result<std::vector<ops::Array>> run_kernels(const model::ImportedModel& imported,
                                            const std::vector<NamedArray>& inputs) {
  runtime::ExecutorOptions how;
  how.threads = 2;
  PLIMSOLL_TRY(auto executor, runtime::make_on_demand(imported.graph, how));
  for (std::size_t v = 0; v < imported.graph.values.size(); ++v) {
    const ir::Value& value = imported.graph.values[v];
    if (!ir::is_source(value.kind)) continue;
    std::vector<std::byte> bytes;
    if (const auto* data = imported.graph.data(ValueId(v))) {
      bytes = *data;
    } else if (const auto* entry = imported.weights.find(value.name)) {
      bytes.assign(entry->bytes.begin(), entry->bytes.end());
    } else if (value.init.kind == ir::Init::Kind::kConstant) {
      PLIMSOLL_RETURN_IF_ERROR(runtime::fill_source(*executor, ValueId(v), 1, 0));
      continue;
    } else {
      for (const NamedArray& input : inputs) {
        if (input.name == value.name) bytes = input.array.to_bytes();
      }
    }
    PLIMSOLL_RETURN_IF_ERROR(executor->write(ValueId(v), [&](std::span<std::byte> to) -> Status {
      runtime::copy_from_row_major(value.type, bytes, to);
      return {};
    }));
  }
  PLIMSOLL_RETURN_IF_ERROR(executor->step());
  std::vector<ops::Array> out;
  for (const ValueId output : imported.graph.outputs) {
    const ir::TensorType type = imported.graph.value(output).type;
    PLIMSOLL_TRY(const std::vector<std::byte> bytes, executor->result(output));
    PLIMSOLL_TRY(ops::Array array,
                 ops::Array::from_bytes(type, runtime::copy_to_row_major(type, bytes)));
    out.push_back(std::move(array));
  }
  return out;
}

std::vector<NamedArray> inputs_in(const Arrays& arrays) {
  std::vector<NamedArray> out;
  for (const auto& [name, array] : arrays) {
    if (name.starts_with("in.")) out.push_back({name.substr(3), array});
  }
  return out;
}

// Open dimensions take the sizes of what was recorded, which are not those the model was exported
// with.
Result<model::ImportedModel> import_export(const std::string& name,
                                           const std::vector<NamedArray>& inputs, bool training) {
  model::ImportOptions how;
  how.training = training;
  for (const NamedArray& input : inputs) how.shapes[input.name] = input.array.type.shape;
  return model::import_onnx(kExports / (name + ".onnx"), how);
}

class ImportedExports : public testing::TestWithParam<std::string> {};

// As `plimsoll run` does it: rewritten for inference and laid out.
TEST_P(ImportedExports, KernelsGiveTheOutputsOfPytorch) {
  const Arrays arrays = arrays_of(GetParam());
  const std::vector<NamedArray> inputs = inputs_in(arrays);
  auto imported = import_export(GetParam(), inputs, false);
  ASSERT_TRUE(imported) << imported.error().message;
  const auto simplified = rewrite::simplify(imported->graph, {.trains = false});
  ASSERT_TRUE(simplified) << simplified.error().message;
  auto laid_out = assign_layouts(*simplified, 2);
  ASSERT_TRUE(laid_out) << laid_out.error().message;
  imported->graph = std::move(*laid_out);
  const auto outputs = run_kernels(*imported, inputs);
  ASSERT_TRUE(outputs) << outputs.error().message;
  const Status same = model::onnx::compare(outputs->front(), arrays.at("out.0"), {1e-4, 1e-4});
  EXPECT_TRUE(same) << same.error().message;
}

class ImportedGradients : public testing::TestWithParam<std::string> {};

// Gradients of sum(output * loss.weight), by weights that kept their PyTorch name.
TEST_P(ImportedGradients, AreThoseOfPytorch) {
  const Arrays arrays = arrays_of(GetParam());
  const std::vector<NamedArray> inputs = inputs_in(arrays);
  auto imported = import_export(GetParam(), inputs, true);
  ASSERT_TRUE(imported) << imported.error().message;
  ops::Builder builder(imported->graph);
  const ops::Var weight = builder.constant("loss.weight", arrays.at("loss.weight"));
  const ops::Var y = builder.var(imported->graph.outputs.front());
  ir::Ints axes;
  for (int i = 0; i < y.rank(); ++i) axes.push_back(i);
  const ops::Var loss = builder.call1("reduce_sum", {y * weight}, {{"axes", axes}});
  std::vector<ops::Var> wrt;
  std::vector<std::string> names;
  for (std::size_t v = 0; v < imported->graph.values.size(); ++v) {
    const ir::Value& value = imported->graph.values[v];
    if (value.kind != ir::ValueKind::kWeight || !arrays.contains("grad." + value.name)) continue;
    wrt.push_back(builder.var(ValueId(v)));
    names.push_back(value.name);
  }
  ASSERT_GE(names.size(), 2U);
  const auto gradients = autodiff::differentiate(builder, loss, wrt);
  ASSERT_TRUE(gradients) << gradients.error().message;
  auto graph = builder.finish(*gradients);
  ASSERT_TRUE(graph) << graph.error().message;
  model::ImportedModel whole;
  whole.graph = std::move(*graph);
  whole.weights = std::move(imported->weights);
  const auto outputs = run_kernels(whole, inputs);
  ASSERT_TRUE(outputs) << outputs.error().message;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Status same =
        model::onnx::compare((*outputs)[i], arrays.at("grad." + names[i]), {2e-3, 1e-5});
    EXPECT_TRUE(same) << names[i] << ": " << same.error().message;
  }
}

// Bytes at the peak that are not sources: what a plan can be good or bad at.
Result<std::int64_t> moving_peak(const ir::Graph& graph) {
  PLIMSOLL_TRY(const PlannedGraph planned, plan_graph(graph, {}));
  std::int64_t sources = 0;
  for (const ir::Value& value : graph.values) {
    if (ir::is_source(value.kind)) sources += ir::bytes_of(value.type).value;
  }
  return planned.summary.no_recompute.value - sources;
}

Result<ir::Graph> trained(ir::Graph graph) {
  PLIMSOLL_TRY(ir::Graph with_loss, model::with_loss(std::move(graph), "cross-entropy"));
  return autodiff::make_training_graph(with_loss, {});
}

// An exported transformer needs no more than the built-in one of the same sizes, give or take 2 %,
// and the mask of padding that only the exported one takes.
void expect_plans_like(const std::string& file, const std::string& built_in,
                       const model::ModelOptions& sizes, bool training, std::int64_t mask = 0) {
  SCOPED_TRACE(file);
  model::ImportOptions how;
  how.training = training;
  auto imported = model::import_onnx(kOnnx / file, how);
  ASSERT_TRUE(imported) << imported.error().message;
  model::ModelOptions same = sizes;
  same.training = false;
  auto ours = model::build_model(built_in, same);
  ASSERT_TRUE(ours) << ours.error().message;
  ir::Graph a = std::move(imported->graph);
  ir::Graph b = std::move(*ours);
  if (training) {
    auto step_a = trained(std::move(a));
    auto step_b = trained(std::move(b));
    ASSERT_TRUE(step_a && step_b) << (step_a ? step_b : step_a).error().message;
    a = std::move(*step_a);
    b = std::move(*step_b);
  }
  const auto peak_a = moving_peak(a);
  const auto peak_b = moving_peak(b);
  ASSERT_TRUE(peak_a && peak_b);
  EXPECT_LE(static_cast<double>(*peak_a - mask), 1.02 * static_cast<double>(*peak_b))
      << *peak_a << " against " << *peak_b;
}

TEST(ImportedTransformers, PlanLikeTheBuiltInOnes) {
  model::ModelOptions sizes;
  sizes.batch = 2;
  sizes.seq = 12;
  sizes.width = 48;
  sizes.layers = 2;
  sizes.heads = 4;
  sizes.vocab = 120;
  sizes.dropout = 0;
  for (const bool training : {false, true}) {
    expect_plans_like("exports/gpt2.dynamo.onnx", "gpt2", sizes, training);
    const std::int64_t mask = 2 * 12 * 12 * 4;
    expect_plans_like("exports/gpt2_mask.script.onnx", "gpt2", sizes, training, mask);
    expect_plans_like("exports/gpt2_mask.dynamo.onnx", "gpt2", sizes, training, mask);
    expect_plans_like("exports/bert.script.onnx", "bert", sizes, training, mask);
    expect_plans_like("exports/bert.dynamo.onnx", "bert", sizes, training, mask);
  }
}

// The same at the width that people use; the files have no weights (tools/references/export_onnx.py
// --wide).
TEST(ImportedTransformers, PlanLikeTheBuiltInOnesAtRealWidth) {
  model::ModelOptions sizes;
  sizes.batch = 2;
  sizes.seq = 128;
  sizes.dropout = 0;
  for (const bool training : {false, true}) {
    const std::int64_t mask = 2 * 128 * 128 * 4;
    expect_plans_like("wide/gpt2.script.onnx", "gpt2", sizes, training, mask);
    expect_plans_like("wide/bert.script.onnx", "bert", sizes, training, mask);
  }
}

// ONNX's "light" models: whole networks, weights of one number each, with expected outputs. The
// input is a ramp.
TEST(LightModels, GiveTheExpectedOutputs) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(kOnnx / "light")) {
    if (entry.path().extension() != ".onnx") continue;
    SCOPED_TRACE(entry.path().filename());
    const auto imported = model::import_onnx(entry.path());
    ASSERT_TRUE(imported) << imported.error().message;
    std::vector<NamedArray> inputs;
    for (const ir::Value& value : imported->graph.values) {
      if (value.kind != ir::ValueKind::kInput) continue;
      ops::Array ramp(value.type);
      for (std::int64_t i = 0; i < ramp.elements(); ++i)
        ramp.set_number(i, static_cast<double>(i) / static_cast<double>(ramp.elements()));
      ramp.round();
      inputs.push_back({value.name, std::move(ramp)});
    }
    const auto expected = model::onnx::read_tensor_file(
        entry.path().parent_path() / (entry.path().stem().string() + "_output_0.pb"));
    ASSERT_TRUE(expected) << expected.error().message;
    const auto outputs = run_kernels(*imported, inputs);
    ASSERT_TRUE(outputs) << outputs.error().message;
    const Status same = model::onnx::compare(outputs->front(), *expected, {1e-3, 1e-5});
    EXPECT_TRUE(same) << same.error().message;
    ++count;
  }
  EXPECT_EQ(count, 9);
}

std::vector<std::string> names_with_gradients() {
  std::vector<std::string> out;
  for (const std::string& name : export_names()) {
    if (arrays_of(name).contains("loss.weight")) out.push_back(name);
  }
  return out;
}

TEST(ImportedModels, AreAllThere) {
  EXPECT_GE(export_names().size(), 68U);
  EXPECT_GE(names_with_gradients().size(), 38U);
}

std::string test_name(const testing::TestParamInfo<std::string>& instance) {
  std::string name = instance.param;
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Pytorch, ImportedExports, testing::ValuesIn(export_names()), test_name);
INSTANTIATE_TEST_SUITE_P(Pytorch, ImportedGradients, testing::ValuesIn(names_with_gradients()),
                         test_name);

}  // namespace
}  // namespace plimsoll::api
