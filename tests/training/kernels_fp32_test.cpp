// The CPU kernels train as PyTorch does: the small networks of training_reference_test.cpp in fp32,
// on the kernels, laid out as `run` lays them out. That test compares the definitions' reference
// evaluation in fp64, to 1e-7; this one compares what really runs.
//
// PyTorch's numbers are those of fp64, so that all of the difference is ours. fp32 rounds to 6e-8;
// through up to 53 layers of sums the errors of a loss were measured to stay below 3.1e-6 of it,
// those of a gradient below 1.2e-4 of its norm, and losses after five steps of an optimizer below
// 1e-4: the tolerances are a little above. The residual networks are another matter from the second
// step on. At this size a batch norm of theirs sees as few as 4 numbers, and what it divides by is
// a difference of them: an error grows tenfold with every step of SGD, in any framework. resnet18
// is compared until it has grown to 1e-3; of resnet50, with three times the layers, gradients as
// real_width_test.cpp has it (a cosine of 0.99), and one step. At published widths that test
// compares both with PyTorch's fp32.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "plimsoll/api/pipeline.h"
#include "plimsoll/autodiff/training.h"
#include "plimsoll/base/threads.h"
#include "plimsoll/model/zoo.h"
#include "plimsoll/rewrite/simplify.h"
#include "plimsoll/runtime/layout_copy.h"
#include "plimsoll/runtime/on_demand.h"
#include "reference_file.h"

namespace plimsoll {
namespace {

using reference::Json;

constexpr double kLoss = 5e-6;
// for gradients that are zero in theory, where all others have a norm near 1
constexpr double kNoise = 1e-6;

struct Tolerance {
  double gradient = 2e-4;
  double steps = 1e-4;             // of a loss after the first
  std::size_t sgd = 6, adamw = 6;  // losses compared
};

Tolerance tolerance_of(std::string_view model) {
  if (model == "resnet18") return {.steps = 1e-3, .sgd = 3};
  if (model == "resnet50") return {.gradient = 0.141, .steps = 0.05, .sgd = 2, .adamw = 2};
  return {};
}

class KernelsInFp32 : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto read = reference::read_reference(std::string(GetParam()) + "_fp64");
    ASSERT_TRUE(read) << read.error().message;
    reference_ = *std::move(read);
    const auto forward = model::build_model(reference_["model"].get<std::string>(),
                                            reference::options_of(reference_, ir::DType::kF32));
    ASSERT_TRUE(forward) << forward.error().message;
    auto simplified = rewrite::simplify(*forward);
    ASSERT_TRUE(simplified) << simplified.error().message;
    forward_ = *std::move(simplified);
  }

  virtual Result<std::shared_ptr<kernels::Backend>> backend() const {
    return kernels::make_cpu_backend(resolve_threads(0));
  }

  Result<std::unique_ptr<runtime::Executor>> executor_for(
      const autodiff::TrainingOptions& options) const {
    PLIMSOLL_TRY(ir::Graph graph, autodiff::make_training_graph(forward_, options));
    runtime::ExecutorOptions how;
    PLIMSOLL_TRY(how.backend, backend());
    PLIMSOLL_TRY(graph, api::assign_layouts(graph, *how.backend));
    PLIMSOLL_TRY(std::unique_ptr<runtime::Executor> executor, runtime::make_on_demand(graph, how));
    fill(*executor, false);
    return executor;
  }

  // All sources, or only those that every step is fed.
  void fill(runtime::Executor& executor, bool inputs_only) const {
    for (std::size_t v = 0; v < executor.graph().values.size(); ++v) {
      const ir::Value& value = executor.graph().values[v];
      if (!ir::is_source(value.kind)) continue;
      if (inputs_only && value.kind != ir::ValueKind::kInput) continue;
      const auto* constant = executor.graph().data(ValueId(v));
      EXPECT_TRUE(executor.write(ValueId(v), [&](std::span<std::byte> memory) -> Status {
        runtime::copy_from_row_major(
            value.type,
            constant != nullptr ? *constant : reference::content_of(value, reference_).to_bytes(),
            memory);
        return {};
      }));
    }
  }

  // The loss before the first step and after each, `count` in all.
  void expect_losses(const autodiff::TrainingOptions& options, const Json& expected,
                     std::size_t count) const {
    const auto executor = executor_for(options);
    ASSERT_TRUE(executor) << executor.error().message;
    ASSERT_EQ(expected.size(), 6U);
    for (std::size_t i = 0; i < count; ++i) {
      fill(**executor, true);
      ASSERT_TRUE((*executor)->step());
      const double loss = expected[i];
      EXPECT_NEAR(numbers(**executor, (*executor)->graph().outputs[0])[0], loss,
                  (i == 0 ? kLoss : tolerance_.steps) * std::abs(loss))
          << "step " << i;
    }
  }

  static std::vector<float> numbers(runtime::Executor& executor, ValueId output) {
    const ir::TensorType& type = executor.graph().value(output).type;
    const std::vector<std::byte> bytes =
        runtime::copy_to_row_major(type, executor.result(output).value());
    std::vector<float> out(bytes.size() / sizeof(float));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }

  void expect_gradients() const {
    autodiff::TrainingOptions options;
    options.optimizer = autodiff::Optimizer::kSgd;
    options.gradients_as_outputs = true;
    const auto executor = executor_for(options);
    ASSERT_TRUE(executor) << executor.error().message;
    ASSERT_TRUE((*executor)->step());
    const ir::Graph& graph = (*executor)->graph();
    const double loss = reference_["loss"];
    EXPECT_NEAR(numbers(**executor, graph.outputs[0])[0], loss, kLoss * std::abs(loss));

    const std::vector<ValueId> weights = autodiff::trained_weights(forward_, options);
    ASSERT_EQ(weights.size(), reference_["gradients"].size());
    std::map<std::string, ValueId> gradients;
    for (std::size_t i = 0; i < weights.size(); ++i)
      gradients[forward_.value(weights[i]).name] = graph.outputs[i + 1];
    for (const Json& expected : reference_["gradients"]) {
      const std::string name = expected["name"];
      ASSERT_TRUE(gradients.contains(name)) << name;
      const std::vector<float> gradient = numbers(**executor, gradients[name]);
      const std::vector<double> vector =
          reference::uniform(name + "#0", static_cast<std::int64_t>(gradient.size()));
      double squares = 0;
      double dot = 0;
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        squares += static_cast<double>(gradient[i]) * gradient[i];
        dot += gradient[i] * vector[i];
      }
      const double norm = expected["norm"];
      EXPECT_NEAR(std::sqrt(squares), norm, tolerance_.gradient * norm + kNoise) << name << " norm";
      EXPECT_NEAR(dot, expected["dots"][0].get<double>(), tolerance_.gradient * norm + kNoise)
          << name << " product";
    }
  }

  void expect_sgd() const {
    autodiff::TrainingOptions options;
    options.optimizer = autodiff::Optimizer::kSgd;
    options.learning_rate = reference_["sgd"]["lr"];
    expect_losses(options, reference_["sgd"]["losses"], tolerance_.sgd);
  }

  void expect_adamw() const {
    autodiff::TrainingOptions options;
    options.optimizer = autodiff::Optimizer::kAdamW;
    options.learning_rate = reference_["adamw"]["lr"];
    options.weight_decay = reference_["adamw"]["weight_decay"];
    expect_losses(options, reference_["adamw"]["losses"], tolerance_.adamw);
  }

  const Tolerance tolerance_ = tolerance_of(GetParam());
  Json reference_;
  ir::Graph forward_;
};

TEST_P(KernelsInFp32, LossAndEveryGradientAgreeWithPyTorch) {
  expect_gradients();
}
TEST_P(KernelsInFp32, FiveStepsOfSgdAgreeWithPyTorch) {
  expect_sgd();
}
TEST_P(KernelsInFp32, FiveStepsOfAdamWAgreeWithPyTorch) {
  expect_adamw();
}

// The same on the first card of this machine.
class CudaKernelsInFp32 : public KernelsInFp32 {
 protected:
  Result<std::shared_ptr<kernels::Backend>> backend() const override {
    return kernels::open_cuda_backend({});
  }
};

TEST_P(CudaKernelsInFp32, LossAndEveryGradientAgreeWithPyTorch) {
  expect_gradients();
}
TEST_P(CudaKernelsInFp32, FiveStepsOfSgdAgreeWithPyTorch) {
  expect_sgd();
}
TEST_P(CudaKernelsInFp32, FiveStepsOfAdamWAgreeWithPyTorch) {
  expect_adamw();
}

const auto kNetworks = ::testing::Values("mlp", "alexnet", "resnet18", "resnet50", "lstm", "gpt2",
                                         "bert", "whisper", "moe");
const auto kNamed = [](const auto& model) { return std::string(model.param); };
INSTANTIATE_TEST_SUITE_P(PyTorch, KernelsInFp32, kNetworks, kNamed);
INSTANTIATE_TEST_SUITE_P(PyTorch, CudaKernelsInFp32, kNetworks, kNamed);

}  // namespace
}  // namespace plimsoll
