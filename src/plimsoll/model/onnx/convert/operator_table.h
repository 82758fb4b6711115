// Which ONNX operators we read, with which attributes, and how: one row each, one file per family.
//
// An attribute that is not known must not be ignored: the next operator set may give it a meaning
// that changes the result. So every row names the attributes that its converter honours; a node
// with another one is refused. What can only change precision or what only old files carry without
// a meaning (`stash_type`, `consumed_inputs`) is known and harmless.
//
// Many operators are the same here and there, but for the spelling of the name: then name and
// attributes come from our definition (leaky_relu{alpha} is LeakyRelu with alpha), the converter
// hands everything on, and the export writes the node back by the same row.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "plimsoll/model/onnx/convert/operator_call.h"

namespace plimsoll::model::onnx {

std::vector<Operator> elementwise_operators();
std::vector<Operator> making_operators();
std::vector<Operator> random_operators();
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

// What ONNX calls an operator of ours: LeakyRelu for leaky_relu.
std::string onnx_name(std::string_view ours);
// The row of an operator that has the inputs and the attributes of ours; `more` are attributes that
// only old operator sets had.
Operator same(std::string_view ours, Convert convert, std::string_view more = {});
// The same with a converter that hands on inputs and attributes.
Operator same(std::string_view ours);
// The rows of an operator set other than ONNX's own.
std::vector<Operator> in_domain(std::string_view domain, std::vector<Operator> rows);

// All rows, sorted by domain and name.
std::span<const Operator> operator_table();
// Null when there is no such operator.
const Operator* find_operator(std::string_view domain, std::string_view name);
// The row that was made by same() for an operator of ours; null when there is none.
const Operator* find_same(std::string_view ours);

// Names the first attribute of the node that the operator does not have.
Status check_attributes(const Operator& op, const NodeFile& node);
// The table as the importer uses it.
OperatorSet operator_set();

}  // namespace plimsoll::model::onnx
