// For every kernel of the CPU's table, calls with the values that ordinary tests leave out: NaN,
// infinities, -0, denormals, the ends of the range, reversed bounds. For tests only.
//
// Where elements do not depend on each other every edge value (and every pair of them) is tried,
// each with its own tolerance. Where they do (sums, products, normalisation), the values are
// ordinary ones with a few edges among them: one NaN in each would tell little. Extents of kEmptied
// (and of the lists of edges) are the ones that become 0 for the empty tensors.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plimsoll/kernels/testing/edge_tensors.h"

namespace plimsoll::kernels::edge {

struct Example {
  std::vector<Differential> alone;     // each element by itself: contents are given
  std::vector<Differential> together;  // contents of floats become mixed() where none are given
};
using Examples = std::map<std::string, Example, std::less<>>;

inline const std::vector<const char*> kUnary = {"abs",
                                                "acos",
                                                "acosh",
                                                "asin",
                                                "asinh",
                                                "atan",
                                                "atanh",
                                                "ceil",
                                                "celu",
                                                "cos",
                                                "cosh",
                                                "elu",
                                                "erf",
                                                "exp",
                                                "floor",
                                                "gelu",
                                                "hard_sigmoid",
                                                "hard_swish",
                                                "identity",
                                                "is_inf",
                                                "is_nan",
                                                "leaky_relu",
                                                "log",
                                                "mish",
                                                "neg",
                                                "positive_mask",
                                                "reciprocal",
                                                "relu",
                                                "round",
                                                "rsqrt",
                                                "selu",
                                                "shrink",
                                                "sigmoid",
                                                "sign",
                                                "silu",
                                                "sin",
                                                "sinh",
                                                "softplus",
                                                "softsign",
                                                "sqrt",
                                                "tan",
                                                "tanh",
                                                "thresholded_relu"};
inline const std::vector<const char*> kPairs = {"accumulate",
                                                "add",
                                                "add_relu",
                                                "celu_grad",
                                                "div",
                                                "elu_grad",
                                                "equal",
                                                "gelu_grad",
                                                "greater",
                                                "greater_equal",
                                                "hard_sigmoid_grad",
                                                "hard_swish_grad",
                                                "leaky_relu_grad",
                                                "less",
                                                "less_equal",
                                                "maximum",
                                                "minimum",
                                                "mish_grad",
                                                "mul",
                                                "pow",
                                                "relu_grad",
                                                "selu_grad",
                                                "shrink_grad",
                                                "sigmoid_grad",
                                                "silu_grad",
                                                "sub",
                                                "tanh_grad",
                                                "thresholded_relu_grad"};

inline void add_elementwise(Examples& out) {
  for (const char* op : kUnary) out[op].alone.push_back({op, {edge_row()}});
  for (const char* op : kPairs) out[op].alone.push_back({op, edge_pairs(second_of(op))});
  const Attributes tanh_form{{"approximate", std::string("tanh")}};
  out["gelu"].alone.push_back({"gelu", {edge_row()}, tanh_form});
  out["gelu_grad"].alone.push_back({"gelu_grad", edge_pairs(above_underflow), tanh_form});
  for (const auto& [least, most] :
       {std::pair{-0.5, 1.0}, {2.0, -2.0}, {0.0, 0.0}, {-kInf, kInf}, {kInf, -kInf}}) {
    const Attributes bounds = with({{"min", least}, {"max", most}});
    out["clip"].alone.push_back({"clip", {edge_row()}, bounds});
    out["clip_grad"].alone.push_back({"clip_grad", edge_pairs(), bounds});
    out["inside_mask"].alone.push_back({"inside_mask", {edge_row()}, bounds});
  }
  for (const double alpha : {0.0, -1.0, 3.0}) {
    for (const char* op : {"leaky_relu", "elu", "thresholded_relu"}) {
      out[op].alone.push_back({op, {edge_row()}, with({{"alpha", alpha}})});
      const std::string gradient = std::string(op) + "_grad";
      out[gradient].alone.push_back(
          {gradient, edge_pairs(above_underflow), with({{"alpha", alpha}})});
    }
  }
  out["shrink"].alone.push_back({"shrink", {edge_row()}, with({{"lambd", 1.0}, {"bias", 2.0}})});
  out["hard_sigmoid"].alone.push_back(
      {"hard_sigmoid", {edge_row()}, with({{"alpha", -1.0}, {"beta", 0.0}})});
  for (const char* to : {"fp32", "bf16", "int64", "int32", "bool"}) {
    const Attributes target{{"to", std::string(to)}};
    for (const Tensor& from :
         {edge_row(), integers({kIntegers}), integers({kIntegers}, ir::DType::kI32)})
      out["cast"].alone.push_back({"cast", {from}, target});
  }
  out["bit_cast"].alone.push_back({"bit_cast", {edge_row()}, {{"to", std::string("int32")}}});
  for (const char* op :
       {"add", "sub", "mul", "equal", "less", "less_equal", "greater", "greater_equal"}) {
    for (const ir::DType dtype : {ir::DType::kI64, ir::DType::kI32}) {
      out[op].alone.push_back(
          {op, {integers({kIntegers, 1}, dtype), integers({kIntegers}, dtype)}});
    }
  }
}

inline void add_choices(Examples& out) {
  const Tensor truth{{ir::DType::kBool, {kEmptied, 3}, {}}, 0, 2};
  const std::int64_t n = count_of_edges();
  const Tensor either{{ir::DType::kBool, {n, n}, {}}, 0, 2};
  const Tensor bits{{ir::DType::kBit, {n, n}, {}}, 0, 2};
  for (const char* op : {"logical_and", "logical_or", "logical_xor"})
    out[op].alone.push_back({op, {truth, truth}});
  out["logical_not"].alone.push_back({"logical_not", {truth}});
  const std::vector<Tensor> pairs = edge_pairs();
  out["where"].alone.push_back({"where", {either, pairs[0], pairs[1]}});
  out["masked"].alone.push_back({"masked", {pairs[0], bits}});
  const Tensor counter{{ir::DType::kU64, {}, {}}, 3, 4};
  out["dropout"].alone.push_back(
      {"dropout", {pairs[0], counter}, {{"ratio", 0.3}, {"seed", std::int64_t{77}}}});
  out["dropout"].alone.push_back(
      {"dropout", {pairs[0], counter}, {{"ratio", 0.0}, {"seed", std::int64_t{77}}}});
  out["increment"].alone.push_back({"increment", {integers({kIntegers})}});
}

inline void add_updates(Examples& out) {
  const Tensor step{{ir::DType::kI64, {}, {}}, 3, 4};
  const Attributes how = with({{"lr", 0.1}, {"weight_decay", 0.01}});
  const Tensor w = f32({kEmptied, 50});
  const Tensor v = positive(f32({kEmptied, 50}));
  out["sgd"].together = {{"sgd", {w, w}, how}, {"sgd", {w, w, f32({})}, how}};
  out["momentum"].together = {{"momentum", {w, w, w}, how}};
  for (const char* op : {"adam", "adamw"}) out[op].together = {{op, {w, w, w, v, step}, how}};
}

// What only moves elements, or picks some of them, must move the edges as they are.
inline void add_movement(Examples& out) {
  const Tensor x = f32({kEmptied, 4, 6, 5});
  const auto add = [&](const char* op, std::vector<Tensor> inputs, Attributes attributes = {}) {
    out[op].together.push_back({.op = op,
                                .inputs = std::move(inputs),
                                .attributes = std::move(attributes),
                                .tolerance = 0});
  };
  add("transpose", {x}, {{"perm", Ints{2, 0, 3, 1}}});
  add("expand", {f32({kEmptied, 1})}, {{"shape", Ints{3, kEmptied, 5}}});
  add("reshape", {x}, {{"shape", Ints{kEmptied, 120}}});
  add("identity", {x});
  add("slice", {x},
      {{"starts", Ints{0, 1, 0, 0}},
       {"ends", Ints{kEmptied, 4, 6, 5}},
       {"steps", Ints{1, 2, 1, 3}}});
  add("slice_assign", {x, f32({kEmptied, 2, 6, 2})},
      {{"starts", Ints{0, 1, 0, 0}},
       {"ends", Ints{kEmptied, 4, 6, 5}},
       {"steps", Ints{1, 2, 1, 3}}});
  for (const double value : {kNan, kInf, -0.0, 3.0})
    add("pad", {x}, {{"pads", Ints{0, 1, -1, 0, 0, 0, 2, 0}}, {"value", value}});
  add("concat", {x, x}, {{"axis", std::int64_t{1}}});
  add("split", {x}, {{"axis", std::int64_t{1}}, {"sizes", Ints{3, 1}}});
  for (const double value : {kNan, kInf, -kInf, -0.0, kDenormal, kMost})
    add("fill", {},
        {{"shape", Ints{kEmptied, 9}}, {"dtype", std::string("fp32")}, {"value", value}});
  for (const auto& [low, high] :
       {std::pair{0.0, 1.0}, {-2.0, 5.0}, {3.0, 3.0}, {-0x1p99, 0x1p99}}) {
    add("random_uniform", {Tensor{{ir::DType::kU64, {}, {}}, 3, 4}},
        {{"shape", Ints{kEmptied, 9}},
         {"dtype", std::string("fp32")},
         {"low", low},
         {"high", high},
         {"seed", std::int64_t{5}}});
  }
  add("tile", {x}, {{"repeats", Ints{1, 2, 1, 3}}});
  add("depth_to_space", {x}, {{"block", std::int64_t{2}}});
  add("space_to_depth", {f32({kEmptied, 3, 6, 4})}, {{"block", std::int64_t{2}}});
  out["reorder"].together.push_back({.op = "reorder",
                                     .inputs = {x},
                                     .attributes = {{"layout", std::string("@0231")}},
                                     .layouts = {ir::Layout::channels_last(4)},
                                     .tolerance = 0});
  const Tensor far{{ir::DType::kI64, {kEmptied, 4}, {}}, -9, 9};
  const Tensor pairs{{ir::DType::kI64, {kEmptied, 2}, {}}, -9, 9};
  add("gather", {f32({50, 33}), i64({kEmptied, 5}, 50)});
  add("gather_elements", {f32({3, 4}), far}, {{"axis", std::int64_t{0}}});
  add("gather_nd", {f32({3, 4}), pairs});
  add("scatter_elements", {f32({9, 4}), i64({kEmptied, 4}, 9), f32({kEmptied, 4})},
      {{"axis", std::int64_t{0}}});
  add("scatter_nd", {f32({3, 4}), pairs, f32({kEmptied})});
}

inline void add_reductions(Examples& out) {
  for (const char* op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"}) {
    const bool picks =
        std::string_view(op).ends_with("max") || std::string_view(op).ends_with("min");
    const double tolerance = picks ? 0 : 2e-5;
    for (const Ints& axes : {Ints{0}, Ints{1}, Ints{2}, Ints{0, 2}, Ints{1, 2}, Ints{0, 1, 2}})
      out[op].together.push_back({.op = op,
                                  .inputs = {f32({kEmptied, 9, 20})},
                                  .attributes = {{"axes", axes}},
                                  .tolerance = tolerance});
    for (const Ints& axes : {Ints{0}, Ints{1}})
      out[op].together.push_back({.op = op,
                                  .inputs = {f32({40, 60})},
                                  .attributes = {{"axes", axes}},
                                  .tolerance = tolerance});
  }
  out["sum_squares"].together = {{"sum_squares", {f32({kEmptied, 9})}}};
  for (const std::int64_t flag : {0, 1}) {
    out["cumsum"].together.push_back(
        {"cumsum",
         {f32({kEmptied, 9})},
         {{"axis", std::int64_t{1}}, {"exclusive", flag}, {"reverse", flag}}});
  }
  for (const char* op : {"softmax", "log_softmax"})
    out[op].together = {{op, {f32({kEmptied, 30})}}, {op, {f32({40, 5})}}};
  for (const char* op : {"softmax_grad", "log_softmax_grad"})
    out[op].together = {{op, {f32({kEmptied, 30}), f32({kEmptied, 30})}}};
  out["cross_entropy"].together = {{"cross_entropy", {f32({kEmptied, 9}), i64({kEmptied}, 9)}},
                                   {"cross_entropy",
                                    {f32({kEmptied, 9}), i64({kEmptied}, 1)},
                                    {{"ignore_index", std::int64_t{0}}}}};
  out["cross_entropy_grad"].together = {
      {"cross_entropy_grad",
       {f32({}), f32({kEmptied, 9}), i64({kEmptied}, 9), f32({kEmptied})},
       {{"ignore_index", std::int64_t{3}}}}};
  // What an ignored row holds is nobody's: not even a NaN reaches the mean.
  const Attributes ignoring{{"ignore_index", std::int64_t{0}}};
  const Tensor losses = f32({kEmptied, 9});
  Tensor held = f32({kEmptied, 8});
  held.values = {kNan, 1.5, kInf, -0.5, -kInf, kDenormal, -0.0, 3};
  Tensor labels = i64({kEmptied, 8}, 3);
  labels.values = {0, 1, 0, 2, 0, -1, 5, 1};
  out["mean_loss"].together = {
      {"mean_loss", {losses, i64({kEmptied, 9}, 3)}},
      {"mean_loss", {losses, i64({kEmptied, 9}, 3)}, ignoring},
      {"mean_loss", {losses, i64({kEmptied, 9}, 1)}, ignoring},
      {"mean_loss", {held, labels}, ignoring},
      {"mean_loss", {finite(f32({kEmptied, 500})), i64({kEmptied, 500}, 3)}, ignoring}};
  out["gather_grad"].together = {{"gather_grad",
                                  {f32({kEmptied, 20}), i64({kEmptied}, 4)},
                                  {{"axis", std::int64_t{0}}, {"shape", Ints{4, 20}}}}};
}

inline void add_norms(Examples& out) {
  const Attributes relu{{"activation", std::string("relu")}};
  const Tensor x = f32({kEmptied, 20, 3, 5});
  const Tensor g = f32({20});
  const Tensor r = positive(f32({20}));
  for (const Tensor& in : {x, last({kEmptied, 20, 3, 5})}) {
    for (const Attributes& how : {Attributes{}, relu}) {
      out["batch_norm"].together.push_back({"batch_norm", {in, g, g}, how});
      out["batch_norm_grad"].together.push_back({"batch_norm_grad", {in, in, g, g, g, r}, how});
      out["batch_norm_inference"].together.push_back(
          {"batch_norm_inference", {in, g, g, g, r}, how});
    }
  }
  out["batch_norm_update"].together = {
      {"batch_norm_update", {g, g, g, r}, {{"count", std::int64_t{105}}}},
      {"batch_norm_update", {g, g, g, r}, {{"count", std::int64_t{1}}}}};
  const Tensor rows = f32({kEmptied, 96});
  const Tensor each = f32({kEmptied});
  out["layer_norm"].together = {{"layer_norm", {rows, f32({96}), f32({96})}}};
  out["layer_norm_grad"].together = {
      {"layer_norm_grad", {rows, rows, f32({96}), each, positive(each)}}};
  out["rms_norm"].together = {{"rms_norm", {rows, f32({96})}}};
  out["rms_norm_grad"].together = {{"rms_norm_grad", {rows, rows, f32({96}), positive(each)}}};
  const Attributes groups{{"groups", std::int64_t{2}}};
  const Tensor grouped = f32({kEmptied, 2});
  out["group_norm"].together = {{"group_norm", {x, g, g}, groups}};
  out["group_norm_grad"].together = {
      {"group_norm_grad", {x, x, g, grouped, positive(grouped)}, groups}};
  const Attributes near{{"size", std::int64_t{5}}, {"alpha", 0.5}, {"beta", 0.75}, {"k", 2.0}};
  out["lrn"].together = {{"lrn", {x}, near}};
  out["lrn_grad"].together = {{"lrn_grad", {x, x}, near}};
}

inline void add_windows(Examples& out) {
  const Attributes window{
      {"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}};
  Attributes back = window;
  back.set("shape", Ints{kEmptied, 20, 9, 10});
  for (const bool is_last : {false, true}) {
    const auto shaped = [&](const ir::Shape& shape) { return is_last ? last(shape) : f32(shape); };
    Tensor index = shaped({kEmptied, 20, 5, 5});
    index.type.dtype = ir::DType::kU8;
    index.low = 4;  // the centre is never padding
    index.high = 5;
    out["max_pool"].together.push_back({.op = "max_pool",
                                        .inputs = {shaped({kEmptied, 20, 9, 10})},
                                        .attributes = window,
                                        .tolerance = 0});
    out["avg_pool"].together.push_back({"avg_pool", {shaped({kEmptied, 20, 9, 10})}, window});
    out["max_pool_grad"].together.push_back(
        {"max_pool_grad", {shaped({kEmptied, 20, 5, 5}), index}, back});
    out["avg_pool_grad"].together.push_back(
        {"avg_pool_grad", {shaped({kEmptied, 20, 5, 5})}, back});
  }
  for (const char* mode : {"nearest", "linear"}) {
    out["resize"].together.push_back(
        {"resize",
         {f32({kEmptied, 3, 5, 4})},
         {{"shape", Ints{kEmptied, 3, 10, 9}}, {"mode", std::string(mode)}}});
    out["resize_grad"].together.push_back(
        {"resize_grad",
         {f32({kEmptied, 3, 10, 9})},
         {{"shape", Ints{kEmptied, 3, 5, 4}}, {"mode", std::string(mode)}}});
  }
}

inline void add_products(Examples& out) {
  const Ints pads{1, 1, 1, 1};
  out["matmul"].together = {{"matmul", {f32({kEmptied, 17}), f32({17, 9})}},
                            {"matmul", {f32({5, kEmptied}), f32({kEmptied, 9})}}};
  out["linear"].together = {{"linear", {f32({kEmptied, 24}), f32({24, 36}), f32({36})}}};
  out["linear_grad_weight"].together = {{"linear_grad_weight",
                                         {f32({kEmptied, 24}), f32({kEmptied, 36})},
                                         {{"bias", std::int64_t{1}}}}};
  const Attributes relu{{"activation", std::string("relu")}};
  const auto nan_among = [](const Tensor& tensor) { return mixed(tensor, 4, {kNan, 0.0, -0.0}); };
  out["conv"].together = {
      {"conv", {f32({kEmptied, 3, 9, 9}), normal(f32({8, 3, 3, 3})), f32({8})}, {{"pads", pads}}},
      {"conv", {last({kEmptied, 16, 6, 6}), f32({32, 16, 1, 1}), f32({32})}},
      // oneDNN's ReLU multiplies what is below zero by 0, so that -inf gives NaN: no infinities
      // here.
      {"conv",
       {nan_among(f32({kEmptied, 3, 9, 9})), normal(f32({8, 3, 3, 3})), nan_among(f32({8}))},
       relu},
      {"conv",
       {nan_among(last({kEmptied, 16, 6, 6})), nan_among(f32({32, 16, 1, 1})), finite(f32({32}))},
       relu},
      {"conv",
       {last({kEmptied, 16, 6, 6}), normal(f32({16, 1, 3, 3}))},
       {{"pads", pads}, {"group", std::int64_t{16}}}}};
  out["conv_grad_input"].together = {{"conv_grad_input",
                                      {f32({kEmptied, 16, 6, 6}), f32({16, 8, 3, 3})},
                                      {{"pads", pads}, {"shape", Ints{kEmptied, 8, 6, 6}}}}};
  out["conv_grad_weight"].together = {
      {.op = "conv_grad_weight",
       .inputs = {f32({kEmptied, 8, 6, 6}), f32({kEmptied, 16, 6, 6})},
       .attributes = {{"pads", pads}, {"shape", Ints{16, 8, 3, 3}}, {"bias", std::int64_t{1}}},
       .layouts = {ir::Layout{}},
       .same_bits_on_any_threads = false}};
  out["conv_transpose"].together = {{"conv_transpose",
                                     {f32({kEmptied, 8, 5, 5}), f32({8, 4, 2, 2}), f32({4})},
                                     {{"strides", Ints{2, 2}}}}};
}

// Weights of one chunk and of two, of forms with blocks, with a scale for each row, without loss,
// and raw, which alone hold any float there is. Where x has edges the weight is small: along more
// columns every sum would have a NaN.
inline void add_encoded(Examples& out) {
  for (const ir::DType dtype : {ir::DType::kF32, ir::DType::kBF16, ir::DType::kF16}) {
    const Encoded raw = encoded(edge_row(), dtype, "raw");
    out["decode_weight"].alone.push_back({.op = "decode_weight",
                                          .inputs = {raw.bytes},
                                          .attributes = raw.attributes,
                                          .tolerance = 0});
  }
  const Tensor near{{ir::DType::kI64, {kEmptied, 5}, {}}, -250, 250};
  const Tensor far{{ir::DType::kI32, {kEmptied, 5}, {}}, -400, 400};
  for (const char* form : {"q8_0", "int8", "bitmask", "raw"}) {
    const bool is_raw = std::string_view(form) == "raw";
    const auto weight = [&](const ir::Shape& shape) {
      return encoded(is_raw ? mixed(f32(shape), 5) : finite(f32(shape)), ir::DType::kF32, form);
    };
    const auto add = [&](const char* op, std::vector<Tensor> inputs, Attributes attributes,
                         double tolerance = 0) {
      out[op].together.push_back({.op = op,
                                  .inputs = std::move(inputs),
                                  .attributes = std::move(attributes),
                                  .tolerance = tolerance});
    };
    const Encoded large = weight({250, 320});
    add("decode_weight", {large.bytes}, large.attributes);
    for (const Tensor& indices : {near, far})
      add("encoded_gather", {large.bytes, indices}, large.attributes);
    const Encoded small = weight({24, 32});
    for (const std::int64_t turned : {0, 1}) {
      Attributes of_small = small.attributes;
      Attributes of_large = large.attributes;
      of_small.set("trans_w", turned);
      of_large.set("trans_w", turned);
      const std::int64_t inner = turned == 0 ? 24 : 32;
      for (const std::int64_t rows : {std::int64_t{1}, kEmptied, std::int64_t{40}}) {
        add("encoded_linear", {f32({rows, inner}), small.bytes, f32({56 - inner})}, of_small, 2e-5);
        if (is_raw) continue;
        const Tensor x = finite(f32({rows, turned == 0 ? 250 : 320}));
        add("encoded_linear", {x, large.bytes}, of_large, 2e-5);
      }
      if (turned == 0) continue;
      of_small.set("int8_activations", std::int64_t{1});
      of_large.set("int8_activations", std::int64_t{1});
      for (const std::int64_t rows : {std::int64_t{1}, kEmptied, std::int64_t{13}}) {
        add("encoded_linear", {f32({rows, inner}), small.bytes, f32({56 - inner})}, of_small, 2e-5);
        if (!is_raw) add("encoded_linear", {finite(f32({rows, 320})), large.bytes}, of_large, 2e-5);
      }
    }
  }
}

inline void add_attention(Examples& out) {
  const std::int64_t heads = 2;
  const Tensor lse = mixed({{ir::DType::kF32, {kEmptied, 2, 30}, {}}, 5, 7}, 9, {kNan, kInf});
  const Tensor mask = f32({30, 30});
  for (const std::int64_t causal : {0, 1}) {
    const Attributes how{{"heads", heads}, {"causal", causal}};
    const auto seen = [&](const Tensor& tensor) { return causal == 0 ? tensor : finite(tensor); };
    const Tensor y = seen(f32({kEmptied, 30, 32}));
    const Tensor plain = finite(f32({kEmptied, 30, 32}));
    const Tensor qkv = seen(f32({kEmptied, 30, 96}));
    out["attention"].together.push_back({"attention", {y, y, y}, how});
    out["attention"].together.push_back({"attention", {plain, plain, plain, mask}, how});
    out["attention_qkv"].together.push_back({"attention_qkv", {qkv}, how});
    // The lse is none of these scores', so probabilities are not below 1 and sums cancel.
    out["attention_grad"].together.push_back({.op = "attention_grad",
                                              .inputs = {y, y, y, y, y, lse},
                                              .attributes = how,
                                              .tolerance = 2e-4});
    out["attention_qkv_grad"].together.push_back({.op = "attention_qkv_grad",
                                                  .inputs = {y, qkv, y, lse},
                                                  .attributes = how,
                                                  .tolerance = 2e-4});
  }
}

inline Examples all_examples() {
  Examples out;
  for (const auto add : {add_elementwise, add_choices, add_updates, add_movement, add_reductions,
                         add_norms, add_windows, add_products, add_encoded, add_attention})
    add(out);
  return out;
}

}  // namespace plimsoll::kernels::edge
