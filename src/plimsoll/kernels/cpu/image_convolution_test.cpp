// Our own convolutions over channels-last images: depthwise.h and grouped.h.
#include <gtest/gtest.h>

#include <span>

#include "plimsoll/kernels/cpu/depthwise.h"
#include "plimsoll/kernels/cpu/grouped.h"
#include "plimsoll/kernels/testing/differential.h"

namespace plimsoll::kernels {
namespace {

using ir::Ints;

struct ImageShape {
  std::int64_t groups;
  std::int64_t in;
  std::int64_t out;
  Ints image;
  Ints kernel;
  Ints strides;
  Ints pads;
  Ints dilations;
};

// Depthwise: channels that fill blocks, vectors and neither; filters larger than the image, wider
// than a group of taps, of one tap; borders on one side, beyond the filter, nowhere; one axis.
const ImageShape kDepthwise[] = {
    {16, 1, 1, {9, 9}, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    {96, 1, 1, {14, 14}, {7, 7}, {1, 1}, {3, 3, 3, 3}, {1, 1}},
    {72, 1, 1, {13, 11}, {5, 5}, {2, 2}, {2, 2, 2, 2}, {1, 1}},
    {200, 1, 1, {8, 8}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}},
    {64, 1, 1, {3, 3}, {7, 7}, {1, 1}, {3, 3, 3, 3}, {1, 1}},
    {9, 1, 1, {7, 20}, {1, 11}, {1, 1}, {0, 5, 0, 5}, {1, 1}},
    {33, 1, 1, {10, 10}, {9, 2}, {1, 1}, {4, 0, 4, 1}, {1, 1}},
    {8, 1, 1, {6, 6}, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}},
    {24, 1, 1, {6, 6}, {1, 1}, {1, 1}, {2, 1, 0, 3}, {1, 1}},
    {40, 1, 1, {12, 12}, {3, 3}, {1, 1}, {2, 2, 2, 2}, {2, 2}},
    {32, 1, 1, {12, 7}, {3, 4}, {3, 2}, {0, 2, 1, 0}, {1, 1}},
    {16, 1, 1, {11, 5}, {2, 2}, {4, 3}, {0, 0, 0, 0}, {1, 1}},
    {16, 1, 1, {5, 40}, {3, 15}, {1, 1}, {1, 7, 1, 7}, {1, 1}},
    {48, 1, 1, {20}, {4}, {1}, {3, 0}, {1}},
};

// Groups: one to four vectors of filters, the last one whole or half; more channels than filters
// and the other way round; borders as above.
const ImageShape kGroups[] = {
    {3, 24, 24, {14, 14}, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    {2, 24, 24, {9, 13}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}},
    {8, 4, 4, {10, 11}, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    {5, 8, 12, {7, 9}, {5, 5}, {1, 1}, {2, 2, 2, 2}, {1, 1}},
    {2, 12, 8, {7, 9}, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}},
    {2, 28, 32, {6, 8}, {3, 3}, {1, 1}, {2, 2, 2, 2}, {2, 2}},
    {3, 16, 20, {3, 3}, {5, 5}, {1, 1}, {2, 2, 2, 2}, {1, 1}},
    {2, 20, 16, {8, 6}, {2, 3}, {1, 1}, {1, 0, 0, 3}, {1, 1}},
    {2, 8, 8, {5, 5}, {1, 1}, {1, 1}, {2, 1, 0, 3}, {1, 1}},
    {4, 8, 24, {21}, {4}, {1}, {3, 0}, {1}},
};

ir::Attributes image_attributes(const ImageShape& shape) {
  return {{"strides", shape.strides},
          {"pads", shape.pads},
          {"dilations", shape.dilations},
          {"group", shape.groups}};
}

ir::Shape with_extents(std::int64_t first, std::int64_t second, const Ints& extents) {
  ir::Shape out{first, second};
  for (const std::int64_t extent : extents) out.push_back(extent);
  return out;
}

Ints result_of(const ImageShape& shape) {
  Ints out;
  const std::size_t axes = shape.image.size();
  for (std::size_t i = 0; i < axes; ++i) {
    const std::int64_t room = shape.image[i] + shape.pads[i] + shape.pads[axes + i] -
                              (shape.kernel[i] - 1) * shape.dilations[i] - 1;
    out.push_back(room / shape.strides[i] + 1);
  }
  return out;
}

Ints numbers(const ir::Shape& shape) {
  return {shape.begin(), shape.end()};
}

constexpr std::int64_t kBatch = 3;

void expect_results(std::span<const ImageShape> shapes) {
  for (const ImageShape& shape : shapes) {
    const Tensor x = last(with_extents(kBatch, shape.groups * shape.in, shape.image));
    const Tensor w = f32(with_extents(shape.groups * shape.out, shape.in, shape.kernel));
    ir::Attributes attributes = image_attributes(shape);
    expect_agreement({"conv", {x, w}, attributes});
    attributes.set("activation", std::string("relu"));
    expect_agreement({"conv", {x, w, f32({shape.groups * shape.out})}, attributes});
  }
}

void expect_data_gradients(std::span<const ImageShape> shapes) {
  for (const ImageShape& shape : shapes) {
    ir::Attributes attributes = image_attributes(shape);
    attributes.set("shape", numbers(with_extents(kBatch, shape.groups * shape.in, shape.image)));
    expect_agreement({"conv_grad_input",
                      {last(with_extents(kBatch, shape.groups * shape.out, result_of(shape))),
                       f32(with_extents(shape.groups * shape.out, shape.in, shape.kernel))},
                      attributes});
  }
}

void expect_weight_gradients(std::span<const ImageShape> shapes) {
  for (const ImageShape& shape : shapes) {
    ir::Attributes attributes = image_attributes(shape);
    attributes.set("shape",
                   numbers(with_extents(shape.groups * shape.out, shape.in, shape.kernel)));
    const Tensor x = last(with_extents(kBatch, shape.groups * shape.in, shape.image));
    const Tensor dy = last(with_extents(kBatch, shape.groups * shape.out, result_of(shape)));
    expect_agreement({"conv_grad_weight", {x, dy}, attributes, {ir::Layout{}}});
    attributes.set("bias", std::int64_t{1});
    expect_agreement({"conv_grad_weight", {x, dy}, attributes, {ir::Layout{}, ir::Layout{}}});
  }
}

TEST(DepthwiseKernel, AgreesWithTheReferenceOnAnyThreads) {
  expect_results(kDepthwise);
}
TEST(DepthwiseKernel, DataGradientsAgreeOnAnyThreads) {
  expect_data_gradients(kDepthwise);
}
TEST(DepthwiseKernel, WeightGradientsAgreeOnAnyThreads) {
  expect_weight_gradients(kDepthwise);
}
TEST(GroupedKernel, AgreesWithTheReferenceOnAnyThreads) {
  expect_results(kGroups);
}
TEST(GroupedKernel, DataGradientsAgreeOnAnyThreads) {
  expect_data_gradients(kGroups);
}
TEST(GroupedKernel, WeightGradientsAgreeOnAnyThreads) {
  expect_weight_gradients(kGroups);
}

// What each takes, asked of single nodes: else the tests above would pass on oneDNN's kernels.
using Taken = bool (*)(const Site&, ConvolutionDirection);
bool takes(Taken taken, const Tensor& x, const ir::Shape& w, std::int64_t group) {
  ir::Graph graph;
  ir::Node node;
  node.op = "conv";
  node.attributes.set("group", group);
  node.inputs = {graph.add_source("x", ir::ValueKind::kInput, x.type),
                 graph.add_source("w", ir::ValueKind::kWeight, {x.type.dtype, w, {}})};
  ir::TensorType y = x.type;
  y.shape = {x.type.shape[0], w[0], x.type.shape[2] - w[2] + 1, x.type.shape[3] - w[3] + 1};
  const NodeId made = graph.add_node(std::move(node), {y}, ir::ValueKind::kActivation);
  return taken(Site{graph, graph.node(made)}, ConvolutionDirection::kForward);
}

TEST(DepthwiseKernel, TakesOneFilterAChannelLyingChannelsLast) {
  EXPECT_TRUE(takes(is_depthwise, last({2, 16, 9, 9}), {16, 1, 7, 7}, 16));
  EXPECT_FALSE(takes(is_depthwise, f32({2, 16, 9, 9}), {16, 1, 7, 7}, 16)) << "NCHW";
  EXPECT_FALSE(takes(is_depthwise, last({2, 16, 9, 9}), {32, 1, 3, 3}, 16)) << "two filters";
  EXPECT_FALSE(takes(is_depthwise, last({2, 16, 9, 9}), {16, 2, 3, 3}, 8)) << "groups of two";
  EXPECT_FALSE(takes(is_depthwise, last({2, 4, 9, 9}), {4, 1, 3, 3}, 4)) << "not a vector";
}

TEST(GroupedKernel, TakesNarrowGroupsLyingChannelsLast) {
  EXPECT_TRUE(takes(is_grouped, last({2, 48, 9, 9}), {48, 24, 3, 3}, 2));
  EXPECT_TRUE(takes(is_grouped, last({2, 16, 9, 9}), {16, 4, 3, 3}, 4));
  EXPECT_FALSE(takes(is_grouped, f32({2, 48, 9, 9}), {48, 24, 3, 3}, 2)) << "NCHW";
  EXPECT_FALSE(takes(is_grouped, last({2, 24, 9, 9}), {24, 24, 3, 3}, 1)) << "one group";
  EXPECT_FALSE(takes(is_grouped, last({2, 32, 9, 9}), {32, 16, 3, 3}, 2))
      << "whole blocks: oneDNN's";
  EXPECT_FALSE(takes(is_grouped, last({2, 12, 9, 9}), {12, 6, 3, 3}, 2)) << "not in fours";
  EXPECT_FALSE(takes(is_grouped, last({2, 80, 9, 9}), {80, 40, 3, 3}, 2)) << "too wide";
}

}  // namespace
}  // namespace plimsoll::kernels
