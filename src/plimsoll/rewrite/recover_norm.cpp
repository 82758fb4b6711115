// Layer norm and rms norm from means and roots.
//
//   layer norm   c = x - mean(x);  y = c / sqrt(mean(c*c) + eps) * gamma + beta
//   rms norm                       y = x / sqrt(mean(x*x) + eps) * gamma
// over the last axis. The root is written as a division, a reciprocal or rsqrt.
#include "plimsoll/rewrite/pattern.h"
#include "plimsoll/rewrite/recover.h"

namespace plimsoll::rewrite {
namespace {

// a when value = a + eps, a >= 0 expected.
struct Variance {
  ValueId mean_square;
  double epsilon;
};

std::optional<Variance> variance_under_root(const GraphEditor& edit, ValueId root,
                                            std::string_view op) {
  const ir::Node* node = made_by(edit, root, op);
  if (node == nullptr) return std::nullopt;
  const auto sum = with_number(edit, node->inputs[0], "add");
  if (!sum || sum->number < 0 || sum->number > 1) return std::nullopt;
  return Variance{sum->other, sum->number};
}

// value = 1 / sqrt(variance + eps)
std::optional<Variance> inverse_root(const GraphEditor& edit, ValueId value) {
  if (auto direct = variance_under_root(edit, value, "rsqrt")) return direct;
  if (const ir::Node* reciprocal = made_by(edit, value, "reciprocal")) {
    return variance_under_root(edit, reciprocal->inputs[0], "sqrt");
  }
  if (const ir::Node* ratio = made_by(edit, value, "div");
      ratio != nullptr && is_number(edit, ratio->inputs[0], 1, 0)) {
    return variance_under_root(edit, ratio->inputs[1], "sqrt");
  }
  return std::nullopt;
}

struct Normalised {
  ValueId x;
  double epsilon = 0;
  bool centred = false;
};

// value = c / sqrt(mean(c*c) + eps)
std::optional<Normalised> normalised(const GraphEditor& edit, ValueId value) {
  ValueId c;
  std::optional<Variance> variance;
  if (const ir::Node* ratio = made_by(edit, value, "div")) {
    c = ratio->inputs[0];
    variance = variance_under_root(edit, ratio->inputs[1], "sqrt");
  } else if (const ir::Node* product = made_by(edit, value, "mul")) {
    for (std::size_t side = 0; side < 2 && !variance; ++side) {
      c = product->inputs[side];
      variance = inverse_root(edit, product->inputs[1 - side]);
    }
  }
  if (!variance) return std::nullopt;
  const auto square = last_mean_of(edit, variance->mean_square);
  if (!square || square_of(edit, *square) != c) return std::nullopt;
  if (const ir::Node* difference = made_by(edit, c, "sub")) {
    if (last_mean_of(edit, difference->inputs[1]) == difference->inputs[0]) {
      return Normalised{difference->inputs[0], variance->epsilon, true};
    }
  }
  return Normalised{c, variance->epsilon, false};
}

bool fits_last_axis(const GraphEditor& edit, ValueId parameter, ValueId x) {
  const ir::Shape& shape = edit.graph().value(x).type.shape;
  return shape.rank() > 0 &&
         edit.graph().value(parameter).type.shape == ir::Shape{shape[shape.rank() - 1]};
}

struct Scaled {
  Normalised inner;
  ValueId gamma;
};

std::optional<Scaled> scaled(const GraphEditor& edit, ValueId value) {
  const ir::Node* product = made_by(edit, value, "mul");
  if (product == nullptr) return std::nullopt;
  for (std::size_t side = 0; side < 2; ++side) {
    const auto inner = normalised(edit, product->inputs[side]);
    const ValueId gamma = product->inputs[1 - side];
    if (inner && fits_last_axis(edit, gamma, inner->x)) return Scaled{*inner, gamma};
  }
  return std::nullopt;
}

Result<bool> recover_norm(GraphEditor& edit, NodeId id) {
  const ir::Node node = edit.graph().node(id);
  const ValueId y = node.outputs.front();
  if (node.op == "add") {
    for (std::size_t side = 0; side < 2; ++side) {
      const auto part = scaled(edit, node.inputs[side]);
      const ValueId beta = node.inputs[1 - side];
      if (!part || !part->inner.centred || !fits_last_axis(edit, beta, part->inner.x)) continue;
      PLIMSOLL_TRY(const auto made,
                   edit.insert(id, "layer_norm", {part->inner.x, part->gamma, beta},
                               {{"axis", std::int64_t{-1}}, {"epsilon", part->inner.epsilon}}));
      edit.replace(y, made[0]);
      return true;
    }
  }
  const auto part = scaled(edit, y);
  if (!part) return false;
  // A beta may follow; then the whole is found at the add.
  if (part->inner.centred && edit.has_one_reader(y)) {
    const ir::Node& reader = edit.graph().node(edit.readers(y).front());
    if (reader.op == "add" &&
        (fits_last_axis(edit, reader.inputs[0], y) || fits_last_axis(edit, reader.inputs[1], y)))
      return false;
  }
  const std::string_view op = part->inner.centred ? "layer_norm" : "rms_norm";
  PLIMSOLL_TRY(const auto made,
               edit.insert(id, op, {part->inner.x, part->gamma},
                           {{"axis", std::int64_t{-1}}, {"epsilon", part->inner.epsilon}}));
  edit.replace(y, made[0]);
  return true;
}

}  // namespace

Result<int> recover_norms(GraphEditor& edit) {
  int changes = 0;
  for (std::size_t n = 0; n < edit.original_nodes(); ++n) {
    const NodeId id(n);
    const ValueId y = edit.graph().node(id).outputs.front();
    if (edit.readers(y).empty() && !edit.is_output(y)) continue;
    PLIMSOLL_TRY(const bool changed, recover_norm(edit, id));
    changes += changed ? 1 : 0;
  }
  return changes;
}

}  // namespace plimsoll::rewrite
