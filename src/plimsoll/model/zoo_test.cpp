#include "plimsoll/model/zoo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "plimsoll/ir/text.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::model {
namespace {

using ::testing::HasSubstr;

ir::Graph build(std::string_view name, const ModelOptions& options = {}) {
  auto graph = build_model(name, options);
  EXPECT_TRUE(graph) << name << ": " << graph.error().message;
  return graph ? *std::move(graph) : ir::Graph{};
}

// As torchvision and transformers count them.
TEST(Zoo, ParameterCountsAreThePublishedOnes) {
  const std::map<std::string, std::int64_t> expected = {
      {"alexnet", 61'100'840},       {"vgg16", 138'357'544},    {"vgg19", 143'667'240},
      {"resnet18", 11'689'512},      {"resnet34", 21'797'672},  {"resnet50", 25'557'032},
      {"resnet101", 44'549'160},     {"resnet152", 60'192'808}, {"mobilenet", 3'504'872},
      {"densenet121", 7'978'856},    {"gpt2", 124'439'808},     {"bert", 109'514'298},
      {"whisper-small", 241'734'912}};
  for (const auto& [name, count] : expected)
    EXPECT_EQ(count_parameters(build(name)), count) << name;
}

TEST(Zoo, ParameterCountsDoNotDependOnTheForm) {
  for (const ModelInfo& model : models()) {
    if (model.name == "exp-example") continue;
    EXPECT_EQ(count_parameters(build(model.name, {.training = true})),
              count_parameters(build(model.name, {.training = false})))
        << model.name;
  }
}

// 3 linear layers with biases; 4 gates of 4 layers and the classifier; U-Net as commonly published
// for two classes.
TEST(Zoo, ParameterCountsOfTheOthersFollowFromTheirSizes) {
  EXPECT_EQ(count_parameters(build("mlp")), 784 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10);
  std::int64_t lstm = 1024 * 5000 + 5000;
  for (const int in : {50, 1024, 1024, 1024}) lstm += 4 * 1024 * (in + 1024 + 2);
  EXPECT_EQ(count_parameters(build("lstm", {.seq = 2})), lstm);
  EXPECT_EQ(count_parameters(build("unet")), 31'037'698);
  const std::int64_t attention = 512 * 3 * 512 + 3 * 512 + 512 * 512 + 512;
  const std::int64_t block = attention + 4 * 512 + 512 * 32 + 32 * 2 * 512 * 2048;
  EXPECT_EQ(count_parameters(build("moe")), (32128 + 1024) * 512 + 4 * block + 2 * 512);
  EXPECT_EQ(count_parameters(build("moe")) - count_parameters(build("moe", {.experts = 31})),
            4 * (512 + 2 * 512 * 2048));
}

TEST(Zoo, EveryModelIsAValidGraphInBothForms) {
  for (const ModelInfo& model : models()) {
    for (const bool training : {true, false}) {
      SCOPED_TRACE(fmt::format("{} training={}", model.name, training));
      const ir::Graph graph = build(model.name, {.training = training});
      const auto status = ops::verify(graph);
      ASSERT_TRUE(status) << status.error().message;
      ASSERT_EQ(graph.outputs.size(), 1U);
      if (training) {
        EXPECT_EQ(graph.value(graph.outputs[0]).type.shape.rank(), 0);
      }
      if (!training) {
        EXPECT_TRUE(graph.updates.empty());
      }
    }
  }
}

TEST(Zoo, EveryModelReadsBackFromItsText) {
  for (const ModelInfo& model : models()) {
    ir::Graph graph = build(model.name);
    const auto again = ir::parse_text(ir::to_text(graph));
    ASSERT_TRUE(again) << model.name << ": " << again.error().message;
    EXPECT_TRUE(*again == graph) << model.name;
  }
}

TEST(Zoo, EveryInputHasTheBatchFirst) {
  for (const ModelInfo& model : models()) {
    const ir::Graph graph =
        build(model.name, {.batch = 3, .training = model.name != "exp-example"});
    for (const ir::Value& value : graph.values) {
      if (value.kind == ir::ValueKind::kInput) {
        EXPECT_EQ(value.type.shape[0], 3) << model.name << " " << value.name;
      }
    }
  }
}

TEST(Zoo, NamesAreThoseOfTheReferenceImplementations) {
  const auto has = [](const ir::Graph& graph, std::string_view name) {
    return std::any_of(graph.values.begin(), graph.values.end(),
                       [&](const ir::Value& value) { return value.name == name; });
  };
  EXPECT_TRUE(has(build("resnet50"), "layer1.0.downsample.1.running_var"));
  EXPECT_TRUE(has(build("mobilenet"), "features.2.conv.1.0.weight"));
  EXPECT_TRUE(has(build("densenet121"), "features.denseblock1.denselayer2.norm1.weight"));
  EXPECT_TRUE(has(build("gpt2"), "transformer.h.11.attn.c_attn.weight"));
  EXPECT_TRUE(has(build("moe"), "h.3.mlp.experts.expert_31.wi.weight"));
  EXPECT_TRUE(has(build("bert"), "bert.encoder.layer.0.attention.output.LayerNorm.bias"));
  EXPECT_TRUE(has(build("whisper-small"), "model.decoder.layers.0.encoder_attn.k_proj.weight"));
}

TEST(Zoo, ResNetOfDepth1000HasTheStagesOfTheClassicFigure) {
  const ir::Graph graph = build("resnet", {.depth = 1000});
  std::map<std::string, std::set<std::string>> blocks;
  for (const ir::Node& node : graph.nodes) {
    const std::size_t dot = node.layer.find('.');
    if (!node.layer.starts_with("layer") || dot == std::string::npos) continue;
    blocks[node.layer.substr(0, dot)].insert(
        node.layer.substr(dot + 1, node.layer.find('.', dot + 1) - dot - 1));
  }
  EXPECT_EQ(blocks["layer1"].size(), 83U);
  EXPECT_EQ(blocks["layer2"].size(), 83U);
  EXPECT_EQ(blocks["layer3"].size(), 83U);
  EXPECT_EQ(blocks["layer4"].size(), 84U);
}

TEST(Zoo, ADepthThatIsPublishedGivesThePublishedNetwork) {
  ir::Graph any = build("resnet", {.depth = 50});
  any.name = "resnet50";
  EXPECT_TRUE(any == build("resnet50"));
}

TEST(Zoo, DropoutIsOneCounterRaisedOncePerStep) {
  const ir::Graph graph = build("alexnet");
  std::set<std::int64_t> seeds;
  ValueId counter;
  for (const ir::Node& node : graph.nodes) {
    if (node.op != "dropout") continue;
    seeds.insert(node.attributes.integer("seed", -1));
    counter = node.inputs[1];
  }
  EXPECT_EQ(seeds.size(), 2U);
  ASSERT_EQ(graph.updates.size(), 1U);
  EXPECT_EQ(graph.updates[0].source, counter);
  EXPECT_EQ(graph.node(graph.value(graph.updates[0].next).producer).op, "increment");
  EXPECT_TRUE(build("alexnet", {.dropout = 0.0}).updates.empty());
}

TEST(Zoo, BatchNormMovesItsStatisticsInUpdateNodes) {
  const ir::Graph graph = build("resnet18", {.batch = 2, .image = 32});
  std::int64_t updates = 0;
  for (const ir::Node& node : graph.nodes) {
    if (node.op != "batch_norm_update") continue;
    ++updates;
    EXPECT_EQ(node.phase, ir::Phase::kUpdate);
    if (node.layer == "bn1") {
      EXPECT_EQ(node.attributes.integer("count", 0), 2 * 16 * 16);
    }
  }
  EXPECT_EQ(updates, 20);
  EXPECT_EQ(graph.updates.size(), 40U);
}

TEST(Zoo, MixedPrecisionKeepsWeightsAndLossInFullPrecision) {
  for (const ModelInfo& model : models()) {
    if (model.name == "exp-example") continue;
    const ir::Graph graph = build(model.name, {.amp = ir::DType::kBF16});
    EXPECT_EQ(graph.value(graph.outputs[0]).type.dtype, ir::DType::kF32) << model.name;
    std::int64_t small = 0;
    for (const ir::Value& value : graph.values) {
      if (value.kind == ir::ValueKind::kWeight || value.kind == ir::ValueKind::kState) {
        EXPECT_NE(value.type.dtype, ir::DType::kBF16) << model.name << " " << value.name;
      }
      small += value.type.dtype == ir::DType::kBF16;
    }
    EXPECT_GT(small, 0) << model.name;
  }
}

TEST(Zoo, ImagesOfAnySizeReachTheClassifier) {
  for (const std::int64_t image : {63, 96, 160, 224, 256}) {
    const ir::Graph graph = build("alexnet", {.image = image});
    EXPECT_EQ(count_parameters(graph), 61'100'840) << image;
  }
}

TEST(Zoo, TheDepthOfEqualLayersIsTheirNumber) {
  EXPECT_EQ(count_parameters(build("gpt2", {.depth = 2})),
            count_parameters(build("gpt2", {.layers = 2})));
}

TEST(Zoo, OptionsThatMakeNoSenseAreRefused) {
  const auto message = [](std::string_view name, const ModelOptions& options) {
    const auto graph = build_model(name, options);
    EXPECT_FALSE(graph) << name;
    return graph ? std::string() : graph.error().message;
  };
  EXPECT_THAT(message("resnet5O", {}), HasSubstr("did you mean 'resnet50'?"));
  EXPECT_THAT(message("resnet50", {.seq = 8}),
              HasSubstr("has no option --seq; it has --batch, --image"));
  EXPECT_THAT(message("resnet50", {.batch = 0}), HasSubstr("--batch 0 is out of range"));
  EXPECT_THAT(message("resnet50", {.batch = std::int64_t{1} << 40}), HasSubstr("out of range"));
  EXPECT_THAT(message("resnet", {.depth = 5}), HasSubstr("depth 5 is too small"));
  EXPECT_THAT(message("gpt2", {.heads = 7}), HasSubstr("width 768 does not divide into 7 heads"));
  EXPECT_THAT(message("gpt2", {.experts = 7}), HasSubstr("has no option --experts"));
  EXPECT_THAT(message("moe", {.batch = 1 << 20, .seq = 64}), HasSubstr("too many for 32 experts"));
  EXPECT_THAT(message("lstm", {.seq = 100'000}),
              HasSubstr("--seq 100000 with 4 layers is unrolled"));
  EXPECT_THAT(message("gpt2", {.dropout = 1.0}), HasSubstr("--dropout 1 is out of range"));
  EXPECT_THAT(message("gpt2", {.dtype = ir::DType::kI8}), HasSubstr("--dtype int8 is no float"));
  EXPECT_THAT(message("unet", {.image = 100}), HasSubstr("image 100 is no multiple of 16"));
  EXPECT_THAT(message("alexnet", {.image = 8}), HasSubstr("features"));
}

// Bytes of the graph itself: what its vectors and strings hold.
std::size_t bytes_of_graph(const ir::Graph& graph) {
  const auto text = [](const std::string& s) { return s.capacity() > 15 ? s.capacity() + 1 : 0; };
  std::size_t out = graph.values.size() * sizeof(ir::Value) + graph.nodes.size() * sizeof(ir::Node);
  for (const ir::Value& value : graph.values) out += text(value.name);
  for (const ir::Node& node : graph.nodes) {
    out += text(node.op) + text(node.layer) +
           (node.inputs.capacity() + node.outputs.capacity()) * sizeof(ValueId);
    out += node.attributes.entries().capacity() * sizeof(ir::Attributes::Entry);
    for (const auto& [name, attribute] : node.attributes.entries()) {
      if (const auto* list = std::get_if<ir::Ints>(&attribute))
        out += list->capacity() * sizeof(std::int64_t);
    }
  }
  return out;
}

TEST(Zoo, AGraphTakesLessThanTwoKilobytesANode) {
  for (const ModelInfo& model : models()) {
    const ir::Graph graph = build(model.name);
    EXPECT_LT(bytes_of_graph(graph), 2048 * graph.nodes.size()) << model.name;
  }
}

}  // namespace
}  // namespace plimsoll::model
