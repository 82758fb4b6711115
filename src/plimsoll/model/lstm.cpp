// A stacked LSTM (weights as torch.nn.LSTM names them), unrolled over time: 50 features in, 5000
// classes out at every step, the setting of Chen et al. 2016. Every step of every layer is nodes of
// its own, so that the planner sees how long each of them lives.
#include <cmath>

#include "plimsoll/model/families.h"
#include "plimsoll/model/layers.h"
#include "plimsoll/ops/functions.h"

namespace plimsoll::model {
namespace {

constexpr std::int64_t kFeatures = 50;
// Of all layers: 1.2 million operators of a training step, some 4 GB as a graph.
constexpr std::int64_t kMostCells = 16384;

struct Cell {
  Var w_input, w_hidden, b_input, b_hidden;
  Var hidden, memory;  // absent before the first step: both are zero
};

Cell make_cell(Net& net, std::int64_t index, std::int64_t features, std::int64_t width) {
  const ir::Init init = uniform(1 / std::sqrt(static_cast<double>(width)));
  const auto weight = [&](const char* name, const ir::Shape& shape) {
    return net.weight(fmt::format("{}_l{}", name, index), shape, init);
  };
  Cell out;
  out.w_input = weight("weight_ih", {4 * width, features});
  out.w_hidden = weight("weight_hh", {4 * width, width});
  out.b_input = weight("bias_ih", {4 * width});
  out.b_hidden = weight("bias_hh", {4 * width});
  return out;
}

// One step. The zero state of the first step still goes through its bias, as in PyTorch.
Var advance(Cell& cell, Var x) {
  const auto product = [](Var data, Var weight, Var bias) {
    return ops::linear(data, weight, bias, {.trans_w = true});
  };
  Var gates = product(x, cell.w_input, cell.b_input);
  gates =
      gates + (cell.hidden ? product(cell.hidden, cell.w_hidden, cell.b_hidden) : cell.b_hidden);
  const std::int64_t width = cell.w_hidden.dim(1);
  const std::vector<Var> parts = split(gates, ir::Ints(4, width), 1);
  if (parts.size() != 4) return x;
  const Var input = sigmoid(parts[0]);
  const Var forget = sigmoid(parts[1]);
  const Var fresh = input * tanh(parts[2]);
  const Var output = sigmoid(parts[3]);
  cell.memory = cell.memory ? forget * cell.memory + fresh : fresh;
  cell.hidden = output * tanh(cell.memory);
  return cell.hidden;
}

}  // namespace

Result<ir::Graph> build_lstm(const std::string& name, const Sizes& sizes) {
  if (sizes.layers * sizes.seq > kMostCells)
    return fail(ErrorCode::kUsage,
                "{}: --seq {} with {} layers is unrolled into {} cells, and at most {} are built",
                name, sizes.seq, sizes.layers, sizes.layers * sizes.seq, kMostCells);
  Net net(name, net_options(sizes));
  const Var x = net.input("inputs", {sizes.batch, sizes.seq, kFeatures});
  std::vector<Cell> cells;
  {
    const auto scope = net.scope("lstm");
    for (std::int64_t i = 0; i < sizes.layers; ++i)
      cells.push_back(make_cell(net, i, i == 0 ? kFeatures : sizes.width, sizes.width));
  }
  std::vector<Var> tops;
  for (std::int64_t time = 0; time < sizes.seq; ++time) {
    Var h = squeeze(slice(x, 1, time, time + 1), 1);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const auto scope = net.scope(fmt::format("lstm.{}.{}", i, time));
      h = advance(cells[i], h);
    }
    tops.push_back(unsqueeze(h, 1));
  }
  const Var sequence = ops::concat(tops, 1);
  return net.finish(linear(net, "fc", sequence, sizes.classes));
}

}  // namespace plimsoll::model
