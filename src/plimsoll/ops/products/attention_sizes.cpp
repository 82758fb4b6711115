#include "plimsoll/ops/products/attention_sizes.h"

#include <cmath>
#include <limits>

#include "plimsoll/ops/definition/expect.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/products/dense.h"

namespace plimsoll::ops {
namespace {

Status read_options(const AttributeReader& attributes, AttentionSizes& sizes) {
  sizes.heads = attributes.integer("heads");
  sizes.kv_heads = attributes.integer("kv_heads", sizes.heads);
  sizes.causal = attributes.integer("causal") != 0;
  if (sizes.heads < 1) return bad_input("heads is {}, expects at least 1", sizes.heads);
  if (sizes.kv_heads < 1 || sizes.heads % sizes.kv_heads != 0) {
    return bad_input("kv_heads is {}, expects a divisor of the {} heads", sizes.kv_heads,
                     sizes.heads);
  }
  return {};
}

Status read_scale(const AttributeReader& attributes, AttentionSizes& sizes) {
  if (sizes.width < 1 || sizes.value_width < 1) return bad_input("heads have no features");
  sizes.scale = attributes.real("scale", 1.0 / std::sqrt(static_cast<double>(sizes.width)));
  if (!std::isfinite(sizes.scale))
    return bad_input("scale is {}, expects a finite number", sizes.scale);
  return {};
}

Status check_divides(std::string_view what, std::int64_t heads, std::int64_t extent) {
  if (extent % heads == 0) return {};
  return bad_input("{} has {} features, expects a multiple of {}", what, extent, heads);
}

// A row of scores of one head, over the columns it sees.
void score_row(const AttentionSizes& sizes, const AttentionInputs& in, std::int64_t b,
               std::int64_t head, std::int64_t row, std::vector<double>& scores) {
  const double* q = in.q.at(b, row, head * sizes.width);
  const std::int64_t key = sizes.kv_head(head) * sizes.width;
  scores.resize(static_cast<std::size_t>(sizes.visible(row)));
  for (std::size_t j = 0; j < scores.size(); ++j) {
    scores[j] = sizes.scale * dot(sizes.width, q, in.k.at(b, static_cast<std::int64_t>(j), key));
  }
  if (in.mask == nullptr) return;
  const auto strides = broadcast_strides(in.mask->type.shape, sizes.score_shape());
  const std::int64_t first = b * strides[0] + head * strides[1] + row * strides[2];
  for (std::size_t j = 0; j < scores.size(); ++j) {
    scores[j] += in.mask->reals.data()[first + static_cast<std::int64_t>(j) * strides[3]];
  }
}

// The scores become their exponentials relative to the largest; one that is NaN counts as the
// largest.
struct Exponentials {
  double largest;
  double sum;
};
Exponentials exponentiate(std::vector<double>& scores) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const double score : scores) {
    if (score > largest || score != score) largest = score;
  }
  if (largest == -std::numeric_limits<double>::infinity()) return {largest, 0};
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - largest);
  return {largest, sum};
}

// The scores become probabilities.
void probabilities(std::vector<double>& scores, double lse) {
  if (!(std::abs(lse) > kFarLse)) {
    for (double& score : scores) score = std::exp(score - lse);
    return;
  }
  const double sum = exponentiate(scores).sum;
  for (double& score : scores) score /= sum;
}

template <typename Body>
void for_each_row(const AttentionSizes& sizes, Body body) {
  for (std::int64_t b = 0; b < sizes.batch; ++b) {
    for (std::int64_t head = 0; head < sizes.heads; ++head) {
      for (std::int64_t row = 0; row < sizes.rows; ++row) {
        body(b, head, row, (b * sizes.heads + head) * sizes.rows + row);
      }
    }
  }
}

}  // namespace

double AttentionSizes::pairs() const {
  const auto sees = static_cast<double>(columns);
  const auto seeing = static_cast<double>(causal ? std::min(rows, columns) : rows);
  const double each = causal ? seeing * (2 * sees - seeing + 1) / 2 : seeing * sees;
  return static_cast<double>(batch) * static_cast<double>(heads) * each;
}

Result<AttentionSizes> attention_sizes(const Call& call, int first) {
  PLIMSOLL_RETURN_IF_ERROR(expect_float(call, first));
  AttentionSizes sizes;
  PLIMSOLL_RETURN_IF_ERROR(read_options(call.attributes(), sizes));
  for (int i = first; i < first + 3; ++i) {
    PLIMSOLL_RETURN_IF_ERROR(expect_rank(call, i, 3, 3));
    PLIMSOLL_RETURN_IF_ERROR(expect_dtype(call, i, call.type(first).dtype));
  }
  const ir::Shape& q = call.shape(first);
  const ir::Shape& k = call.shape(first + 1);
  const ir::Shape& v = call.shape(first + 2);
  PLIMSOLL_RETURN_IF_ERROR(check_divides("query", sizes.heads, q[2]));
  PLIMSOLL_RETURN_IF_ERROR(check_divides("value", sizes.kv_heads, v[2]));
  sizes.batch = q[0];
  sizes.rows = q[1];
  sizes.columns = k[1];
  sizes.width = q[2] / sizes.heads;
  sizes.value_width = v[2] / sizes.kv_heads;
  PLIMSOLL_RETURN_IF_ERROR(
      expect_shape(call, first + 1, {q[0], k[1], sizes.kv_heads * sizes.width}));
  PLIMSOLL_RETURN_IF_ERROR(expect_shape(call, first + 2, {q[0], k[1], v[2]}));
  PLIMSOLL_RETURN_IF_ERROR(read_scale(call.attributes(), sizes));
  return sizes;
}

Result<AttentionSizes> attention_qkv_sizes(const Call& call, int input) {
  PLIMSOLL_RETURN_IF_ERROR(expect_float(call, input));
  PLIMSOLL_RETURN_IF_ERROR(expect_rank(call, input, 3, 3));
  AttentionSizes sizes;
  PLIMSOLL_RETURN_IF_ERROR(read_options(call.attributes(), sizes));
  if (sizes.kv_heads != sizes.heads) return bad_input("takes no kv_heads");
  const ir::Shape& qkv = call.shape(input);
  if (qkv[2] % 3 != 0) return bad_input("input has {} features, expects a multiple of 3", qkv[2]);
  PLIMSOLL_RETURN_IF_ERROR(check_divides("query", sizes.heads, qkv[2] / 3));
  sizes.batch = qkv[0];
  sizes.rows = sizes.columns = qkv[1];
  sizes.width = sizes.value_width = qkv[2] / 3 / sizes.heads;
  PLIMSOLL_RETURN_IF_ERROR(read_scale(call.attributes(), sizes));
  return sizes;
}

Status expect_mask(const Call& call, int input, const AttentionSizes& sizes, ir::DType dtype) {
  if (!call.has(input)) return {};
  PLIMSOLL_RETURN_IF_ERROR(expect_own_or_wide(call, input, dtype));
  const ir::Shape scores = sizes.score_shape();
  const auto shape = ir::broadcast(call.shape(input), scores);
  if (shape && *shape == scores) return {};
  return bad_input("mask {} does not broadcast to {}", ir::to_string(call.shape(input)),
                   ir::to_string(scores));
}

void attend(const AttentionSizes& sizes, const AttentionInputs& in, const AttentionOutputs& out) {
  std::vector<double> scores;
  for_each_row(sizes, [&](std::int64_t b, std::int64_t head, std::int64_t row, std::int64_t index) {
    score_row(sizes, in, b, head, row, scores);
    const auto [largest, sum] = exponentiate(scores);
    const bool sees_nothing = largest == -std::numeric_limits<double>::infinity();
    out.lse[index] = sees_nothing ? largest : largest + std::log(sum);
    if (sees_nothing) return;
    double* y = out.y.at(b, row, head * sizes.value_width);
    for (std::size_t j = 0; j < scores.size(); ++j) {
      const double* v =
          in.v.at(b, static_cast<std::int64_t>(j), sizes.kv_head(head) * sizes.value_width);
      axpy(sizes.value_width, scores[j] / sum, v, y);
    }
  });
}

void attend_backward(const AttentionSizes& sizes, const AttentionGradientInputs& in,
                     const AttentionGradientOutputs& out) {
  std::vector<double> scores;
  for_each_row(sizes, [&](std::int64_t b, std::int64_t head, std::int64_t row, std::int64_t index) {
    const double lse = in.lse[index];
    if (lse == -std::numeric_limits<double>::infinity()) return;
    score_row(sizes, in.forward, b, head, row, scores);
    probabilities(scores, lse);
    const double* q = in.forward.q.at(b, row, head * sizes.width);
    const double* dy = in.dy.at(b, row, head * sizes.value_width);
    double* dq = out.dq.at(b, row, head * sizes.width);
    const double mean = dot(sizes.value_width, dy, in.y.at(b, row, head * sizes.value_width));
    const std::int64_t key = sizes.kv_head(head) * sizes.width;
    const std::int64_t value = sizes.kv_head(head) * sizes.value_width;
    for (std::size_t at = 0; at < scores.size(); ++at) {
      const auto j = static_cast<std::int64_t>(at);
      const double probability = scores[at];
      const double slope = dot(sizes.value_width, dy, in.forward.v.at(b, j, value)) - mean;
      const double dscore = sizes.scale * probability * slope;
      axpy(sizes.value_width, probability, dy, out.dv.at(b, j, value));
      axpy(sizes.width, dscore, in.forward.k.at(b, j, key), dq);
      axpy(sizes.width, dscore, q, out.dk.at(b, j, key));
    }
  });
}

}  // namespace plimsoll::ops
