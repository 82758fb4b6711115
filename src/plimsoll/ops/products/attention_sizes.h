// The sizes of one attention, checked, and its reference loops. Internal to the attention
// definitions.
#pragma once

#include "plimsoll/ops/op_definition.h"

namespace plimsoll::ops {

// The lse of a row is stored in fp32, whose steps near this number are 1e-4: further out (rows that
// are hidden everywhere by -3.4e38, as exporters write masks, lose even log n) a gradient rebuilds
// a row's probabilities from its own scores.
inline constexpr double kFarLse = 1024;

struct AttentionSizes {
  std::int64_t batch = 0;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t rows = 0;     // Sq
  std::int64_t columns = 0;  // Sk
  std::int64_t width = 0;    // D, of a query and a key
  std::int64_t value_width = 0;
  double scale = 1;
  bool causal = false;

  std::int64_t kv_head(std::int64_t head) const { return head / (heads / kv_heads); }
  // Row i sees columns [0, visible(i)).
  std::int64_t visible(std::int64_t row) const {
    return causal ? std::max<std::int64_t>(row + columns - rows + 1, 0) : columns;
  }
  // Visible pairs of positions, over all batches and heads.
  double pairs() const;
  ir::Shape score_shape() const { return {batch, heads, rows, columns}; }
};

// Of attention's q, k, v at inputs first, first+1, first+2.
Result<AttentionSizes> attention_sizes(const Call& call, int first);
// Of attention_qkv's input.
Result<AttentionSizes> attention_qkv_sizes(const Call& call, int input);
// An absent mask passes.
Status expect_mask(const Call& call, int input, const AttentionSizes& sizes, ir::DType dtype);

// One head's vectors in a tensor [B,S,...]: `row` apart from position to position, `batch` from one
// batch to the next.
template <typename Number>
struct Heads {
  Number* data;
  std::int64_t batch;
  std::int64_t row;
  Number* at(std::int64_t b, std::int64_t position, std::int64_t offset) const {
    return data + b * batch + position * row + offset;
  }
};

struct AttentionInputs {
  Heads<const double> q, k, v;
  const Array* mask;  // null when absent
};
struct AttentionOutputs {
  Heads<double> y;
  double* lse;
};
void attend(const AttentionSizes& sizes, const AttentionInputs& in, const AttentionOutputs& out);

struct AttentionGradientInputs {
  AttentionInputs forward;
  Heads<const double> dy, y;
  const double* lse;
};
struct AttentionGradientOutputs {
  Heads<double> dq, dk, dv;
};
void attend_backward(const AttentionSizes& sizes, const AttentionGradientInputs& in,
                     const AttentionGradientOutputs& out);

}  // namespace plimsoll::ops
