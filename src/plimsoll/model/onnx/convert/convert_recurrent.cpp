// RNN, GRU and LSTM, unrolled over the time steps.
//
// With the number of steps known, a recurrent layer is ordinary operators: the input's part of all
// gates is one product for all steps, then each step adds the state's part and goes through the
// activations. So planning, recomputing and training need to know nothing of recurrence.
//
//   ONNX's order of gates   RNN i   GRU z r h   LSTM i o f c
#include <algorithm>
#include <functional>

#include "plimsoll/model/onnx/convert/building_blocks.h"
#include "plimsoll/model/onnx/convert/operator_table.h"

namespace plimsoll::model::onnx {
namespace {

using ir::DType;
using Activation = std::function<Var(Var)>;

Result<Activation> activation_of(std::string name, double alpha, double beta, bool has_alpha,
                                 bool has_beta) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  const auto plain = [](std::string op) { return [op](Var x) { return unary_call(op, x); }; };
  const auto with = [](std::string op, ir::Attributes attributes) {
    return [op, attributes](Var x) { return x.builder().call1(op, {x}, attributes); };
  };
  for (const char* op : {"sigmoid", "tanh", "relu", "softsign", "softplus"}) {
    if (name == op) return plain(op);
  }
  if (name == "leakyrelu") return with("leaky_relu", {{"alpha", has_alpha ? alpha : 0.01}});
  if (name == "elu") return with("elu", {{"alpha", has_alpha ? alpha : 1.0}});
  if (name == "thresholdedrelu")
    return with("thresholded_relu", {{"alpha", has_alpha ? alpha : 1.0}});
  if (name == "hardsigmoid") {
    return with("hard_sigmoid",
                {{"alpha", has_alpha ? alpha : 0.2}, {"beta", has_beta ? beta : 0.5}});
  }
  if (name == "affine") {
    const double scale = has_alpha ? alpha : 1.0;
    return [scale, beta](Var x) { return x * scale + beta; };
  }
  if (name == "scaledtanh")
    return [alpha, beta](Var x) { return unary_call("tanh", x * beta) * alpha; };
  return bad_input("activation '{}' is unknown", name);
}

struct Recurrence {
  int gates = 1;
  std::int64_t steps = 0;
  std::int64_t batch = 0;
  std::int64_t hidden = 0;
  double clip = 0;  // 0: none
  bool input_forget = false;
  bool linear_before_reset = false;
  Var lengths;  // [batch, 1], absent when all sequences are whole
};

// One direction's weights, already without the axis of directions.
struct RecurrentDirection {
  Var w;  // [gates * hidden, input]
  Var r;  // [gates * hidden, hidden]
  Var bias_w;
  Var bias_r;
  Var peephole;
  Var h;
  Var c;
  std::vector<Activation> activations;
  bool backwards = false;
};

struct Results {
  std::vector<Var> outputs;  // by time
  Var h;
  Var c;
};

Var product(Var x, Var w, Var bias) {
  return x.builder().call1("linear", {x, w, bias}, {{"trans_w", std::int64_t{1}}});
}

class Unroller {
 public:
  Unroller(const Recurrence& recurrence, const RecurrentDirection& direction)
      : r_(recurrence), d_(direction) {}

  Results run(Var x) {
    // [steps * batch, input] through the input's weights at once.
    const Var flat = reshape_to(x, {r_.steps * r_.batch, x.dim(2)});
    const Var all =
        reshape_to(product(flat, d_.w, d_.bias_w), {r_.steps, r_.batch, r_.gates * r_.hidden});
    Results out;
    out.outputs.resize(static_cast<std::size_t>(r_.steps));
    out.h = d_.h;
    out.c = d_.c;
    for (std::int64_t i = 0; i < r_.steps; ++i) {
      const std::int64_t t = d_.backwards ? r_.steps - 1 - i : i;
      const Var before_h = out.h;
      const Var before_c = out.c;
      step(select(all, 0, t), out);
      Var visible = out.h;
      if (r_.lengths) {
        Builder& builder = out.h.builder();
        const Var inside =
            builder.call1("less", {ops::number(r_.lengths, static_cast<double>(t)), r_.lengths});
        visible = builder.call1("where", {inside, out.h, ops::number(out.h, 0)});
        out.h = builder.call1("where", {inside, out.h, before_h});
        if (out.c) out.c = builder.call1("where", {inside, out.c, before_c});
      }
      out.outputs[static_cast<std::size_t>(t)] = visible;
    }
    return out;
  }

 private:
  Var clipped(Var x) const {
    return r_.clip > 0 ? x.builder().call1("clip", {x}, {{"min", -r_.clip}, {"max", r_.clip}}) : x;
  }
  Var gate(Var all, int index) const {
    return slice_axis(all, 1, index * r_.hidden, (index + 1) * r_.hidden);
  }
  Var peek(int index) const {
    return slice_axis(d_.peephole, 0, index * r_.hidden, (index + 1) * r_.hidden);
  }
  Var act(int index, Var x) const {
    return d_.activations[static_cast<std::size_t>(index)](clipped(x));
  }

  void step(Var from_x, Results& state) const {
    if (r_.gates == 1) {
      state.h = act(0, from_x + product(state.h, d_.r, d_.bias_r));
    } else if (r_.gates == 3) {
      gru(from_x, state);
    } else {
      lstm(from_x, state);
    }
  }

  void gru(Var from_x, Results& state) const {
    const std::int64_t two = 2 * r_.hidden;
    const auto rows = [&](Var v, std::int64_t begin, std::int64_t end) {
      return v ? slice_axis(v, 0, begin, end) : v;
    };
    const Var zr = slice_axis(from_x, 1, 0, two) +
                   product(state.h, rows(d_.r, 0, two), rows(d_.bias_r, 0, two));
    const Var z = act(0, slice_axis(zr, 1, 0, r_.hidden));
    const Var reset = act(0, slice_axis(zr, 1, r_.hidden, two));
    const Var rh = rows(d_.r, two, 3 * r_.hidden);
    const Var bias_h = rows(d_.bias_r, two, 3 * r_.hidden);
    Var candidate = gate(from_x, 2);
    if (r_.linear_before_reset) {
      candidate = candidate + reset * product(state.h, rh, bias_h);
    } else {
      candidate = candidate + product(reset * state.h, rh, bias_h);
    }
    candidate = act(1, candidate);
    state.h = (1.0 - z) * candidate + z * state.h;
  }

  void lstm(Var from_x, Results& state) const {
    const Var all = from_x + product(state.h, d_.r, d_.bias_r);
    Var i = gate(all, 0);
    Var o = gate(all, 1);
    Var f = gate(all, 2);
    if (d_.peephole) {
      i = i + peek(0) * state.c;
      f = f + peek(2) * state.c;
    }
    i = act(0, i);
    f = r_.input_forget ? 1.0 - i : act(0, f);
    state.c = f * state.c + i * act(1, gate(all, 3));
    if (d_.peephole) o = o + peek(1) * state.c;
    state.h = act(0, o) * d_.activations[2](state.c);
  }

  const Recurrence& r_;
  const RecurrentDirection& d_;
};

Result<std::vector<Activation>> activations_of(OperatorCall& call, int gates, int directions) {
  std::vector<std::string> names;
  if (const auto* given = call.attribute("activations"); given != nullptr) {
    for (const std::string_view name : given->strings) names.emplace_back(name);
  }
  const int per_direction = gates == 1 ? 1 : gates == 3 ? 2 : 3;
  if (names.empty()) {
    for (int d = 0; d < directions; ++d) {
      if (gates == 1) names.insert(names.end(), {"Tanh"});
      if (gates == 3) names.insert(names.end(), {"Sigmoid", "Tanh"});
      if (gates == 4) names.insert(names.end(), {"Sigmoid", "Tanh", "Tanh"});
    }
  }
  if (static_cast<int>(names.size()) != per_direction * directions) {
    return bad_input("has {} activations, expects {}", names.size(), per_direction * directions);
  }
  const auto* alphas = call.attribute("activation_alpha");
  const auto* betas = call.attribute("activation_beta");
  std::vector<Activation> out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool has_alpha = alphas != nullptr && i < alphas->floats.size();
    const bool has_beta = betas != nullptr && i < betas->floats.size();
    PLIMSOLL_TRY(
        Activation activation,
        activation_of(names[i], has_alpha ? static_cast<double>(alphas->floats[i]) : 0.0,
                      has_beta ? static_cast<double>(betas->floats[i]) : 0.0, has_alpha, has_beta));
    out.push_back(std::move(activation));
  }
  return out;
}

// Absent when every sequence is known to be whole.
Var lengths_of(OperatorCall& call, const Recurrence& r) {
  if (!call.has(4)) return {};
  const Array* known = call.known(4);
  if (known != nullptr && std::all_of(known->integers.begin(), known->integers.end(),
                                      [&](std::int64_t n) { return n >= r.steps; })) {
    return {};
  }
  return reshape_to(cast_to(call.in(4), DType::kI64), {r.batch, 1});
}

Result<Recurrence> recurrence_of(OperatorCall& call, const Var& x, int gates, int directions) {
  Recurrence r;
  r.gates = gates;
  r.steps = x.dim(0);
  r.batch = x.dim(1);
  if (!call.has(1) || !call.has(2) || call.rank(1) != 3 || call.rank(2) != 3)
    return bad_input("its weights are not of rank 3");
  r.hidden = call.shape(2)[2];
  if (call.has_attribute("hidden_size") && call.integer("hidden_size", 0) != r.hidden) {
    return bad_input("hidden_size differs from the weights' {}", r.hidden);
  }
  if (r.hidden < 1 || r.hidden > (1LL << 24))
    return bad_input("a hidden size of {} makes no sense", r.hidden);
  if (call.shape(1) != ir::Shape{directions, gates * r.hidden, x.dim(2)} ||
      call.shape(2) != ir::Shape{directions, gates * r.hidden, r.hidden}) {
    return bad_input("its weights {} and {} do not fit", ir::to_string(call.shape(1)),
                     ir::to_string(call.shape(2)));
  }
  for (const int state : {5, 6}) {
    if (call.has(state) && (call.rank(state) != 3 || call.shape(state)[2] != r.hidden)) {
      return bad_input("its initial state {} does not fit a hidden size of {}",
                       ir::to_string(call.shape(state)), r.hidden);
    }
  }
  if (r.steps > 4096) return bad_input("{} time steps are too many to unroll", r.steps);
  r.clip = call.real("clip", 0);
  r.input_forget = call.integer("input_forget", 0) != 0;
  r.linear_before_reset = call.integer("linear_before_reset", 0) != 0;
  r.lengths = lengths_of(call, r);
  return r;
}

RecurrentDirection direction_of(OperatorCall& call, const Recurrence& r, int index, bool backwards,
                                bool batch_first) {
  RecurrentDirection d;
  d.backwards = backwards;
  const auto of = [&](int input) { return select(call.in(input), 0, index); };
  d.w = of(1);
  d.r = of(2);
  const std::int64_t width = r.gates * r.hidden;
  if (call.has(3)) {
    const Var bias = of(3);
    d.bias_w = slice_axis(bias, 0, 0, width);
    d.bias_r = slice_axis(bias, 0, width, 2 * width);
  }
  const ir::TensorType state{call.dtype(0), {r.batch, r.hidden}, {}};
  const auto initial = [&](int input) {
    if (!call.has(input)) return call.builder().fill(state, 0);
    return select(batch_first ? transpose_by(call.in(input), {1, 0, 2}) : call.in(input), 0, index);
  };
  d.h = initial(5);
  if (r.gates == 4) {
    d.c = initial(6);
    if (call.has(7)) d.peephole = of(7);
  }
  return d;
}

Status recurrent(OperatorCall& call, int gates) {
  const bool batch_first = call.integer("layout", 0) != 0;
  const std::string direction = call.text("direction", "forward");
  const int directions = direction == "bidirectional" ? 2 : 1;
  Var x = call.in(0);
  if (!x || x.rank() != 3) return bad_input("its input is not of rank 3");
  if (batch_first) x = transpose_by(x, {1, 0, 2});
  PLIMSOLL_TRY(const Recurrence r, recurrence_of(call, x, gates, directions));
  PLIMSOLL_TRY(const std::vector<Activation> activations, activations_of(call, gates, directions));
  const std::size_t per_direction = activations.size() / static_cast<std::size_t>(directions);
  std::vector<Var> sequences;
  std::vector<Var> last_h;
  std::vector<Var> last_c;
  for (int i = 0; i < directions; ++i) {
    RecurrentDirection d = direction_of(call, r, i, direction == "reverse" || i == 1, batch_first);
    const auto first = activations.begin() + static_cast<std::ptrdiff_t>(per_direction) * i;
    d.activations.assign(first, first + static_cast<std::ptrdiff_t>(per_direction));
    if (call.builder().error()) return {};
    Results made = Unroller(r, d).run(x);
    for (Var& y : made.outputs) y = reshape_to(y, {1, 1, r.batch, r.hidden});
    if (call.wants(0) && !made.outputs.empty()) sequences.push_back(concat_all(made.outputs, 0));
    last_h.push_back(reshape_to(made.h, {1, r.batch, r.hidden}));
    if (made.c) last_c.push_back(reshape_to(made.c, {1, r.batch, r.hidden}));
  }
  if (!sequences.empty()) {
    const Var y = concat_all(sequences, 1);
    call.out(0, batch_first ? transpose_by(y, {2, 0, 1, 3}) : y);
  }
  const auto state = [&](const std::vector<Var>& parts) {
    const Var y = concat_all(parts, 0);
    return batch_first ? transpose_by(y, {1, 0, 2}) : y;
  };
  call.out(1, state(last_h));
  if (gates == 4) call.out(2, state(last_c));
  return {};
}

Status rnn(OperatorCall& call) {
  return recurrent(call, 1);
}
Status gru(OperatorCall& call) {
  return recurrent(call, 3);
}
Status lstm(OperatorCall& call) {
  return recurrent(call, 4);
}

}  // namespace

std::vector<Operator> recurrent_operators() {
  return {{"RNN", rnn,
           "activation_alpha activation_beta activations clip direction hidden_size layout "
           "output_sequence"},
          {"GRU", gru,
           "activation_alpha activation_beta activations clip direction hidden_size layout "
           "linear_before_reset output_sequence"},
          {"LSTM", lstm,
           "activation_alpha activation_beta activations clip direction hidden_size input_forget "
           "layout output_sequence"}};
}

}  // namespace plimsoll::model::onnx
