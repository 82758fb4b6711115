// Reference numbers: tools/references/nn_operators.py.
#include "plimsoll/ops/products/recurrent.h"

#include "plimsoll/ops/testing/wave.h"

namespace plimsoll::ops {
namespace {

// Weights, state and input of a cell with three inputs and four units, as sources.
struct Cell {
  Builder builder{"cell"};
  std::unordered_map<std::string, Array> sources;

  Var source(const std::string& name, const ir::Shape& shape, double phase) {
    sources[name] = wave(shape, phase);
    return builder.input(name, sources[name].type);
  }
  RecurrentWeights weights(std::int64_t gates) {
    return {source("w_input", {gates * 4, 3}, 0.1), source("w_hidden", {gates * 4, 4}, 0.2),
            source("b_input", {gates * 4}, 0.3), source("b_hidden", {gates * 4}, 0.4)};
  }
  Array value_of(Var result) {
    const auto graph = builder.finish({result});
    EXPECT_TRUE(graph.has_value());
    const auto values = interpret(*graph, sources);
    EXPECT_TRUE(values.has_value());
    return *(*values)[result.id().index()];
  }
};

TEST(Recurrent, LstmCellAgreesWithPyTorch) {
  for (const bool cell_state : {false, true}) {
    Cell cell;
    const LstmState state{cell.source("h", {2, 4}, 0.5), cell.source("c", {2, 4}, 1.0)};
    const LstmState next = lstm_cell(cell.source("x", {2, 3}, 0.0), state, cell.weights(4));
    if (cell_state) {
      expect_fingerprint(cell.value_of(next.c), {0.378699157197114, -1.01373009851794});
    } else {
      expect_fingerprint(cell.value_of(next.h), {0.477340103771398, -0.613623068682437});
    }
  }
}

TEST(Recurrent, GruCellAgreesWithPyTorch) {
  Cell cell;
  const Var h = cell.source("h", {2, 4}, 0.5);
  const Var next = gru_cell(cell.source("x", {2, 3}, 0.0), h, cell.weights(3));
  expect_fingerprint(cell.value_of(next), {2.00250898262237, -2.82016389145234});
}

TEST(Recurrent, WrongShapesAreReportedAtTheEnd) {
  Cell cell;
  const Var h = cell.source("h", {2, 5}, 0.5);
  const Var next = gru_cell(cell.source("x", {2, 3}, 0.0), h, cell.weights(3));
  EXPECT_FALSE(cell.builder.finish({next}).has_value());
}

}  // namespace
}  // namespace plimsoll::ops
