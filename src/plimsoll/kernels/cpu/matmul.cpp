// matmul, linear and linear_grad_weight: all are one oneDNN matrix product on plain row-major
// operands, a transposed one described by its strides (no copy).
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

std::unique_ptr<Kernel> make_linear(const Site& site) {
  if (!one_product_dtype(site) || site.in(0).shape.rank() < 1) return nullptr;
  const Desc x = describe(as_rows(site.in(0)));
  const Desc w = operand(site.in(1), 2, site.attributes().integer("trans_w") != 0);
  const ir::TensorType rows = as_rows(site.out());
  const Desc y = describe(rows);
  std::vector<Primitive::Binding> bindings = {
      reads(0, DNNL_ARG_SRC, x), reads(1, DNNL_ARG_WEIGHTS, w), writes(0, DNNL_ARG_DST, y)};
  if (!site.has(2)) {
    const auto pd = product(x, w, y);
    return std::make_unique<PrimitiveKernel>(
        site, Primitive(dnnl::matmul(pd), pd.scratchpad_desc(), bindings));
  }
  const Desc bias = describe(rows.dtype, {1, rows.shape[1]}, {rows.shape[1], 1});
  bindings.push_back(reads(2, DNNL_ARG_BIAS, bias));
  const auto pd = product(x, w, bias, y);
  return std::make_unique<PrimitiveKernel>(
      site, Primitive(dnnl::matmul(pd), pd.scratchpad_desc(), bindings));
}

std::unique_ptr<Kernel> make_linear_grad_weight(const Site& site) {
  if (!one_product_dtype(site)) return nullptr;
  const bool transposed = site.attributes().integer("trans_w") != 0;
  const bool bias = site.outputs() > 1;
  if (bias && !is_f32(site.out(1))) return nullptr;
  const ir::TensorType x = as_rows(site.in(0));
  const ir::TensorType dy = as_rows(site.in(1));
  // dw = x^T dy, or its transpose dy^T x.
  const Desc left = operand(transposed ? dy : x, 2, true);
  const Desc right = operand(transposed ? x : dy, 2, false);
  const Desc dw = describe(site.out());
  const auto pd = product(left, right, dw);
  Primitive primitive(
      dnnl::matmul(pd), pd.scratchpad_desc(),
      {reads(transposed ? 1 : 0, DNNL_ARG_SRC, left),
       reads(transposed ? 0 : 1, DNNL_ARG_WEIGHTS, right), writes(0, DNNL_ARG_DST, dw)});
  if (!bias) return std::make_unique<PrimitiveKernel>(site, std::move(primitive));
  const ColumnSums sums(dy.shape[0], dy.shape[1]);
  // One after the other, so they share the scratch.
  const Bytes scratch_bytes = std::max(primitive.scratch(), sums.scratch());
  return make_kernel(
      site,
      [primitive = std::move(primitive), sums](const Arguments& a) mutable {
        primitive.run(a);
        sums.run(input<float>(a, 1), output<float>(a, 1), scratch<float>(a));
      },
      scratch_bytes);
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
