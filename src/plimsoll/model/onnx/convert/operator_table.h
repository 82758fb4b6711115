// Which ONNX operators we read, and how: one row each, one file per family.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "plimsoll/model/onnx/convert/operator_call.h"

namespace plimsoll::model::onnx {

std::vector<Operator> elementwise_operators();
std::vector<Operator> making_operators();
std::vector<Operator> shaping_operators();
std::vector<Operator> indexing_operators();
std::vector<Operator> reduction_operators();
std::vector<Operator> product_operators();
std::vector<Operator> convolution_operators();
std::vector<Operator> pooling_operators();
std::vector<Operator> normalization_operators();
std::vector<Operator> loss_operators();
std::vector<Operator> recurrent_operators();
std::vector<Operator> resize_operators();
std::vector<Operator> quantization_operators();
std::vector<Operator> control_operators();
std::vector<Operator> sequence_operators();
std::vector<Operator> attention_operators();
std::vector<Operator> linear_attention_operators();
std::vector<Operator> sampling_operators();
std::vector<Operator> signal_operators();
std::vector<Operator> elimination_operators();
std::vector<Operator> contrib_operators();
std::vector<Operator> contrib_attention_operators();
std::vector<Operator> contrib_quantized_operators();

// All rows, sorted by domain and name.
std::span<const Operator> operator_table();
// Null when there is no such operator.
const Operator* find_operator(std::string_view domain, std::string_view name);
// The table as the importer uses it.
OperatorSet operator_set();

}  // namespace plimsoll::model::onnx
