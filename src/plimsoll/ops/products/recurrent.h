// One step of an LSTM or a GRU, as nodes: recurrent layers are unrolled, there is no loop in a
// graph.
//
//   for (Var x : steps) state = lstm_cell(x, state, weights);
//
// Weights lie as PyTorch has them: w_input [G*H,K], w_hidden [G*H,H], biases [G*H] (either may be
// absent), the gates one below the other: input, forget, cell, output for the LSTM; reset, update,
// new for the GRU.
//
//   lstm  i,f,o = sigmoid(...), g = tanh(...);  c' = f*c + i*g;  h' = o*tanh(c')
//   gru   r,z = sigmoid(...);  n = tanh(Wx + b + r*(Uh + b));  h' = (1-z)*n + z*h
#pragma once

#include "plimsoll/ops/builder.h"

namespace plimsoll::ops {

struct RecurrentWeights {
  Var w_input;
  Var w_hidden;
  Var b_input{};
  Var b_hidden{};
};

struct LstmState {
  Var h;
  Var c;
};
LstmState lstm_cell(Var x, LstmState state, const RecurrentWeights& weights);
Var gru_cell(Var x, Var h, const RecurrentWeights& weights);

}  // namespace plimsoll::ops
