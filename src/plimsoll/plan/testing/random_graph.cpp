#include "plimsoll/plan/testing/random_graph.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "plimsoll/base/random.h"
#include "plimsoll/ops/builder.h"
#include "plimsoll/ops/functions.h"

namespace plimsoll::plan {
namespace {

using ops::Var;

class Grower {
 public:
  explicit Grower(std::uint64_t seed) : random_(seed), builder_(fmt::format("random-{}", seed)) {
    const std::int64_t inputs = random_.between(1, 3);
    for (std::int64_t i = 0; i < inputs; ++i)
      pool_.push_back(builder_.input(fmt::format("x{}", i), {ir::DType::kF32, some_shape()}));
  }

  ir::Graph grow(int nodes) {
    while (static_cast<int>(builder_.graph().nodes.size()) < nodes) add_something();
    std::vector<Var> outputs;
    const std::int64_t wanted = random_.between(1, 3);
    for (std::int64_t i = 0; i < wanted; ++i) {
      const Var output = made_[index(made_.size())];
      const bool fresh = std::none_of(outputs.begin(), outputs.end(),
                                      [&](Var other) { return other.id() == output.id(); });
      if (fresh) outputs.push_back(output);
    }
    auto graph = builder_.finish(outputs);
    PLIMSOLL_CHECK(graph.has_value(), "the generator made a wrong graph: {}",
                   graph.error().message);
    return *std::move(graph);
  }

 private:
  // Rows of 16 and 32 floats are whole multiples of the alignment, rows of 5 are not.
  ir::Shape some_shape() {
    constexpr std::int64_t kColumns[] = {16, 32, 5};
    return {random_.between(1, 6), kColumns[random_.below(3)]};
  }

  std::size_t index(std::size_t size) {
    return static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(size)));
  }

  // Mostly something recent, so that chains grow.
  Var pick() {
    if (random_.chance(0.5))
      return pool_[pool_.size() - 1 - index(std::min<std::size_t>(pool_.size(), 3))];
    return pool_[index(pool_.size())];
  }

  void keep(Var var) {
    pool_.push_back(var);
    made_.push_back(var);
  }

  void add_something() {
    const std::int64_t dice = random_.below(100);
    if (dice < 30) return add_unary();
    if (dice < 50) return add_binary();
    if (dice < 70) return add_view();
    if (dice < 80) return add_copy();
    if (dice < 90) return add_weighted();
    if (dice < 95) return add_layer_norm();
    add_update();
  }

  void add_unary() {
    const Var x = pick();
    switch (random_.below(6)) {
      case 0:
        return keep(relu(x));
      case 1:
        return keep(tanh(x));
      case 2:
        return keep(neg(x));
      case 3:
        return keep(sigmoid(x));
      case 4:
        return keep(softmax(x));
      default:
        return keep(reduce_sum(x, {0}, true));
    }
  }

  void add_binary() {
    const Var a = pick();
    std::vector<Var> fitting;
    std::copy_if(pool_.begin(), pool_.end(), std::back_inserter(fitting), [&](Var b) {
      return b.dim(1) == a.dim(1) && (b.dim(0) == a.dim(0) || b.dim(0) == 1);
    });
    const Var b = fitting[index(fitting.size())];
    switch (random_.below(3)) {
      case 0:
        return keep(a + b);
      case 1:
        return keep(a * b);
      default:
        return keep(a - b);
    }
  }

  void add_view() {
    const Var x = pick();
    const std::int64_t rows = x.dim(0);
    if (random_.chance(0.3) || rows == 1)
      return keep(reshape(
          x, rows % 2 == 0 ? ir::Shape{rows / 2, x.dim(1) * 2} : ir::Shape{rows, x.dim(1)}));
    const std::int64_t cut = random_.between(1, rows - 1);
    if (random_.chance(0.5)) return keep(slice(x, 0, cut, rows));
    for (const Var part : split(x, {cut, rows - cut}, 0)) keep(part);
  }

  void add_copy() {
    const Var x = pick();
    switch (random_.below(4)) {
      case 0:
        return keep(x.dim(0) <= 8 && x.dim(1) <= 64 ? transpose(x, {1, 0}) : relu(x));
      case 1:
        return keep(x.dim(0) <= 24 ? ops::concat({x, x.dim(1) == pool_[0].dim(1) ? pool_[0] : x}, 0)
                                   : tanh(x));
      case 2:
        return keep(x.dim(1) > 1 ? slice(x, 1, 1, x.dim(1)) : neg(x));
      default: {
        const Var part = slice(x, 0, 0, 1);
        keep(part);
        return keep(slice_assign(x, tanh(part), {{x.dim(0) - 1, 0}, {x.dim(0), x.dim(1)}, {}}));
      }
    }
  }

  Var add_weight(ir::Shape shape) {
    const Var weight =
        builder_.weight(fmt::format("w{}", sources_++), {ir::DType::kF32, std::move(shape)},
                        {ir::Init::Kind::kNormal, 0, 0.3});
    weights_.push_back(weight);
    return weight;
  }

  void add_weighted() {
    const Var x = pick();
    if (random_.chance(0.5)) return keep(matmul(x, add_weight({x.dim(1), 16})));
    keep(x * (weights_.empty() || random_.chance(0.7) || weights_.back().shape() != x.shape()
                  ? add_weight(x.shape())
                  : weights_.back()));
  }

  void add_layer_norm() {
    const Var x = pick();
    const Var gamma = builder_.weight(fmt::format("w{}", sources_++), {ir::DType::kF32, {x.dim(1)}},
                                      {ir::Init::Kind::kConstant, 1, 0});
    const Var beta = builder_.weight(fmt::format("w{}", sources_++), {ir::DType::kF32, {x.dim(1)}},
                                     {ir::Init::Kind::kConstant, 0, 0});
    const ops::LayerNorm out = layer_norm(x, gamma, beta);
    keep(out.y);
    if (out.mean.rank() == 2) keep(out.mean);
  }

  // Some weight's next version; nothing reads the weight afterwards.
  void add_update() {
    if (weights_.empty()) return add_unary();
    const std::size_t which = index(weights_.size());
    const Var weight = weights_[which];
    std::vector<Var> fitting;
    std::copy_if(pool_.begin(), pool_.end(), std::back_inserter(fitting),
                 [&](Var g) { return g.shape() == weight.shape(); });
    if (fitting.empty()) return add_unary();
    weights_.erase(weights_.begin() + static_cast<std::ptrdiff_t>(which));
    const Var gradient = fitting[index(fitting.size())];
    const ops::UpdateOptions how{.lr = 0.1};
    builder_.set_phase(ir::Phase::kUpdate);
    if (random_.chance(0.5)) {
      builder_.update(weight, sgd(weight, gradient, how).w);
    } else {
      const Var m = builder_.source(fmt::format("m{}", sources_++), ir::ValueKind::kOptimizer,
                                    weight.type(), {ir::Init::Kind::kConstant, 0, 0});
      const ops::Updated next = momentum(weight, gradient, m, how);
      builder_.update(weight, next.w);
      builder_.update(m, next.m);
    }
    builder_.set_phase(ir::Phase::kForward);
  }

  Random random_;
  ops::Builder builder_;
  std::vector<Var> pool_;
  std::vector<Var> made_;     // of the pool, what nodes made
  std::vector<Var> weights_;  // not yet updated
  int sources_ = 0;
};

}  // namespace

ir::Graph random_graph(std::uint64_t seed, int nodes) {
  return Grower(seed).grow(nodes);
}

}  // namespace plimsoll::plan
