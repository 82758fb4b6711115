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

}  // namespace plimsoll::ops
