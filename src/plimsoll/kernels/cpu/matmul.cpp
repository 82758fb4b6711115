// matmul, linear and linear_grad_weight: oneDNN's matrix products on plain row-major operands, a
// transposed one described by its strides (no copy). A linear layer of many rows is one product for
// every ops::kProductGranule of them.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "plimsoll/base/checked.h"
#include "plimsoll/kernels/cpu/column_sums.h"
#include "plimsoll/kernels/cpu/onednn.h"
#include "plimsoll/kernels/cpu/table.h"

namespace plimsoll::kernels {
namespace {

using Dims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;

bool is_product_dtype(ir::DType dtype) {
  return dtype == ir::DType::kF32 || dtype == ir::DType::kBF16;
}

bool one_product_dtype(const Site& site) {
  const ir::DType dtype = site.out().dtype;
  if (!is_product_dtype(dtype) || !all_row_major(site)) return false;
  for (int i = 0; i < site.inputs(); ++i) {
    if (site.has(i) && (site.in(i).dtype != dtype || site.in(i).shape.elements() == 0))
      return false;
  }
  return site.out().shape.elements() > 0;
}

// The last two axes of a row-major tensor as a matrix, after batch dims padded with ones to `rank`.
Desc operand(const ir::TensorType& type, int rank, bool transposed) {
  Dims dims(static_cast<std::size_t>(rank), 1);
  Dims strides(static_cast<std::size_t>(rank), 1);
  std::int64_t stride = 1;
  for (int back = 1; back <= rank; ++back) {
    const auto place = static_cast<std::size_t>(rank - back);
    const int axis = type.shape.rank() - back;
    dims[place] = axis >= 0 ? type.shape[axis] : 1;
    strides[place] = stride;
    stride *= dims[place];
  }
  if (transposed) {
    std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
    std::swap(strides[dims.size() - 1], strides[dims.size() - 2]);
  }
  return describe(type.dtype, dims, strides);
}

dnnl::matmul::primitive_desc product(const Desc& a, const Desc& b, const Desc& y) {
  return preferred(dnnl::matmul::primitive_desc(dnnl::matmul::desc(a, b, y), user_scratchpad(),
                                                onednn_engine()));
}

dnnl::matmul::primitive_desc product(const Desc& a, const Desc& b, const Desc& bias,
                                     const Desc& y) {
  return preferred(dnnl::matmul::primitive_desc(dnnl::matmul::desc(a, b, bias, y),
                                                user_scratchpad(), onednn_engine()));
}

// A tensor [..., K] as a matrix of rows.
ir::TensorType as_rows(const ir::TensorType& type) {
  const std::int64_t last = type.shape[type.shape.rank() - 1];
  return {type.dtype, {type.shape.elements(0, type.shape.rank() - 1), last}, {}};
}

// A product of one batch has its batch axes dropped: oneDNN's best kernels are for two and three
// axes.
ir::TensorType with_batch_folded(const ir::TensorType& type) {
  const int rank = type.shape.rank();
  if (rank <= 3) return type;
  return {type.dtype,
          {type.shape.elements(0, rank - 2), type.shape[rank - 2], type.shape[rank - 1]},
          {}};
}

bool same_batch(const ir::Shape& a, const ir::Shape& b) {
  if (a.rank() != b.rank()) return false;
  for (int axis = 0; axis < a.rank() - 2; ++axis) {
    if (a[axis] != b[axis]) return false;
  }
  return true;
}

std::unique_ptr<Kernel> make_matmul(const Site& site) {
  if (!one_product_dtype(site) || site.in(0).shape.rank() < 2 || site.in(1).shape.rank() < 2)
    return nullptr;
  ir::TensorType a = site.in(0);
  ir::TensorType b = site.in(1);
  ir::TensorType y = site.out();
  if (b.shape.rank() == 2 && site.attributes().integer("trans_a") == 0) {
    a = as_rows(a);
    y = as_rows(y);
  } else if (same_batch(a.shape, b.shape)) {
    a = with_batch_folded(a);
    b = with_batch_folded(b);
    y = with_batch_folded(y);
  }
  const int rank = y.shape.rank();
  const Desc da = operand(a, rank, site.attributes().integer("trans_a") != 0);
  const Desc db = operand(b, rank, site.attributes().integer("trans_b") != 0);
  const Desc dy = operand(y, rank, false);
  const auto pd = product(da, db, dy);
  return std::make_unique<PrimitiveKernel>(
      site, Primitive(dnnl::matmul(pd), pd.scratchpad_desc(),
                      {reads(0, DNNL_ARG_SRC, da), reads(1, DNNL_ARG_WEIGHTS, db),
                       writes(0, DNNL_ARG_DST, dy)}));
}

// Where each of a product's pieces of rows begins. A product of many rows is made of pieces of
// ops::kProductGranule rows, whoever asks: a part of the rows has the bits that it has in the
// whole.
class RowPieces {
 public:
  explicit RowPieces(std::int64_t rows) : rows_(rows) {}
  std::int64_t first() const { return std::min(rows_, ops::kProductGranule); }
  // Of the last piece, where it is shorter than the others; 0: it is not.
  std::int64_t rest() const { return rows_ > first() ? rows_ % ops::kProductGranule : 0; }

  // body(first row of the piece, its rows)
  template <typename Body>
  void each(Body body) const {
    for (std::int64_t row = 0; row < rows_; row += ops::kProductGranule)
      body(row, std::min(rows_ - row, ops::kProductGranule));
  }

 private:
  std::int64_t rows_;
};

// The same matrix with other rows.
ir::TensorType with_rows(const ir::TensorType& matrix, std::int64_t rows) {
  return {matrix.dtype, {rows, matrix.shape[1]}, {}};
}

std::int64_t bytes_before_row(const ir::TensorType& matrix, std::int64_t row) {
  return ir::bytes_of(with_rows(matrix, row)).value;
}

Primitive linear_of_rows(const Site& site, std::int64_t count) {
  const Desc x = describe(with_rows(as_rows(site.in(0)), count));
  const Desc w = operand(site.in(1), 2, site.attributes().integer("trans_w") != 0);
  const ir::TensorType rows = with_rows(as_rows(site.out()), count);
  const Desc y = describe(rows);
  std::vector<Primitive::Binding> bindings = {
      reads(0, DNNL_ARG_SRC, x), reads(1, DNNL_ARG_WEIGHTS, w), writes(0, DNNL_ARG_DST, y)};
  if (!site.has(2)) {
    const auto pd = product(x, w, y);
    return Primitive(dnnl::matmul(pd), pd.scratchpad_desc(), bindings);
  }
  const Desc bias = describe(rows.dtype, {1, rows.shape[1]}, {rows.shape[1], 1});
  bindings.push_back(reads(2, DNNL_ARG_BIAS, bias));
  const auto pd = product(x, w, bias, y);
  return Primitive(dnnl::matmul(pd), pd.scratchpad_desc(), bindings);
}

std::unique_ptr<Kernel> make_linear(const Site& site) {
  if (!one_product_dtype(site) || site.in(0).shape.rank() < 1) return nullptr;
  const ir::TensorType x = as_rows(site.in(0));
  const ir::TensorType y = as_rows(site.out());
  const RowPieces pieces(x.shape[0]);
  Primitive first = linear_of_rows(site, pieces.first());
  if (pieces.first() == x.shape[0])
    return std::make_unique<PrimitiveKernel>(site, std::move(first));
  std::optional<Primitive> last;
  if (pieces.rest() > 0) last = linear_of_rows(site, pieces.rest());
  const Bytes scratch_bytes = std::max(first.scratch(), last ? last->scratch() : Bytes(0));
  return make_kernel(
      site,
      [first = std::move(first), last = std::move(last), pieces, x, y](const Arguments& a) mutable {
        std::array<const std::byte*, 3> inputs{};
        std::ranges::copy(a.inputs, inputs.begin());
        pieces.each([&](std::int64_t row, std::int64_t rows) {
          inputs[0] = a.inputs[0] + bytes_before_row(x, row);
          std::byte* const output = a.outputs[0] + bytes_before_row(y, row);
          const Arguments piece{
              std::span(inputs).first(a.inputs.size()), {&output, 1}, a.scratch, a.queue};
          (rows == pieces.first() ? first : *last).run(piece);
        });
      },
      scratch_bytes);
}

// dw = x^T dy of so many rows, or its transpose dy^T x; written, or added to what is there.
Primitive weight_gradient_of_rows(const Site& site, std::int64_t count, bool adds) {
  const bool transposed = site.attributes().integer("trans_w") != 0;
  const ir::TensorType x = with_rows(as_rows(site.in(0)), count);
  const ir::TensorType dy = with_rows(as_rows(site.in(1)), count);
  const Desc left = operand(transposed ? dy : x, 2, true);
  const Desc right = operand(transposed ? x : dy, 2, false);
  const Desc dw = describe(site.out());
  dnnl::primitive_attr how = user_scratchpad();
  if (adds) {
    dnnl::post_ops after;
    after.append_sum(1);
    how.set_post_ops(after);
  }
  const auto pd = preferred(
      dnnl::matmul::primitive_desc(dnnl::matmul::desc(left, right, dw), how, onednn_engine()));
  return {dnnl::matmul(pd),
          pd.scratchpad_desc(),
          {reads(transposed ? 1 : 0, DNNL_ARG_SRC, left),
           reads(transposed ? 0 : 1, DNNL_ARG_WEIGHTS, right), writes(0, DNNL_ARG_DST, dw)}};
}

// The weight's gradient piece by piece of rows, each added to what the pieces before it made.
class WeightGradient {
 public:
  // `pieces` of the rows of the site, or one piece of them all.
  WeightGradient(const Site& site, const RowPieces& pieces, bool goes_on)
      : x_(as_rows(site.in(0))), dy_(as_rows(site.in(1))), pieces_(pieces), goes_on_(goes_on) {
    const std::int64_t rows = x_.shape[0];
    if (!goes_on) write_ = weight_gradient_of_rows(site, pieces.first(), false);
    if (goes_on || rows > pieces.first())
      add_ = weight_gradient_of_rows(site, pieces.first(), true);
    if (pieces.rest() > 0) add_rest_ = weight_gradient_of_rows(site, pieces.rest(), true);
    biased_ = site.outputs() > 1;
    if (!biased_) return;
    sums_ = ColumnSums(pieces.first(), dy_.shape[1]);
    rest_sums_ = ColumnSums(pieces.rest(), dy_.shape[1]);
  }

  Bytes scratch() const {
    Bytes out = sum_scratch() + (biased_ ? Bytes(dy_.shape[1] * 4) : Bytes(0));
    for (const auto* primitive : {&write_, &add_, &add_rest_}) {
      if (*primitive) out = std::max(out, (*primitive)->scratch());
    }
    return out;
  }

  void run(const Arguments& a) {
    if (goes_on_) {
      for (std::size_t i = 0; i < a.outputs.size(); ++i) {
        const std::int64_t elements = i == 0 ? x_.shape[1] * dy_.shape[1] : dy_.shape[1];
        if (a.outputs[i] != a.inputs[2 + i])
          std::memcpy(a.outputs[i], a.inputs[2 + i], static_cast<std::size_t>(elements) * 4);
      }
    }
    std::array<const std::byte*, 4> inputs{};
    std::ranges::copy(a.inputs, inputs.begin());
    pieces_.each([&](std::int64_t row, std::int64_t rows) {
      inputs[0] = a.inputs[0] + bytes_before_row(x_, row);
      inputs[1] = a.inputs[1] + bytes_before_row(dy_, row);
      const bool adds = goes_on_ || row > 0;
      const bool full = rows == pieces_.first();
      (full ? (adds ? *add_ : *write_) : *add_rest_).run({inputs, a.outputs, a.scratch, a.queue});
      if (biased_) add_bias(full ? sums_ : rest_sums_, inputs[1], adds, a);
    });
  }

 private:
  Bytes sum_scratch() const {
    return biased_ ? std::max(sums_.scratch(), rest_sums_.scratch()) : Bytes(0);
  }

  void add_bias(const ColumnSums& sums, const std::byte* dy, bool adds, const Arguments& a) const {
    float* own = output<float>(a, 1);
    float* room = scratch_of_sums(a);
    const auto* rows = reinterpret_cast<const float*>(dy);
    if (!adds) return sums.run(rows, own, room);
    float* piece = room + sum_scratch().value / 4;
    sums.run(rows, piece, room);
    add_range(piece, own, dy_.shape[1]);
  }

  static float* scratch_of_sums(const Arguments& a) { return plimsoll::kernels::scratch<float>(a); }

  ir::TensorType x_, dy_;
  RowPieces pieces_;
  bool goes_on_;
  bool biased_ = false;
  std::optional<Primitive> write_, add_, add_rest_;
  ColumnSums sums_, rest_sums_;
};

std::unique_ptr<Kernel> make_linear_grad_weight(const Site& site) {
  if (!one_product_dtype(site)) return nullptr;
  const bool bias = site.outputs() > 1;
  if (bias && !is_f32(site.out(1))) return nullptr;
  const bool goes_on = site.inputs() > 2 && site.has(2);
  const std::int64_t rows = as_rows(site.in(0)).shape[0];
  if (is_f32(site.out())) {
    WeightGradient gradient(site, RowPieces(rows), goes_on);
    const Bytes scratch_bytes = gradient.scratch();
    return make_kernel(
        site, [gradient = std::move(gradient)](const Arguments& a) mutable { gradient.run(a); },
        scratch_bytes);
  }
  if (goes_on) return nullptr;
  return std::make_unique<PrimitiveKernel>(site, weight_gradient_of_rows(site, rows, false));
}

}  // namespace

std::span<const TableEntry> matmul_kernels() {
  static constexpr TableEntry kRows[] = {
      {"linear", make_linear},
      {"linear_grad_weight", make_linear_grad_weight},
      {"matmul", make_matmul},
  };
  return kRows;
}

}  // namespace plimsoll::kernels
