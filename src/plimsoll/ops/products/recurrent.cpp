#include "plimsoll/ops/products/recurrent.h"

#include "plimsoll/ops/compose.h"
#include "plimsoll/ops/products/linear.h"

namespace plimsoll::ops {
namespace {

// Gate `index` of [batch, gates*H].
Var gate(Var gates, std::int64_t index, Var h) {
  const std::int64_t width = h.rank() == 2 ? h.dim(1) : 1;
  return slice(gates, 1, index * width, (index + 1) * width);
}

}  // namespace

LstmState lstm_cell(Var x, LstmState state, const RecurrentWeights& weights) {
  const Var gates = linear(x, weights.w_input, weights.b_input, {.trans_w = true}) +
                    linear(state.h, weights.w_hidden, weights.b_hidden, {.trans_w = true});
  const Var input = sigmoid(gate(gates, 0, state.h));
  const Var forget = sigmoid(gate(gates, 1, state.h));
  const Var cell = tanh(gate(gates, 2, state.h));
  const Var output = sigmoid(gate(gates, 3, state.h));
  const Var c = forget * state.c + input * cell;
  return {output * tanh(c), c};
}

Var gru_cell(Var x, Var h, const RecurrentWeights& weights) {
  const Var from_input = linear(x, weights.w_input, weights.b_input, {.trans_w = true});
  const Var from_hidden = linear(h, weights.w_hidden, weights.b_hidden, {.trans_w = true});
  const Var reset = sigmoid(gate(from_input, 0, h) + gate(from_hidden, 0, h));
  const Var update = sigmoid(gate(from_input, 1, h) + gate(from_hidden, 1, h));
  const Var fresh = tanh(gate(from_input, 2, h) + reset * gate(from_hidden, 2, h));
  return fresh + update * (h - fresh);
}

}  // namespace plimsoll::ops
