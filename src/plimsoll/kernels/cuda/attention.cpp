// Attention by products and softmax: scores = q k^T of a few heads at a time, their rows softened,
// then times v; the gradient computes the scores again. The heads of one batch that are at work
// together are as many as have 64 MiB of scores, so scratch does not grow with batch or heads.
//
// cuDNN has no fp32 gradient of attention at all, so this is the path of fp32, of masks and of
// heads of unusual width. bf16, fp16 and TF32 without a mask keep their scores in registers
// (attention_flash.cu; attention_hopper.cu for heads of 64 in 16 bits where the card can).
#include <numeric>
#include <optional>

#include "plimsoll/kernels/cuda/product.h"
#include "plimsoll/kernels/cuda/reduction.h"
#include "plimsoll/kernels/cuda/table.h"
#include "plimsoll/ops/products/attention_sizes.h"

namespace plimsoll::kernels::cuda {
namespace {

using ops::AttentionSizes;
constexpr std::int64_t kMostScoreBytes = std::int64_t{64} << 20;

// Vectors of heads in a tensor: where they begin, and how far apart batches, rows and heads are.
struct HeadTensor {
  std::size_t index = 0;  // of the node's inputs or outputs
  std::int64_t offset = 0, batch = 0, row = 0, head = 0;
};

HeadTensor head_tensor(std::size_t index, std::int64_t positions, std::int64_t features,
                       std::int64_t head, std::int64_t offset = 0) {
  return {index, offset, positions * features, features, head};
}

// One attention: its sizes, and how many heads are taken at once.
struct AttentionPlan {
  AttentionSizes sizes;
  ir::DType dtype = ir::DType::kF32;
  std::int64_t heads = 1;  // at a time; they share one key head, or each has its own
  bool shares_keys = false;
  HeadTensor q, k, v, y;

  std::int64_t scores() const { return heads * sizes.rows * sizes.columns; }
  bool is_narrow() const { return dtype != ir::DType::kF32; }
};

AttentionPlan plan_attention(const AttentionSizes& sizes, ir::DType dtype) {
  AttentionPlan plan;
  plan.sizes = sizes;
  plan.dtype = dtype;
  plan.shares_keys = sizes.kv_heads != sizes.heads;
  const std::int64_t together = plan.shares_keys ? sizes.heads / sizes.kv_heads : sizes.heads;
  plan.heads = together;
  while (plan.heads > 1 && (together % plan.heads != 0 || plan.scores() * 4 > kMostScoreBytes))
    --plan.heads;
  return plan;
}

AttentionPlan plan_of(const Site& site, bool side_by_side, int first) {
  const ops::Call call = ops::call_of(site.graph, site.node);
  const auto sizes =
      side_by_side ? ops::attention_qkv_sizes(call, first) : ops::attention_sizes(call, first);
  PLIMSOLL_CHECK(sizes.has_value(), "{} was not verified", site.node.op);
  AttentionPlan plan = plan_attention(*sizes, site.in(first).dtype);
  const auto at = static_cast<std::size_t>(first);
  const std::int64_t width = sizes->width;
  const std::int64_t value = sizes->value_width;
  if (side_by_side) {
    const std::int64_t third = sizes->heads * width;
    plan.q = head_tensor(at, sizes->rows, 3 * third, width);
    plan.k = head_tensor(at, sizes->columns, 3 * third, width, third);
    plan.v = head_tensor(at, sizes->columns, 3 * third, width, 2 * third);
  } else {
    plan.q = head_tensor(at, sizes->rows, sizes->heads * width, width);
    plan.k = head_tensor(at + 1, sizes->columns, sizes->kv_heads * width, width);
    plan.v = head_tensor(at + 2, sizes->columns, sizes->kv_heads * value, value);
  }
  plan.y = head_tensor(0, sizes->rows, sizes->heads * value, value);
  return plan;
}

// A matrix of one head: a tensor's, or scores in scratch.
struct Operand {
  std::int64_t row, head, alignment;
};
Operand of_tensor(const AttentionPlan& plan, const HeadTensor& tensor, bool is_key) {
  const std::int64_t width = width_of(plan.dtype);
  std::int64_t alignment = 256;
  for (const std::int64_t step : {tensor.offset, tensor.batch, tensor.head})
    alignment = std::gcd(alignment, step * width);
  return {tensor.row, is_key && plan.shares_keys ? 0 : tensor.head, alignment};
}
Operand of_scores(const AttentionPlan& plan) {
  return {plan.sizes.columns, plan.sizes.rows * plan.sizes.columns, 256};
}

struct Multiplication {
  Operand a, b, c;
  std::int64_t m, n, k;
  bool turned_a = false, turned_b = false;
  double alpha = 1;
  bool one_by_one = false;  // head after head, adding up: what several heads share
};

Result<Product> multiplication(const AttentionPlan& plan, const Multiplication& what,
                               ir::DType result, const CudaKernelOptions& options) {
  ProductShape shape{.dtype = plan.dtype, .result = result};
  shape.turned_a = what.turned_a;
  shape.turned_b = what.turned_b;
  shape.m = what.m;
  shape.n = what.n;
  shape.k = what.k;
  shape.row_a = what.a.row;
  shape.row_b = what.b.row;
  shape.row_c = what.c.row;
  shape.batch = what.one_by_one ? 1 : plan.heads;
  shape.step_a = what.a.head;
  shape.step_b = what.b.head;
  shape.step_c = what.c.head;
  shape.alpha = what.alpha;
  shape.alignment = std::gcd(std::gcd(what.a.alignment, what.b.alignment), what.c.alignment);
  if (what.one_by_one) {
    const std::int64_t width = width_of(plan.dtype);
    for (const std::int64_t step : {what.a.head, what.b.head})
      shape.alignment = std::gcd(shape.alignment, step * width);
  }
  return Product::make(shape, options);
}

// The mask's steps along batch, head, row and column.
struct MaskSteps {
  bool present = false;
  std::size_t input = 0;
  Element type = Element::kF32;
  std::int64_t width = 4;
  Strides steps{};
};

MaskSteps mask_steps(const Site& site, int input, const AttentionSizes& sizes) {
  if (!site.has(input)) return {};
  const ir::TensorType& mask = site.in(input);
  return {true, static_cast<std::size_t>(input), element_of(mask.dtype), width_of(mask.dtype),
          broadcast_strides_in(mask, sizes.score_shape())};
}

ScoreRows score_rows(const AttentionPlan& plan, const MaskSteps& mask, const Arguments& a,
                     std::int64_t batch, std::int64_t head) {
  const AttentionSizes& sizes = plan.sizes;
  ScoreRows rows{};
  rows.heads = plan.heads;
  rows.rows = sizes.rows;
  rows.columns = sizes.columns;
  rows.causal = sizes.causal;
  rows.shift = sizes.columns - sizes.rows + 1;
  if (mask.present) {
    rows.mask = a.inputs[mask.input] + (batch * mask.steps[0] + head * mask.steps[1]) * mask.width;
    rows.mask_type = mask.type;
    rows.mask_head = mask.steps[1];
    rows.mask_row = mask.steps[2];
    rows.mask_column = mask.steps[3];
  }
  return rows;
}

// Calls body(batch, first head) for every group of heads that is taken at once.
template <typename Body>
void for_each_group(const AttentionPlan& plan, const Body& body) {
  for (std::int64_t batch = 0; batch < plan.sizes.batch; ++batch) {
    for (std::int64_t head = 0; head < plan.sizes.heads; head += plan.heads) body(batch, head);
  }
}

// Bytes from the tensor's address to a batch's head.
std::int64_t place(const AttentionPlan& plan, const HeadTensor& tensor, std::int64_t batch,
                   std::int64_t head) {
  return (tensor.offset + batch * tensor.batch + head * tensor.head) * width_of(plan.dtype);
}

bool takes_attention(const Site& site, int first) {
  return is_kernel_float(site.in(first).dtype) && all_row_major(site);
}

FlashSteps flash_steps(const HeadTensor& tensor) {
  return {tensor.batch, tensor.row, tensor.head};
}

// Where attention_flash.cu takes it.
std::optional<FlashShape> flash_shape(const AttentionPlan& plan, bool masked, bool tf32) {
  const AttentionSizes& sizes = plan.sizes;
  constexpr std::int64_t kStep = 8;      // elements of a 16-byte load
  constexpr std::int64_t kMost = 65535;  // of a grid's second and third extents
  const bool takes = (plan.is_narrow() || tf32) && !masked && !plan.shares_keys &&
                     sizes.scale > 0 && sizes.width == sizes.value_width &&
                     (sizes.width == 32 || sizes.width == 64) && sizes.batch <= kMost &&
                     sizes.heads <= kMost;
  if (!takes) return std::nullopt;
  for (const HeadTensor* tensor : {&plan.q, &plan.k, &plan.v, &plan.y}) {
    for (const std::int64_t step : {tensor->offset, tensor->batch, tensor->row, tensor->head}) {
      if (step % kStep != 0) return std::nullopt;
    }
  }
  FlashShape out{};
  out.batch = sizes.batch;
  out.heads = sizes.heads;
  out.rows = sizes.rows;
  out.columns = sizes.columns;
  out.width = static_cast<int>(sizes.width);
  out.scale = static_cast<float>(sizes.scale);
  out.causal = sizes.causal;
  out.q = flash_steps(plan.q);
  out.k = flash_steps(plan.k);
  out.v = flash_steps(plan.v);
  out.y = flash_steps(plan.y);
  return out;
}

#ifdef PLIMSOLL_SM90A
// Where attention_hopper.cu takes it: what is compiled for sm_90a runs on 9.0 and nowhere else.
bool takes_hopper(const AttentionPlan& plan, const CudaKernelOptions& options) {
  constexpr std::int64_t kHopperWidth = 64;
  int major = 0;
  int minor = 0;
  return plan.is_narrow() && plan.sizes.width == kHopperWidth &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, options.device) ==
             cudaSuccess &&
         cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, options.device) ==
             cudaSuccess &&
         major == 9 && minor == 0;
}
#endif

// Which of the two computes it.
struct FlashKernels {
  decltype(&flash_attention) forward = flash_attention;
  decltype(&flash_attention_gradient) gradient = flash_attention_gradient;
  std::int64_t floats_of_row = 1;  // scratch of the gradient
};
FlashKernels flash_kernels([[maybe_unused]] const AttentionPlan& plan,
                           [[maybe_unused]] const CudaKernelOptions& options) {
#ifdef PLIMSOLL_SM90A
  if (takes_hopper(plan, options)) return {hopper_attention, hopper_attention_gradient, 2};
#endif
  return {};
}

std::unique_ptr<Kernel> make_flash(const AttentionPlan& plan, const FlashShape& flash,
                                   const CudaKernelOptions& options) {
  return make_kernel([plan, flash, kernels = flash_kernels(plan, options),
                      type = element_of(plan.dtype)](const Arguments& a, cudaStream_t stream) {
    const auto at = [&](const HeadTensor& tensor) {
      return a.inputs[tensor.index] + place(plan, tensor, 0, 0);
    };
    kernels.forward(type, flash, at(plan.q), at(plan.k), at(plan.v), a.outputs[0],
                    output<float>(a, 1), stream);
  });
}

// With y and lse at these inputs.
template <bool side_by_side>
std::unique_ptr<Kernel> make_flash_gradient(const AttentionPlan& plan, const FlashShape& flash,
                                            int y, const CudaKernelOptions& options) {
  const FlashKernels kernels = flash_kernels(plan, options);
  const Bytes means(flash.batch * flash.heads * flash.rows * kernels.floats_of_row * 4);
  return make_kernel(
      [plan, flash, y, kernels, type = element_of(plan.dtype)](const Arguments& a,
                                                               cudaStream_t stream) {
        const auto at = [&](const HeadTensor& tensor) {
          return a.inputs[tensor.index] + place(plan, tensor, 0, 0);
        };
        const auto to = [&](std::size_t result, const HeadTensor& tensor) {
          return a.outputs[side_by_side ? 0 : result] + place(plan, tensor, 0, 0);
        };
        kernels.gradient(type, flash,
                         {a.inputs[0], at(plan.q), at(plan.k), at(plan.v), input<std::byte>(a, y),
                          input<float>(a, y + 1), scratch<float>(a), to(0, plan.q), to(1, plan.k),
                          to(2, plan.v)},
                         stream);
      },
      {means});
}

// attention(q, k, v, mask?) -> y, lse and attention_qkv(qkv, mask?) -> y, lse
template <bool side_by_side>
Made make_attention(const Site& site) {
  if (!takes_attention(site, 0)) return no_kernel();
  const AttentionPlan plan = plan_of(site, side_by_side, 0);
  const AttentionSizes& sizes = plan.sizes;
  if (sizes.columns == 0) return no_kernel();
  if (const auto flash = flash_shape(plan, site.has(side_by_side ? 1 : 3), site.options.tf32))
    return make_flash(plan, *flash, site.options);
  const Operand scores = of_scores(plan);
  PLIMSOLL_TRY(Product score, multiplication(plan,
                                             {of_tensor(plan, plan.q, false),
                                              of_tensor(plan, plan.k, true), scores, sizes.rows,
                                              sizes.columns, sizes.width, false, true, sizes.scale},
                                             ir::DType::kF32, site.options));
  PLIMSOLL_TRY(Product weigh, multiplication(plan,
                                             {scores, of_tensor(plan, plan.v, true),
                                              of_tensor(plan, plan.y, false), sizes.rows,
                                              sizes.value_width, sizes.columns},
                                             plan.dtype, site.options));
  ScratchLayout scratch;
  const std::int64_t at_scores = scratch.add(plan.scores() * 4);
  const std::int64_t at_weights =
      plan.is_narrow() ? scratch.add(plan.scores() * width_of(plan.dtype)) : at_scores;
  const std::int64_t at_workspace =
      scratch.add(std::max(score.workspace(), weigh.workspace()).value);
  return make_kernel(
      [plan, at_scores, at_weights, at_workspace, score = std::move(score),
       weigh = std::move(weigh), type = element_of(plan.dtype),
       mask = mask_steps(site, side_by_side ? 1 : 3, sizes)](const Arguments& a,
                                                             cudaStream_t stream) {
        std::byte* weights = a.scratch + at_weights;
        std::byte* workspace = a.scratch + at_workspace;
        for_each_group(plan, [&](std::int64_t batch, std::int64_t head) {
          const std::int64_t key = plan.sizes.kv_head(head);
          score.run(stream, a.inputs[plan.q.index] + place(plan, plan.q, batch, head),
                    a.inputs[plan.k.index] + place(plan, plan.k, batch, key), nullptr,
                    a.scratch + at_scores, workspace);
          float* lse = output<float>(a, 1) + (batch * plan.sizes.heads + head) * plan.sizes.rows;
          attend_rows(type, score_rows(plan, mask, a, batch, head),
                      reinterpret_cast<float*>(a.scratch + at_scores), weights, lse, stream);
          weigh.run(stream, weights, a.inputs[plan.v.index] + place(plan, plan.v, batch, key),
                    nullptr, a.outputs[0] + place(plan, plan.y, batch, head), workspace);
        });
      },
      {scratch.size()});
}

// The five products of the gradient.
struct GradientProducts {
  Product score, value_slope, dv, dq, dk;
  Bytes workspace() const {
    return std::max({score.workspace(), value_slope.workspace(), dv.workspace(), dq.workspace(),
                     dk.workspace()});
  }
};

Result<GradientProducts> gradient_products(const AttentionPlan& plan,
                                           const CudaKernelOptions& options) {
  const AttentionSizes& sizes = plan.sizes;
  const Operand scores = of_scores(plan);
  const Operand q = of_tensor(plan, plan.q, false);
  const Operand k = of_tensor(plan, plan.k, true);
  const Operand v = of_tensor(plan, plan.v, true);
  const Operand y = of_tensor(plan, plan.y, false);
  const bool shares = plan.shares_keys;
  PLIMSOLL_TRY(Product score, multiplication(plan,
                                             {q, k, scores, sizes.rows, sizes.columns, sizes.width,
                                              false, true, sizes.scale},
                                             ir::DType::kF32, options));
  PLIMSOLL_TRY(Product value_slope,
               multiplication(
                   plan, {y, v, scores, sizes.rows, sizes.columns, sizes.value_width, false, true},
                   ir::DType::kF32, options));
  PLIMSOLL_TRY(Product dv, multiplication(plan,
                                          {scores, y, v, sizes.columns, sizes.value_width,
                                           sizes.rows, true, false, 1, shares},
                                          plan.dtype, options));
  PLIMSOLL_TRY(Product dq,
               multiplication(plan, {scores, k, q, sizes.rows, sizes.width, sizes.columns},
                              plan.dtype, options));
  PLIMSOLL_TRY(Product dk, multiplication(plan,
                                          {scores, q, k, sizes.columns, sizes.width, sizes.rows,
                                           true, false, 1, shares},
                                          plan.dtype, options));
  return GradientProducts{std::move(score), std::move(value_slope), std::move(dv), std::move(dq),
                          std::move(dk)};
}

// attention_grad(dy, q, k, v, y, lse, mask?) -> dq, dk, dv
// attention_qkv_grad(dy, qkv, y, lse, mask?) -> dqkv
template <bool side_by_side>
Made make_attention_grad(const Site& site) {
  if (!takes_attention(site, 1)) return no_kernel();
  const AttentionPlan plan = plan_of(site, side_by_side, 1);
  const AttentionSizes& sizes = plan.sizes;
  if (sizes.columns == 0 || sizes.rows == 0) return no_kernel();
  if (const auto flash = flash_shape(plan, site.has(side_by_side ? 4 : 6), site.options.tf32))
    return make_flash_gradient<side_by_side>(plan, *flash, side_by_side ? 2 : 4, site.options);
  PLIMSOLL_TRY(GradientProducts products, gradient_products(plan, site.options));
  constexpr std::size_t kY = side_by_side ? 2 : 4;
  ScratchLayout scratch;
  const std::int64_t at_scores = scratch.add(plan.scores() * 4);
  const std::int64_t at_slopes = scratch.add(plan.scores() * 4);
  // In fp32 probabilities lie over the scores and dscores over the slopes; otherwise dscores lie
  // over the scores, which nobody reads any more.
  const std::int64_t at_weights =
      plan.is_narrow() ? scratch.add(plan.scores() * width_of(plan.dtype)) : at_scores;
  const std::int64_t at_dscores = plan.is_narrow() ? at_scores : at_slopes;
  const std::int64_t at_workspace = scratch.add(products.workspace().value);
  return make_kernel(
      [plan, at_scores, at_slopes, at_weights, at_dscores, at_workspace,
       products = std::move(products), type = element_of(plan.dtype),
       mask = mask_steps(site, side_by_side ? 4 : 6, sizes)](const Arguments& a,
                                                             cudaStream_t stream) {
        const AttentionSizes& size = plan.sizes;
        std::byte* workspace = a.scratch + at_workspace;
        std::byte* scores = a.scratch + at_scores;
        std::byte* slopes = a.scratch + at_slopes;
        std::byte* weights = a.scratch + at_weights;
        std::byte* dscores = a.scratch + at_dscores;
        std::byte* const to_q = a.outputs[0];
        std::byte* const to_k = a.outputs[side_by_side ? 0 : 1];
        std::byte* const to_v = a.outputs[side_by_side ? 0 : 2];
        const std::int64_t one_head = size.rows * size.columns * width_of(plan.dtype);
        for_each_group(plan, [&](std::int64_t batch, std::int64_t head) {
          const std::int64_t key = size.kv_head(head);
          const std::byte* q = a.inputs[plan.q.index] + place(plan, plan.q, batch, head);
          const std::byte* k = a.inputs[plan.k.index] + place(plan, plan.k, batch, key);
          const std::byte* v = a.inputs[plan.v.index] + place(plan, plan.v, batch, key);
          const std::byte* dy = a.inputs[0] + place(plan, plan.y, batch, head);
          const std::byte* y = a.inputs[kY] + place(plan, plan.y, batch, head);
          const float* lse =
              input<float>(a, static_cast<int>(kY) + 1) + (batch * size.heads + head) * size.rows;
          const ScoreRows rows = score_rows(plan, mask, a, batch, head);
          products.score.run(stream, q, k, nullptr, scores, workspace);
          attend_rows_again(type, rows, reinterpret_cast<const float*>(scores), weights, lse,
                            stream);
          products.value_slope.run(stream, dy, v, nullptr, slopes, workspace);
          score_gradient_rows(type, rows, {size.value_width, plan.y.row, plan.y.head}, size.scale,
                              weights, reinterpret_cast<float*>(slopes), dy, y, dscores, stream);
          products.dq.run(stream, dscores, k, nullptr, to_q + place(plan, plan.q, batch, head),
                          workspace);
          std::byte* dk = to_k + place(plan, plan.k, batch, key);
          std::byte* dv = to_v + place(plan, plan.v, batch, key);
          if (!plan.shares_keys) {
            products.dv.run(stream, weights, dy, nullptr, dv, workspace);
            products.dk.run(stream, dscores, q, nullptr, dk, workspace);
            return;
          }
          const std::int64_t sharing = size.heads / size.kv_heads;
          for (std::int64_t i = 0; i < plan.heads; ++i) {
            const float beta = (head + i) % sharing == 0 ? 0 : 1;
            products.dv.run(stream, weights + i * one_head, dy + place(plan, plan.y, 0, i), nullptr,
                            dv, workspace, beta);
            products.dk.run(stream, dscores + i * one_head,
                            q + i * plan.q.head * width_of(plan.dtype), nullptr, dk, workspace,
                            beta);
          }
        });
      },
      {scratch.size()});
}

}  // namespace

std::span<const TableEntry> attention_kernels() {
  static constexpr TableEntry kRows[] = {
      {"attention", make_attention<false>},
      {"attention_grad", make_attention_grad<false>},
      {"attention_qkv", make_attention<true>},
      {"attention_qkv_grad", make_attention_grad<true>},
  };
  return kRows;
}

}  // namespace plimsoll::kernels::cuda
