// The families of cards, one function each; catalogue.cpp puts them together.
#pragma once

#include <vector>

#include "plimsoll/ops/card.h"

namespace plimsoll::ops {

std::vector<Card> binary_cards();
std::vector<Card> matmul_cards();
std::vector<Card> linear_cards();
std::vector<Card> conv_cards();
std::vector<Card> attention_cards();
std::vector<Card> batch_norm_cards();
std::vector<Card> layer_norm_cards();
std::vector<Card> group_norm_cards();
std::vector<Card> lrn_cards();
std::vector<Card> softmax_cards();
std::vector<Card> loss_cards();
std::vector<Card> add_relu_cards();
std::vector<Card> pool_cards();
std::vector<Card> update_cards();
std::vector<Card> power_cards();
std::vector<Card> comparison_cards();
std::vector<Card> bitwise_cards();
std::vector<Card> unary_cards();
std::vector<Card> activation_cards();
std::vector<Card> activation_grad_cards();
std::vector<Card> mask_cards();
std::vector<Card> cast_cards();
std::vector<Card> dropout_cards();
std::vector<Card> shaping_cards();
std::vector<Card> depth_to_space_cards();
std::vector<Card> slicing_cards();
std::vector<Card> joining_cards();
std::vector<Card> padding_cards();
std::vector<Card> indexing_cards();
std::vector<Card> indexing_elements_cards();
std::vector<Card> indexing_nd_cards();
std::vector<Card> resize_cards();
std::vector<Card> reduction_cards();
std::vector<Card> running_sum_cards();
std::vector<Card> ranking_cards();

}  // namespace plimsoll::ops
