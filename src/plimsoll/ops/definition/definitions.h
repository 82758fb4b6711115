// The families of definitions, one function each; registry.cpp puts them together.
#pragma once

#include <vector>

#include "plimsoll/ops/op_definition.h"

namespace plimsoll::ops {

std::vector<OpDefinition> binary_definitions();
std::vector<OpDefinition> matmul_definitions();
std::vector<OpDefinition> linear_definitions();
std::vector<OpDefinition> encoded_weight_definitions();
std::vector<OpDefinition> conv_definitions();
std::vector<OpDefinition> attention_definitions();
std::vector<OpDefinition> batch_norm_definitions();
std::vector<OpDefinition> row_norm_definitions();
std::vector<OpDefinition> lrn_definitions();
std::vector<OpDefinition> softmax_definitions();
std::vector<OpDefinition> loss_definitions();
std::vector<OpDefinition> add_n_definitions();
std::vector<OpDefinition> add_relu_definitions();
std::vector<OpDefinition> pool_definitions();
std::vector<OpDefinition> update_definitions();
std::vector<OpDefinition> power_definitions();
std::vector<OpDefinition> comparison_definitions();
std::vector<OpDefinition> bitwise_definitions();
std::vector<OpDefinition> unary_definitions();
std::vector<OpDefinition> activation_definitions();
std::vector<OpDefinition> activation_grad_definitions();
std::vector<OpDefinition> mask_definitions();
std::vector<OpDefinition> cast_definitions();
std::vector<OpDefinition> dropout_definitions();
std::vector<OpDefinition> random_uniform_definitions();
std::vector<OpDefinition> shaping_definitions();
std::vector<OpDefinition> depth_to_space_definitions();
std::vector<OpDefinition> slicing_definitions();
std::vector<OpDefinition> joining_definitions();
std::vector<OpDefinition> padding_definitions();
std::vector<OpDefinition> indexing_definitions();
std::vector<OpDefinition> indexing_elements_definitions();
std::vector<OpDefinition> indexing_nd_definitions();
std::vector<OpDefinition> resize_definitions();
std::vector<OpDefinition> reduction_definitions();
std::vector<OpDefinition> running_sum_definitions();
std::vector<OpDefinition> ranking_definitions();
std::vector<OpDefinition> collective_definitions();
std::vector<OpDefinition> shard_definitions();

}  // namespace plimsoll::ops
