#include "plimsoll/model/onnx/convert/attribute_table.h"

#include <algorithm>
#include <array>

namespace plimsoll::model::onnx {
namespace {

struct Row {
  std::string_view op;
  std::string_view attributes;
};

// Sorted by operator; of all operator sets together.
constexpr auto kOnnx = std::to_array<Row>({
    {"Add", "axis broadcast"},
    {"AffineGrid", "align_corners"},
    {"And", "axis broadcast"},
    {"ArgMax", "axis keepdims select_last_index"},
    {"ArgMin", "axis keepdims select_last_index"},
    {"Attention",
     "is_causal kv_num_heads left_window_size q_num_heads qk_matmul_output_mode right_window_size "
     "scale softcap softmax_precision"},
    {"AveragePool", "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides"},
    {"BatchNormalization", "epsilon is_test momentum spatial training_mode"},
    {"BitCast", "to"},
    {"BitShift", "direction"},
    {"BlackmanWindow", "output_datatype periodic"},
    {"Cast", "saturate to"},
    {"CastLike", "saturate"},
    {"CausalConvWithState", "activation"},
    {"Celu", "alpha"},
    {"CenterCropPad", "axes"},
    {"Clip", "max min"},
    {"Col2Im", "dilations pads strides"},
    {"Compress", "axis"},
    {"Concat", "axis"},
    {"ConcatFromSequence", "axis new_axis"},
    {"Constant",
     "sparse_value value value_float value_floats value_int value_ints value_string value_strings"},
    {"ConstantOfShape", "value"},
    {"Conv", "auto_pad dilations group kernel_shape pads strides"},
    {"ConvInteger", "auto_pad dilations group kernel_shape pads strides"},
    {"ConvTranspose",
     "auto_pad dilations group kernel_shape output_padding output_shape pads strides"},
    {"CumProd", "exclusive reverse"},
    {"CumSum", "exclusive reverse"},
    {"DFT", "axis inverse onesided"},
    {"DeformConv", "dilations group kernel_shape offset_group pads strides"},
    {"DepthToSpace", "blocksize mode"},
    {"DequantizeLinear", "axis block_size output_dtype"},
    {"Div", "axis broadcast"},
    {"Dropout", "is_test ratio seed"},
    {"Einsum", "equation"},
    {"Elu", "alpha"},
    {"Equal", "axis broadcast"},
    {"EyeLike", "dtype k"},
    {"Flatten", "axis"},
    {"GRU",
     "activation_alpha activation_beta activations clip direction hidden_size layout "
     "linear_before_reset output_sequence"},
    {"Gather", "axis"},
    {"GatherElements", "axis"},
    {"GatherND", "batch_dims"},
    {"Gelu", "approximate"},
    {"Gemm", "alpha beta broadcast transA transB"},
    {"GlobalLpPool", "p"},
    {"Greater", "axis broadcast"},
    {"GridSample", "align_corners mode padding_mode"},
    {"GroupNormalization", "epsilon num_groups stash_type"},
    {"HammingWindow", "output_datatype periodic"},
    {"HannWindow", "output_datatype periodic"},
    {"HardSigmoid", "alpha beta"},
    {"Hardmax", "axis"},
    {"If", "else_branch then_branch"},
    {"InstanceNormalization", "epsilon"},
    {"IsInf", "detect_negative detect_positive"},
    {"LRN", "alpha beta bias size"},
    {"LSTM",
     "activation_alpha activation_beta activations clip direction hidden_size input_forget "
     "layout output_sequence"},
    {"LayerNormalization", "axis epsilon stash_type"},
    {"LeakyRelu", "alpha"},
    {"Less", "axis broadcast"},
    {"LinearAttention", "chunk_size kv_num_heads q_num_heads scale update_rule"},
    {"LogSoftmax", "axis"},
    {"Loop", "body"},
    {"LpNormalization", "axis p"},
    {"LpPool", "auto_pad ceil_mode dilations kernel_shape p pads strides"},
    {"MaxPool", "auto_pad ceil_mode dilations kernel_shape pads storage_order strides"},
    {"MaxUnpool", "kernel_shape pads strides"},
    {"MeanVarianceNormalization", "axes"},
    {"MelWeightMatrix", "output_datatype"},
    {"Mod", "fmod"},
    {"Mul", "axis broadcast"},
    {"NegativeLogLikelihoodLoss", "ignore_index reduction"},
    {"NonMaxSuppression", "center_point_box"},
    {"OneHot", "axis"},
    {"Optional", "type"},
    {"Or", "axis broadcast"},
    {"Pad", "mode paddings pads value"},
    {"Pow", "axis broadcast"},
    {"QLinearConv", "auto_pad dilations group kernel_shape pads strides"},
    {"QuantizeLinear", "axis block_size output_dtype precision saturate"},
    {"RMSNormalization", "axis epsilon stash_type"},
    {"RNN",
     "activation_alpha activation_beta activations clip direction hidden_size layout "
     "output_sequence"},
    {"Range", "stash_type"},
    {"ReduceL1", "axes keepdims noop_with_empty_axes"},
    {"ReduceL2", "axes keepdims noop_with_empty_axes"},
    {"ReduceLogSum", "axes keepdims noop_with_empty_axes"},
    {"ReduceLogSumExp", "axes keepdims noop_with_empty_axes"},
    {"ReduceMax", "axes keepdims noop_with_empty_axes"},
    {"ReduceMean", "axes keepdims noop_with_empty_axes"},
    {"ReduceMin", "axes keepdims noop_with_empty_axes"},
    {"ReduceProd", "axes keepdims noop_with_empty_axes"},
    {"ReduceSum", "axes keepdims noop_with_empty_axes"},
    {"ReduceSumSquare", "axes keepdims noop_with_empty_axes"},
    {"Reshape", "allowzero shape"},
    {"Resize",
     "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside "
     "extrapolation_value keep_aspect_ratio_policy mode nearest_mode"},
    {"ReverseSequence", "batch_axis time_axis"},
    {"RoiAlign",
     "coordinate_transformation_mode mode output_height output_width sampling_ratio spatial_scale"},
    {"RotaryEmbedding", "interleaved num_heads rotary_embedding_dim"},
    {"STFT", "onesided"},
    {"Scan",
     "body num_scan_inputs scan_input_axes scan_input_directions scan_output_axes "
     "scan_output_directions"},
    {"Scatter", "axis"},
    {"ScatterElements", "axis reduction"},
    {"ScatterND", "reduction"},
    {"Selu", "alpha gamma"},
    {"SequenceEmpty", "dtype"},
    {"SequenceMap", "body"},
    {"Shape", "end start"},
    {"Shrink", "bias lambd"},
    {"SimplifiedLayerNormalization", "axis epsilon stash_type"},
    {"Slice", "axes ends starts"},
    {"Softmax", "axis"},
    {"SoftmaxCrossEntropyLoss", "ignore_index reduction"},
    {"SpaceToDepth", "blocksize mode"},
    {"Split", "axis num_outputs split"},
    {"SplitToSequence", "axis keepdims"},
    {"Squeeze", "axes"},
    {"Sub", "axis broadcast"},
    {"SwiGLU", "alpha"},
    {"Swish", "alpha"},
    {"TensorScatter", "axis mode"},
    {"ThresholdedRelu", "alpha"},
    {"TopK", "axis k largest sorted"},
    {"Transpose", "perm"},
    {"Trilu", "upper"},
    {"Unique", "axis sorted"},
    {"Unsqueeze", "axes"},
    {"Upsample", "mode scales"},
    {"Xor", "axis broadcast"},
});
static_assert(std::ranges::is_sorted(kOnnx, {}, &Row::op));

// The same for the other domains.
constexpr auto kContrib = std::to_array<Row>({
    {"Attention",
     "do_rotary mask_filter_value num_heads past_present_share_buffer qkv_hidden_sizes "
     "rotary_embedding_dim scale unidirectional"},
    {"EmbedLayerNormalization", "epsilon mask_index_type"},
    {"FlexAttention", "prob_mod scale score_mod softmax_precision"},
    {"FusedConv",
     "activation activation_params auto_pad dilations group kernel_shape pads strides"},
    {"FusedGemm",
     "activation activation_alpha activation_beta activation_gamma alpha beta transA transB"},
    {"FusedMatMul", "alpha transA transB transBatchA transBatchB"},
    {"GroupNorm", "activation channels_last epsilon groups"},
    {"GroupQueryAttention",
     "do_rotary kv_num_heads local_window_size num_heads rotary_interleaved scale smooth_softmax "
     "softcap"},
    {"LayerNormalization", "axis epsilon stash_type"},
    {"MatMulNBits", "K N accuracy_level bits block_size"},
    {"MultiHeadAttention", "mask_filter_value num_heads scale unidirectional"},
    {"QGemm", "alpha transA transB"},
    {"QLinearAveragePool",
     "auto_pad ceil_mode channels_last count_include_pad kernel_shape pads strides"},
    {"QLinearConcat", "axis"},
    {"QLinearGlobalAveragePool", "channels_last"},
    {"QLinearLeakyRelu", "alpha"},
    {"QLinearSoftmax", "axis opset"},
    {"QuickGelu", "alpha"},
    {"RotaryEmbedding", "interleaved is_packed_batching num_heads rotary_embedding_dim scale"},
    {"SimplifiedLayerNormalization", "axis epsilon stash_type"},
    {"SkipLayerNormalization", "epsilon"},
    {"SkipSimplifiedLayerNormalization", "epsilon"},
});
static_assert(std::ranges::is_sorted(kContrib, {}, &Row::op));

// Whether `names`, separated by spaces, has the word.
bool has_word(std::string_view names, std::string_view word) {
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(' '), names.size());
    if (names.substr(0, end) == word) return true;
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return false;
}

std::string_view find(std::span<const Row> rows, std::string_view op) {
  const auto place = std::ranges::lower_bound(rows, op, {}, &Row::op);
  return place != rows.end() && place->op == op ? place->attributes : std::string_view();
}

}  // namespace

std::string_view attributes_of(std::string_view domain, std::string_view op) {
  return domain.empty() ? find(kOnnx, op) : find(kContrib, op);
}

Status check_attributes(const Operator& op, const NodeFile& node) {
  const std::string_view known = attributes_of(op.domain, op.name);
  for (const AttributeFile& attribute : node.attributes) {
    // Operator sets before 6 say with it which inputs may be overwritten.
    if (attribute.name == "consumed_inputs" || has_word(known, attribute.name)) continue;
    if (known.empty())
      return bad_input("attribute '{}' is not known; the operator has none", attribute.name);
    return bad_input("attribute '{}' is not known; known are: {}", attribute.name, known);
  }
  return {};
}

}  // namespace plimsoll::model::onnx
