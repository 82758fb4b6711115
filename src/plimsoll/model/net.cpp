#include "plimsoll/model/net.h"

#include "plimsoll/ops/functions.h"

namespace plimsoll::model {

Builder::Scope Net::scope(std::string_view name, std::int64_t index) {
  return builder_.scope(fmt::format("{}.{}", name, index));
}

Var Net::cast_to(Var x, ir::DType dtype) {
  if (x.dtype() == dtype || builder_.error()) return x;
  return ops::cast(x, dtype);
}

Var Net::input(std::string_view name, const ir::Shape& shape) {
  return computed(builder_.input(name, {options_.dtype, shape, {}}));
}

Var Net::tokens(std::string_view name, const ir::Shape& shape, std::int64_t count) {
  const ir::Init range{ir::Init::Kind::kUniform, 0, static_cast<double>(count)};
  return builder_.source(name, ir::ValueKind::kInput, {ir::DType::kI64, shape, {}}, range);
}

Var Net::weight(std::string_view name, const ir::Shape& shape, ir::Init init) {
  return computed(stored_weight(name, shape, init));
}

Var Net::stored_weight(std::string_view name, const ir::Shape& shape, ir::Init init) {
  return builder_.weight(name, {options_.dtype, shape, {}}, init);
}

Var Net::state(std::string_view name, const ir::Shape& shape, double start) {
  return builder_.source(name, ir::ValueKind::kState, {options_.dtype, shape, {}}, constant(start));
}

Var Net::dropout_counter() {
  if (!counter_) {
    std::string layer = builder_.layer();
    builder_.set_layer("");
    counter_ = builder_.source("dropout.counter", ir::ValueKind::kState, {ir::DType::kU64, {}, {}},
                               constant(0));
    builder_.set_layer(std::move(layer));
  }
  return counter_;
}

std::int64_t Net::next_dropout_seed() {
  // Seeds of neighbouring runs must not meet, whatever the number of dropouts.
  return static_cast<std::int64_t>(options_.seed * 0x9e3779b97f4a7c15ULL >> 1) + dropouts_++;
}

void Net::move_statistics_later(Var running_mean, Var running_var, Var mean, Var var,
                                double momentum, std::int64_t count) {
  statistics_.push_back({builder_.layer(), running_mean, running_var, mean, var, momentum, count});
}

bool Net::expect_rank(Var x, int rank, std::string_view layer) {
  if (builder_.error()) return false;
  if (x && x.rank() == rank) return true;
  builder_.fail(
      fmt::format("{}: input is {}, expects {} dimensions", layer, ir::to_string(x.shape()), rank));
  return false;
}

void Net::append_updates() {
  builder_.set_phase(ir::Phase::kUpdate);
  for (const PendingStatistics& pending : statistics_) {
    builder_.set_layer(pending.layer);
    const Var mean = cast_to(pending.mean, options_.dtype);
    const Var var = cast_to(pending.var, options_.dtype);
    const ops::RunningStatistics next = ops::batch_norm_update(
        {pending.running_mean, pending.running_var}, mean, var, pending.count, pending.momentum);
    builder_.update(pending.running_mean, next.mean);
    builder_.update(pending.running_var, next.var);
  }
  builder_.set_layer("");
  if (counter_) builder_.update(counter_, ops::increment(counter_));
  builder_.set_phase(ir::Phase::kForward);
}

Result<ir::Graph> Net::finish(Var logits) {
  if (!training()) return finish_with({logits});
  if (!builder_.error() && logits.rank() == 0) builder_.fail("logits are a scalar");
  if (builder_.error()) return finish_with({logits});
  const ir::Shape shape = logits.shape();
  const auto dims = shape.dims();
  const Var labels = tokens("labels", ir::Shape(dims.first(dims.size() - 1)), dims.back());
  return finish_with({ops::cross_entropy(cast_to(logits, options_.dtype), labels).loss});
}

Result<ir::Graph> Net::finish_with(std::initializer_list<Var> outputs) {
  append_updates();
  return builder_.finish(outputs);
}

}  // namespace plimsoll::model
