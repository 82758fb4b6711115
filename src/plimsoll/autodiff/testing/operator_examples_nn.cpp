#include "plimsoll/autodiff/testing/operator_examples.h"

namespace plimsoll::autodiff {
namespace {

using ir::Ints;

// A tensor of its own: the seed counts up, so that no two inputs are alike.
class Maker {
 public:
  explicit Maker(std::uint64_t seed) : seed_(seed) {}
  ops::Array operator()(const ir::Shape& shape) { return example_reals(shape, -1, 1, seed_++); }
  ops::Array positive(const ir::Shape& shape) { return example_reals(shape, 0.5, 2, seed_++); }

 private:
  std::uint64_t seed_;
};

constexpr std::int64_t kYes = 1;

OperatorExample example(std::string op, std::string what,
                        std::vector<std::optional<ops::Array>> inputs, ir::Attributes attributes,
                        std::vector<int> fixed = {}) {
  return {std::move(op), std::move(what), std::move(inputs), std::move(attributes),
          true,          std::move(fixed)};
}

void add_matrix_examples(std::vector<OperatorExample>& out) {
  Maker make(100);
  out.push_back(example("matmul", "plain", {make({2, 3}), make({3, 4})}, {}));
  out.push_back(example("matmul", "broadcast", {make({2, 1, 2, 3}), make({3, 3, 2})}, {}));
  out.push_back(
      example("matmul", "first turned", {make({2, 3, 2}), make({3, 4})}, {{"trans_a", kYes}}));
  out.push_back(
      example("matmul", "second turned", {make({2, 3}), make({2, 4, 3})}, {{"trans_b", kYes}}));
  out.push_back(example("matmul", "both turned", {make({2, 3, 2}), make({2, 4, 3})},
                        {{"trans_a", kYes}, {"trans_b", kYes}}));
  out.push_back(example("matmul", "square", {make({3, 3}), make({3, 3})}, {}));
  out.push_back(example("matmul", "empty inside", {make({2, 0}), make({0, 3})}, {}));
  out.push_back(example("matmul", "empty batch", {make({0, 2, 3}), make({3, 2})}, {}));
  out.push_back(example("linear", "", {make({2, 2, 3}), make({3, 4}), make({4})}, {}));
  out.push_back(example("linear", "turned weight", {make({2, 3}), make({4, 3}), make({4})},
                        {{"trans_w", kYes}}));
  out.push_back(example("linear", "without bias", {make({3}), make({3, 2})}, {}));
  out.push_back(example("linear", "empty", {make({0, 3}), make({3, 2}), make({2})}, {}));
  ir::Attributes turned_encoded = example_encoded_attributes(3, 32);
  turned_encoded.set("trans_w", kYes);
  out.push_back(example("encoded_linear", "",
                        {make({2, 2, 3}), example_encoded(3, 32, 4), make({32})},
                        example_encoded_attributes(3, 32)));
  out.push_back(example("encoded_linear", "turned weight",
                        {make({2, 32}), example_encoded(3, 32, 5)}, turned_encoded));
  out.push_back(example("encoded_linear", "many rows",
                        {make({9, 32}), example_encoded(3, 32, 6), make({3})}, turned_encoded));
  out.push_back(example("linear_grad_weight", "", {make({2, 2, 3}), make({2, 2, 4})}, {}));
  out.push_back(example("linear_grad_weight", "turned, with bias", {make({4, 3}), make({4, 2})},
                        {{"trans_w", kYes}, {"bias", kYes}}));
  out.push_back(example("linear_grad_weight", "goes on",
                        {make({4, 3}), make({4, 2}), make({3, 2}), make({2})}, {{"bias", kYes}}));
}

void add_conv_examples(std::vector<OperatorExample>& out) {
  Maker make(200);
  const ir::Attributes grouped{{"strides", Ints{2, 1}},
                               {"dilations", Ints{1, 2}},
                               {"pads", Ints{0, 1, 1, 2}},
                               {"group", std::int64_t{2}}};
  const auto with = [](ir::Attributes attributes, const Ints& shape, bool bias) {
    attributes.set("shape", shape);
    if (bias) attributes.set("bias", kYes);
    return attributes;
  };
  out.push_back(example("conv", "groups, strides, pads, dilations",
                        {make({2, 2, 4, 3}), make({4, 1, 3, 2}), make({4})}, grouped));
  ir::Attributes activated = grouped;
  activated.set("activation", std::string("relu"));
  out.push_back(
      example("conv", "with relu", {make({2, 2, 4, 3}), make({4, 1, 3, 2}), make({4})}, activated));
  out.push_back(example("conv", "one dimension", {make({1, 2, 6}), make({3, 2, 3})},
                        {{"strides", Ints{2}}, {"pads", Ints{1, 1}}}));
  out.push_back(example("conv", "three dimensions",
                        {make({1, 2, 2, 3, 2}), make({2, 2, 2, 2, 1}), make({2})}, {}));
  out.push_back(
      example("conv", "empty batch", {make({0, 2, 3, 3}), make({2, 2, 2, 2}), make({2})}, {}));
  out.push_back(example("conv_grad_input", "", {make({2, 4, 2, 4}), make({4, 1, 3, 2})},
                        with(grouped, {2, 2, 4, 3}, false)));
  out.push_back(example("conv_grad_weight", "", {make({2, 2, 4, 3}), make({2, 4, 2, 4})},
                        with(grouped, {4, 1, 3, 2}, false)));
  out.push_back(example("conv_grad_weight", "with bias", {make({2, 2, 4, 3}), make({2, 4, 2, 4})},
                        with(grouped, {4, 1, 3, 2}, true)));
  out.push_back(example("conv_transpose", "", {make({2, 2, 2, 3}), make({2, 2, 3, 2}), make({4})},
                        {{"strides", Ints{2, 3}},
                         {"pads", Ints{1, 0, 1, 1}},
                         {"output_padding", Ints{1, 0}},
                         {"group", std::int64_t{2}}}));
  out.push_back(example("conv_transpose", "one dimension, without bias",
                        {make({1, 2, 3}), make({2, 2, 2})}, {}));
}

void add_attention_examples(std::vector<OperatorExample>& out) {
  Maker make(300);
  const ir::Attributes plain{{"heads", std::int64_t{2}}};
  const ir::Attributes causal{{"heads", std::int64_t{2}}, {"causal", kYes}};
  const ir::Attributes grouped{
      {"heads", std::int64_t{4}}, {"kv_heads", std::int64_t{2}}, {"causal", kYes}, {"scale", 0.7}};
  out.push_back(
      example("attention", "", {make({2, 3, 4}), make({2, 3, 4}), make({2, 3, 2})}, plain));
  out.push_back(example("attention", "causal after a prefix",
                        {make({1, 2, 4}), make({1, 4, 4}), make({1, 4, 4})}, causal));
  out.push_back(example("attention", "masked",
                        {make({1, 2, 4}), make({1, 3, 4}), make({1, 3, 4}), make({2, 2, 3})}, plain,
                        {3}));
  out.push_back(example("attention", "grouped, causal, masked",
                        {make({2, 2, 8}), make({2, 3, 4}), make({2, 3, 2}), make({2, 1, 1, 3})},
                        grouped, {3}));
  out.push_back(example("attention", "empty batch",
                        {make({0, 2, 4}), make({0, 3, 4}), make({0, 3, 4})}, plain));
  out.push_back(example("attention_grad", "",
                        {make({1, 2, 4}), make({1, 2, 4}), make({1, 3, 4}), make({1, 3, 4}),
                         make({1, 2, 4}), make({1, 2, 2})},
                        plain));
  out.push_back(example("attention_grad", "grouped, causal, masked",
                        {make({1, 2, 4}), make({1, 2, 8}), make({1, 3, 4}), make({1, 3, 2}),
                         make({1, 2, 4}), make({1, 4, 2}), make({4, 2, 3})},
                        grouped, {6}));
  out.push_back(example(
      "attention", "scores far from zero",
      {make({1, 2, 4}), make({1, 3, 4}), make({1, 3, 4}), example_reals({2, 3}, -2001, -2000, 7)},
      causal, {3}));
  out.push_back(example("attention_qkv", "", {make({2, 3, 12})}, plain));
  out.push_back(
      example("attention_qkv", "causal, masked", {make({1, 3, 12}), make({3})}, causal, {1}));
  out.push_back(example("attention_qkv", "empty sequence", {make({1, 0, 12})}, causal));
  out.push_back(example("attention_qkv_grad", "",
                        {make({1, 2, 4}), make({1, 2, 12}), make({1, 2, 4}), make({1, 2, 2})},
                        plain));
  out.push_back(
      example("attention_qkv_grad", "causal, masked",
              {make({1, 3, 4}), make({1, 3, 12}), make({1, 3, 4}), make({1, 2, 3}), make({3, 3})},
              causal, {4}));
}

void add_channel_norm_examples(std::vector<OperatorExample>& out) {
  Maker make(400);
  const ir::Attributes relu{{"activation", std::string("relu")}};
  const ir::Attributes groups{{"groups", std::int64_t{2}}};
  const ir::Attributes lrn{{"size", std::int64_t{4}}, {"alpha", 0.5}, {"beta", 0.75}, {"k", 2.0}};
  out.push_back(example("batch_norm", "", {make({3, 2, 2}), make.positive({2}), make({2})}, {}));
  out.push_back(
      example("batch_norm", "relu", {make({2, 2, 2, 2}), make.positive({2}), make({2})}, relu));
  out.push_back(
      example("batch_norm", "empty batch", {make({0, 2, 2}), make.positive({2}), make({2})}, {}));
  out.push_back(example("batch_norm_add_relu", "",
                        {make({3, 2, 2}), make.positive({2}), make({2}), make({3, 2, 2})}, {}));
  for (const bool with_relu : {false, true}) {
    out.push_back(example("batch_norm_grad", with_relu ? "relu" : "",
                          {make({3, 2, 2}), make({3, 2, 2}), make.positive({2}), make({2}),
                           make({2}), make.positive({2})},
                          with_relu ? relu : ir::Attributes{}));
    out.push_back(
        example("batch_norm_inference", with_relu ? "relu" : "",
                {make({3, 2, 2}), make.positive({2}), make({2}), make({2}), make.positive({2})},
                with_relu ? relu : ir::Attributes{}));
  }
  out.push_back(
      example("group_norm", "", {make({2, 4, 3}), make.positive({4}), make({4})}, groups));
  out.push_back(example("group_norm", "empty batch",
                        {make({0, 4, 3}), make.positive({4}), make({4})}, groups));
  out.push_back(example(
      "group_norm_grad", "",
      {make({2, 4, 2}), make({2, 4, 2}), make.positive({4}), make({2, 2}), make.positive({2, 2})},
      groups));
  out.push_back(example("lrn", "", {make({2, 5, 2})}, lrn));
  out.push_back(example("lrn", "empty", {make({2, 0, 2})}, lrn));
  out.push_back(example("lrn_grad", "", {make({2, 5, 2}), make({2, 5, 2})}, lrn));
}

void add_row_norm_examples(std::vector<OperatorExample>& out) {
  Maker make(500);
  const ir::Attributes from_second{{"axis", std::int64_t{1}}};
  out.push_back(example("layer_norm", "", {make({2, 4}), make.positive({4}), make({4})}, {}));
  out.push_back(example("layer_norm", "two axes, without beta",
                        {make({2, 2, 3}), make.positive({2, 3})}, from_second));
  out.push_back(example("layer_norm", "empty", {make({0, 4}), make.positive({4}), make({4})}, {}));
  out.push_back(
      example("layer_norm_grad", "",
              {make({2, 4}), make({2, 4}), make.positive({4}), make({2}), make.positive({2})}, {}));
  out.push_back(example(
      "layer_norm_grad_add", "",
      {make({2, 4}), make({2, 4}), make.positive({4}), make({2}), make.positive({2}), make({2, 4})},
      {}));
  out.push_back(example("rms_norm", "", {make({2, 4}), make.positive({4})}, {}));
  out.push_back(
      example("rms_norm", "two axes", {make({2, 2, 3}), make.positive({2, 3})}, from_second));
  out.push_back(example("rms_norm_grad", "",
                        {make({2, 4}), make({2, 4}), make.positive({4}), make.positive({2})}, {}));
  for (const std::string op : {"softmax", "log_softmax"}) {
    out.push_back(example(op, "", {make({2, 4})}, {}));
    out.push_back(example(op, "middle axis", {make({2, 3, 2})}, from_second));
    out.push_back(example(op, "empty", {make({2, 0})}, {}));
    out.push_back(example(op + "_grad", "", {make({2, 3, 2}), make({2, 3, 2})}, from_second));
  }
}

void add_loss_examples(std::vector<OperatorExample>& out) {
  Maker make(600);
  const ops::Array labels = example_integers({2, 2}, {2, -100, 0, 1});
  const ops::Array no_mark = example_integers({2, 2}, {2, 1, 0, 1});
  out.push_back(example("cross_entropy", "", {make({2, 2, 3}), labels}, {}));
  out.push_back(example("cross_entropy", "one class ignored", {make({2, 2, 3}), no_mark},
                        {{"ignore_index", std::int64_t{0}}}));
  out.push_back(example("cross_entropy_grad", "",
                        {make.positive({}), make({2, 2, 3}), labels, make({2, 2})}, {}));
  out.push_back(example("cross_entropy_grad", "one class ignored",
                        {make.positive({}), make({2, 2, 3}), no_mark, make({2, 2})},
                        {{"ignore_index", std::int64_t{0}}}));
  out.push_back(example("cross_entropy_grad", "empty",
                        {make.positive({}), make({0, 3}), example_integers({0}, {}), make({0})},
                        {}));
  out.push_back(
      example("cross_entropy", "every row", {make({2, 2, 3}), labels}, {{"per_row", kYes}}));
  out.push_back(example(
      "layer_norm_grad", "goes on",
      {make({3, 4}), make({3, 4}), make({4}), make({3}), make.positive({3}), make({4}), make({4})},
      {}));
  out.push_back(example("rms_norm_grad", "goes on",
                        {make({3, 4}), make({3, 4}), make({4}), make.positive({3}), make({4})},
                        {}));
  out.push_back(example("mean_loss", "", {make({2, 2}), labels}, {}));
  out.push_back(example("cross_entropy_grad", "a part of the rows",
                        {make.positive({}), make({2, 2, 3}), labels, make({2, 2}),
                         example_integers({6}, {2, -100, 0, 1, 1, 1})},
                        {}));
  out.push_back(example("add_n", "three", {make({2, 3}), make({2, 3}), make({2, 3})}, {}));
  out.push_back(
      example("add_n", "four", {make({2, 3}), make({2, 3}), make({2, 3}), make({2, 3})}, {}));
  out.push_back(example("add_relu", "", {make({2, 3}), make({2, 3})}, {}));
  out.push_back(example("add_relu", "empty", {make({0, 3}), make({0, 3})}, {}));
  out.push_back(example("add_relu_grad", "", {make({2, 3}), make({2, 3}), make({2, 3})}, {}));
}

void add_pool_examples(std::vector<OperatorExample>& out) {
  Maker make(700);
  const Ints shape{1, 2, 4, 3};
  const ir::Attributes largest{{"kernel", Ints{2, 2}},
                               {"strides", Ints{2, 1}},
                               {"pads", Ints{1, 0, 0, 1}},
                               {"ceil_mode", kYes}};
  const ir::Attributes mean{
      {"kernel", Ints{3, 2}}, {"strides", Ints{2, 1}}, {"pads", Ints{1, 0, 1, 1}}};
  const auto with = [](ir::Attributes attributes, std::string_view name, ir::Attribute value) {
    attributes.set(name, std::move(value));
    return attributes;
  };
  const ops::Array winners = example_integers(
      {1, 2, 3, 3}, {2, 3, 2, 0, 1, 2, 0, 1, 0, 3, 2, 2, 3, 0, 0, 1, 1, 2}, ir::DType::kU8);
  out.push_back(example("max_pool", "", {make({1, 2, 4, 3})}, largest));
  out.push_back(example("max_pool", "dilated, one dimension", {make({1, 1, 7})},
                        {{"kernel", Ints{3}}, {"dilations", Ints{2}}}));
  out.push_back(example("max_pool", "empty batch", {make({0, 2, 4, 3})}, largest));
  out.push_back(
      example("max_pool_grad", "", {make({1, 2, 3, 3}), winners}, with(largest, "shape", shape)));
  out.push_back(example("max_pool_select", "", {make({1, 2, 4, 3}), winners}, largest));
  for (const std::int64_t padded : {std::int64_t{0}, std::int64_t{1}}) {
    const ir::Attributes attributes = with(mean, "count_include_pad", padded);
    out.push_back(
        example("avg_pool", padded ? "counting pads" : "", {make({1, 2, 4, 3})}, attributes));
    out.push_back(example("avg_pool_grad", padded ? "counting pads" : "", {make({1, 2, 2, 3})},
                          with(attributes, "shape", shape)));
  }
  out.push_back(example("avg_pool", "empty batch", {make({0, 2, 4, 3})}, mean));
}

}  // namespace

std::vector<OperatorExample> nn_examples() {
  std::vector<OperatorExample> out;
  add_matrix_examples(out);
  add_conv_examples(out);
  add_attention_examples(out);
  add_channel_norm_examples(out);
  add_row_norm_examples(out);
  add_loss_examples(out);
  add_pool_examples(out);
  return out;
}

}  // namespace plimsoll::autodiff
