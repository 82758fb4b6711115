// The families of cards, one function each; catalogue.cpp puts them together.
#pragma once

#include <vector>

#include "plimsoll/ops/card.h"

namespace plimsoll::ops {

std::vector<Card> binary_cards();

}  // namespace plimsoll::ops
