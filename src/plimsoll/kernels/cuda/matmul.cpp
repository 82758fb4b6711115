// Matrix products: matmul, linear and linear's weight gradient, by cuBLASLt (product.h). Biases are
// the product's epilogue; a bias gradient is a column sum (reduction.h). The rows of what a linear
// layer reads and makes may be padded (row_step.h).
#include <numeric>

#include "plimsoll/base/checked.h"
#include "plimsoll/kernels/cuda/pointwise.h"
#include "plimsoll/kernels/cuda/product.h"
#include "plimsoll/kernels/cuda/reduction.h"
#include "plimsoll/kernels/cuda/row_step.h"
#include "plimsoll/kernels/cuda/split_product.h"
#include "plimsoll/kernels/cuda/table.h"

namespace plimsoll::kernels::cuda {
namespace {

bool has_one_float(const Site& site) {
  const ir::DType dtype = site.in(0).dtype;
  return is_kernel_float(dtype) &&
         site.every_type([&](const ir::TensorType& type) { return type.dtype == dtype; });
}

bool takes_products(const Site& site) {
  return has_one_float(site) && all_row_major(site);
}

// Rows of data may be padded, weights may not.
bool takes_rows_and_weights(const Site& site, const ir::TensorType& weights) {
  return has_one_float(site) && weights.layout.is_row_major() &&
         site.every_type([](const ir::TensorType& type) { return row_step(type).has_value(); });
}

std::int64_t last_extent(const ir::Shape& shape) {
  return shape[shape.rank() - 1];
}

// Products of one shape at several places: what is left of a batch after its last joined axis.
struct ProductPlaces {
  std::vector<std::array<std::int64_t, 3>> bytes;  // a, b, c
};

ir::Shape leading(const ir::Shape& shape) {
  return ir::Shape(shape.dims().first(static_cast<std::size_t>(shape.rank() - 2)));
}

// The batches of a, b and c as one strided loop, in elements.
StridedLoop batch_loop(const Site& site) {
  const ir::Shape batch = leading(site.out().shape);
  std::vector<Strides> strides;
  for (const ir::TensorType* type : {&site.in(0), &site.in(1), &site.out()}) {
    const ir::Shape own = leading(type->shape);
    Strides steps = broadcast_strides_in({type->dtype, own, {}}, batch);
    const std::int64_t matrix = type->shape[type->shape.rank() - 2] * last_extent(type->shape);
    for (std::int64_t& step : steps) step *= matrix;
    strides.push_back(steps);
  }
  return make_strided_loop({ir::DType::kU8, batch, {}}, strides);
}

Made make_matmul(const Site& site) {
  if (!takes_products(site)) return no_kernel();
  const bool turned_a = site.attributes().integer("trans_a") != 0;
  const bool turned_b = site.attributes().integer("trans_b") != 0;
  const ir::Shape& a = site.in(0).shape;
  const ir::Shape& b = site.in(1).shape;
  const ir::Shape& c = site.out().shape;
  ProductShape shape{.dtype = site.in(0).dtype, .result = site.out().dtype};
  shape.turned_a = turned_a;
  shape.turned_b = turned_b;
  shape.m = c[c.rank() - 2];
  shape.n = last_extent(c);
  shape.k = turned_a ? a[a.rank() - 2] : last_extent(a);
  shape.row_a = last_extent(a);
  shape.row_b = last_extent(b);
  shape.row_c = shape.n;
  const StridedLoop loop = batch_loop(site);
  const bool one_b = loop.extents.size() == 1 && loop.row_step(1) == 0;
  if (one_b && !turned_a && loop.row_step(0) == shape.m * shape.k) {
    shape.m *= loop.row();  // the rows of all matrices are the rows of one
  } else {
    shape.batch = loop.row();
    shape.step_a = loop.row_step(0);
    shape.step_b = loop.row_step(1);
    shape.step_c = loop.row_step(2);
  }
  const std::int64_t width = width_of(shape.dtype);
  ProductPlaces places;
  for (std::int64_t i = 0; i < loop.rows(); ++i) {
    places.bytes.push_back({loop.row_offset(0, i) * width, loop.row_offset(1, i) * width,
                            loop.row_offset(2, i) * width});
    for (const std::int64_t bytes : places.bytes.back())
      shape.alignment = std::gcd(shape.alignment, bytes);
  }
  PLIMSOLL_TRY(Product product, Product::make(shape, site.options));
  const Bytes workspace = product.workspace();
  return make_kernel(
      [product = std::move(product), places](const Arguments& arguments, cudaStream_t stream) {
        for (const auto& [at_a, at_b, at_c] : places.bytes) {
          product.run(stream, arguments.inputs[0] + at_a, arguments.inputs[1] + at_b, nullptr,
                      arguments.outputs[0] + at_c, arguments.scratch);
        }
      },
      {workspace});
}

Made make_linear(const Site& site) {
  if (!takes_rows_and_weights(site, site.in(1))) return no_kernel();
  const std::int64_t n = last_extent(site.out().shape);
  const std::int64_t k = last_extent(site.in(0).shape);
  if (k == 0) {  // the bias alone, or zeros
    if (!all_row_major(site)) return no_kernel();
    Pointwise pointwise = pointwise_of(site);
    pointwise.inputs.resize(site.has(2) ? 1 : 0);
    if (site.has(2))
      pointwise.inputs[0] = {site.in(2).dtype, broadcast_strides_in(site.in(2), site.out().shape)};
    pointwise.results = {site.has(2) ? "a" : "Real(0)"};
    PLIMSOLL_TRY(PointwiseKernel kernel, PointwiseKernel::make(pointwise));
    return make_kernel([kernel = std::move(kernel), biased = site.has(2)](const Arguments& a,
                                                                          cudaStream_t stream) {
      kernel.launch(stream, biased ? a.inputs.subspan(2, 1) : a.inputs.first(0), a.outputs);
    });
  }
  const bool turned = site.attributes().integer("trans_w") != 0;
  ProductShape shape{.dtype = site.in(0).dtype, .result = site.out().dtype};
  shape.turned_b = turned;
  shape.m = site.out().shape.elements() / n;
  shape.n = n;
  shape.k = k;
  shape.row_a = *row_step(site.in(0));
  shape.row_b = turned ? k : n;
  shape.row_c = *row_step(site.out());
  shape.bias = site.has(2);
  PLIMSOLL_TRY(SplitProduct product, SplitProduct::make(shape, site.options));
  const Bytes workspace = product.workspace();
  return make_kernel(
      [product = std::move(product), biased = shape.bias](const Arguments& a, cudaStream_t stream) {
        product.run(stream, a.inputs[0], a.inputs[1], biased ? a.inputs[2] : nullptr, a.outputs[0],
                    a.scratch);
      },
      {workspace});
}

// The same in parts of rows: the sums go on from those of the rows before, inputs 2 and 3.
Made make_weights_going_on(const Site& site, const ProductShape& shape, const ColumnSums& sums) {
  if (!is_f32(site.in(0)) || !is_f32(site.out())) return no_kernel();
  PLIMSOLL_TRY(Product product, Product::make(shape, site.options));
  const bool turned = site.attributes().integer("trans_w") != 0;
  const std::int64_t outputs = last_extent(site.in(1).shape);
  const bool biased = site.outputs() > 1 && outputs > 0;
  const std::int64_t sum_bytes = biased ? round_up(sums.scratch().value, 256) : 0;
  const Bytes scratch =
      std::max(product.workspace(), Bytes(sum_bytes + (biased ? outputs * 4 : 0)));
  return make_kernel(
      [product = std::move(product), turned, biased, sums, sum_bytes, outputs,
       weights = site.out().shape.elements()](const Arguments& a, cudaStream_t stream) {
        const auto take_over = [&](std::size_t output, std::int64_t elements) {
          if (a.outputs[output] != a.inputs[2 + output])
            cudaMemcpyAsync(a.outputs[output], a.inputs[2 + output],
                            static_cast<std::size_t>(elements) * 4, cudaMemcpyDeviceToDevice,
                            stream);
        };
        take_over(0, weights);
        if (weights > 0)
          product.run(stream, a.inputs[turned ? 1 : 0], a.inputs[turned ? 0 : 1], nullptr,
                      a.outputs[0], a.scratch, 1);
        if (!biased) return;
        std::byte* sum = a.scratch + sum_bytes;
        sums.run(stream, a.inputs[1], sum, a.scratch);
        take_over(1, outputs);
        add_floats(outputs, reinterpret_cast<const float*>(sum), output<float>(a, 1), stream);
      },
      {scratch});
}

// dw[k,n] = x^T dy, or its transpose; db[n] = the sum of dy's rows.
Made make_linear_grad_weight(const Site& site) {
  if (!takes_rows_and_weights(site, site.out())) return no_kernel();
  const std::int64_t inputs = last_extent(site.in(0).shape);
  const std::int64_t outputs = last_extent(site.in(1).shape);
  const ir::Shape& x = site.in(0).shape;
  const std::int64_t rows = x.elements(0, x.rank() - 1);
  const bool turned = site.attributes().integer("trans_w") != 0;
  ProductShape shape{.dtype = site.in(0).dtype, .result = site.out().dtype};
  shape.turned_a = true;
  shape.m = turned ? outputs : inputs;
  shape.n = turned ? inputs : outputs;
  shape.k = rows;
  const std::int64_t step = *row_step(site.in(1));  // of dy
  shape.row_a = turned ? step : *row_step(site.in(0));
  shape.row_b = turned ? *row_step(site.in(0)) : step;
  shape.row_c = shape.n;
  const bool has_weights = shape.m > 0 && shape.n > 0;
  if (!has_weights) shape.k = 0;
  const ColumnSums sums(rows, outputs, step, shape.dtype);
  if (site.has(2)) return make_weights_going_on(site, shape, sums);
  PLIMSOLL_TRY(SplitProduct product, SplitProduct::make(shape, site.options));
  const bool biased = site.outputs() > 1 && outputs > 0;
  const Bytes scratch = std::max(product.workspace(), biased ? sums.scratch() : Bytes(0));
  return make_kernel(
      [product = std::move(product), turned, biased, sums, has_weights](const Arguments& a,
                                                                        cudaStream_t stream) {
        const std::byte* left = a.inputs[turned ? 1 : 0];
        const std::byte* right = a.inputs[turned ? 0 : 1];
        if (has_weights) product.run(stream, left, right, nullptr, a.outputs[0], a.scratch);
        if (biased) sums.run(stream, a.inputs[1], a.outputs[1], a.scratch);
      },
      {scratch});
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

}  // namespace plimsoll::kernels::cuda
