// LinearAttention: attention as a recurrence over a matrix of state, unrolled over the time steps
// like the other recurrences.
//
//   S = exp(g_t) S                    with a decay
//   u = beta_t (v_t - S^T k_t)        with a delta rule, else u = v_t
//   S = S + k_t u^T;  o_t = scale * q_t^T S
//
// Everything is computed in fp32 at least, and cast back.
#include <cmath>

#include "plimsoll/model/onnx/convert/building_blocks.h"
#include "plimsoll/model/onnx/convert/operator_table.h"

namespace plimsoll::model::onnx {
namespace {

using ir::DType;

constexpr std::int64_t kMostRounds = 4096;

struct Rule {
  bool gated = false;
  bool delta = false;
};

Result<Rule> rule_of(const std::string& name) {
  if (name == "linear") return Rule{};
  if (name == "gated") return Rule{true, false};
  if (name == "delta") return Rule{false, true};
  if (name == "gated_delta") return Rule{true, true};
  return bad_input("update_rule '{}' is unknown", name);
}

// [B, T, heads * D] as [B, T, heads, D], wide enough to compute in.
Result<Var> apart(Var x, std::int64_t heads, std::string_view what) {
  if (x.rank() != 3 || x.dim(2) % heads != 0)
    return bad_input("{} {} does not divide into {} heads", what, ir::to_string(x.shape()), heads);
  const Var wide = x.dtype() == DType::kF64 ? x : cast_to(x, DType::kF32);
  return reshape_to(wide, {x.dim(0), x.dim(1), heads, x.dim(2) / heads});
}

struct Steps {
  Rule rule;
  std::int64_t group = 1;  // query heads for each head of keys
  double scale = 1;
  Var q, k, v, decay, beta;  // [B, T, heads, D]
};

// One time step: S becomes the next state; the step's output [B, Hq, Dv].
Var step(const Steps& s, std::int64_t t, Var& state) {
  const auto column = [&](Var x) {
    const Var now = select(x, 1, t);
    return reshape_to(now, {now.dim(0), now.dim(1), now.dim(2), 1});
  };
  Builder& builder = state.builder();
  if (s.rule.gated) state = state * unary_call("exp", column(s.decay));
  const Var k = column(s.k);
  const Var v_now = select(s.v, 1, t);
  Var u = reshape_to(v_now, {v_now.dim(0), v_now.dim(1), 1, v_now.dim(2)});
  if (s.rule.delta)
    u = column(s.beta) * (u - builder.call1("matmul", {k, state}, {{"trans_a", std::int64_t{1}}}));
  state = state + k * u;
  // Query heads of a group read the same state: they are rows of one product.
  const Var q = select(s.q, 1, t);
  const Var rows = reshape_to(q, {q.dim(0), state.dim(1), s.group, q.dim(2)});
  const Var out = builder.call1("matmul", {rows, state}) * s.scale;
  return reshape_to(out, {q.dim(0), 1, q.dim(1) * state.dim(3)});
}

Result<Steps> steps_of(OperatorCall& call) {
  PLIMSOLL_RETURN_IF_ERROR(call.need({0, 1, 2}));
  Steps s;
  PLIMSOLL_TRY(s.rule, rule_of(call.text("update_rule", "gated_delta")));
  if (s.rule.gated != call.has(4) || s.rule.delta != call.has(5))
    return bad_input("decay and beta do not fit the update rule");
  const std::int64_t q_heads = call.integer("q_num_heads", 0);
  const std::int64_t heads = call.integer("kv_num_heads", 0);
  if (heads < 1 || q_heads < heads || q_heads % heads != 0)
    return bad_input("{} query heads do not share {} of keys", q_heads, heads);
  s.group = q_heads / heads;
  PLIMSOLL_TRY(s.q, apart(call.in(0), q_heads, "query"));
  PLIMSOLL_TRY(s.k, apart(call.in(1), heads, "key"));
  PLIMSOLL_TRY(s.v, apart(call.in(2), heads, "value"));
  const ir::Ints wanted{s.q.dim(0), s.q.dim(1), heads, s.q.dim(3)};
  if (dims_of(s.k.shape()) != wanted || s.v.dim(0) != wanted[0] || s.v.dim(1) != wanted[1]) {
    return bad_input("query, key and value do not fit each other");
  }
  if (s.rule.gated) {
    PLIMSOLL_TRY(s.decay, apart(call.in(4), heads, "decay"));
  }
  if (s.rule.delta) {
    const bool one_for_all = call.rank(5) == 3 && call.shape(5)[2] == 1;
    PLIMSOLL_TRY(s.beta, apart(call.in(5), one_for_all ? 1 : heads, "beta"));
  }
  for (const Var& x : {s.decay, s.beta}) {
    if (x && (x.dim(0) != wanted[0] || x.dim(1) != wanted[1]))
      return bad_input("decay or beta do not fit the query");
  }
  const double scale = call.real("scale", 0);
  s.scale =
      scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(wanted[3], 1)));
  return s;
}

Status linear_attention(OperatorCall& call) {
  PLIMSOLL_TRY(const Steps s, steps_of(call));
  if (call.builder().error()) return {};
  const std::int64_t rounds = s.q.dim(1);
  if (rounds < 1 || rounds > kMostRounds)
    return bad_input("has {} time steps, expects 1 to {}", rounds, kMostRounds);
  const ir::Ints shape{s.k.dim(0), s.k.dim(2), s.k.dim(3), s.v.dim(3)};
  Var state;
  if (call.has(3)) {
    if (dims_of(call.shape(3)) != shape)
      return bad_input("past_state is {}", ir::to_string(call.shape(3)));
    state = cast_to(call.in(3), s.q.dtype());
  } else {
    PLIMSOLL_TRY(const ir::Shape zeros, ir::Shape::make(shape));
    state = call.builder().fill({s.q.dtype(), zeros, {}}, 0);
  }
  std::vector<Var> outputs;
  for (std::int64_t t = 0; t < rounds; ++t) {
    outputs.push_back(step(s, t, state));
    if (call.builder().error()) return {};
  }
  call.out(0, cast_to(concat_all(outputs, 1), call.dtype(0)));
  call.out(1, cast_to(state, call.has(3) ? call.dtype(3) : call.dtype(0)));
  return {};
}

}  // namespace

std::vector<Operator> linear_attention_operators() {
  return {{"LinearAttention", linear_attention,
           "chunk_size kv_num_heads q_num_heads scale update_rule"}};
}

}  // namespace plimsoll::model::onnx
