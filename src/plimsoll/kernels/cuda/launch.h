// The functions that launch our own kernels: plain arguments, C++17, one declaration per .cu entry.
//
// Everything here enqueues on the stream and returns. Element types are named by Element; a
// function that does not take one is never called with it (the factories in .cpp files decide).
// Sizes are elements unless they say bytes.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "plimsoll/kernels/cuda/coded_activation.h"

namespace plimsoll::kernels::cuda {

enum class Element : int { kF32, kBF16, kF16, kI64, kI32 };

// transpose.cu ------------------------------------------------------------------------------------

// to[b, r, c] = from[b, c, r]; unit steps along c in `to` and along r in `from`.
struct TiledTranspose {
  std::int64_t batch, rows, columns;
  std::int64_t to_row, from_column;  // steps along r in `to` and along c in `from`
  std::int64_t to_batch, from_batch;
};
void transpose_tiles(const TiledTranspose& shape, std::int64_t width, const void* from, void* to,
                     cudaStream_t stream);

// reduction.cu ------------------------------------------------------------------------------------

// The place of index i: sum over the axes (outermost first) of the coordinate x step, and of the
// coordinate x also (the place of a statistic that belongs to the element).
struct Walk {
  static constexpr int kMostAxes = 8;
  int rank;
  unsigned extents[kMostAxes];
  std::int64_t steps[kMostAxes];
  std::int64_t also[kMostAxes];
};

// Output o is the reduction over r of the elements at kept(o) + reduced(r). Large reductions are
// cut into `splits` pieces by shape alone; partial results lie in scratch and are merged in
// order.
struct ReducePlan {
  Walk kept;
  Walk reduced;
  std::int64_t outputs, count;
  int splits;
  bool by_columns;  // neighbouring threads take neighbouring outputs
};

// Bytes of one partial result, for every kind below.
constexpr std::int64_t kPartialBytes = 16;

enum class Fold : int { kSum, kProduct, kMax, kMin, kSumSquares };
// y = fold(x) * scale; y has x's type, kSumSquares gives fp32. Integers are not scaled but divided.
void fold(Fold how, Element type, const ReducePlan& plan, const void* x, void* y, double scale,
          std::int64_t divisor, void* scratch, cudaStream_t stream);

// The index (along one reduced axis) of the largest or smallest; of equals the first or the last.
void find_extreme(bool largest, bool last, Element type, const ReducePlan& plan, const void* x,
                  std::int64_t* y, void* scratch, cudaStream_t stream);

// Mean and variance (over count, not count - 1).
void moments(Element type, const ReducePlan& plan, const void* x, float* mean, float* variance,
             void* scratch, cudaStream_t stream);

// One channel of batch norm, for each output: the sums of dy' * xhat and of dy', where dy' is dy,
// or 0 where relu cut off what came forward.
struct BatchNormGradient {
  const void *dy, *x, *gamma, *beta;
  const float *mean, *variance;
  double epsilon;
  bool relu;
  void *dgamma, *dbeta;  // of gamma's type
  float* exact;          // dgamma, then dbeta, in fp32
};
void batch_norm_sums(Element type, Element parameter, const ReducePlan& plan,
                     const BatchNormGradient& what, void* scratch, cudaStream_t stream);

// Parameters of row norms: sums over rows of dy * (x - mean) * rstd and of dy. The statistic of an
// element is at `also`. mean and dbeta are null for rms_norm.
struct RowNormGradient {
  const void *dy, *x;
  const float *mean, *rstd;
  void *dgamma, *dbeta;
};
void row_norm_sums(Element type, Element parameter, const ReducePlan& plan,
                   const RowNormGradient& what, void* scratch, cudaStream_t stream);

// columns.cu --------------------------------------------------------------------------------------

// A matrix whose columns are neighbours and whose rows begin at multiples of 16 bytes: see
// column_shape in reduction.h.
struct ColumnShape {
  std::int64_t rows, columns;
  std::int64_t step;  // elements from one row to the next; the passes of batch norm have no gaps
  int across;         // groups of 16 bytes side by side in a block: a power of two
  int splits;         // pieces of the rows
};
// Scratch of all that sum: splits x columns x kPartialBytes.
void column_moments(Element type, const ColumnShape& shape, const void* x, float* mean,
                    float* variance, void* scratch, cudaStream_t stream);
void column_sums(Element type, const ColumnShape& shape, const void* x, void* y, void* scratch,
                 cudaStream_t stream);
void column_row_norm_sums(Element type, Element parameter, const ColumnShape& shape,
                          const RowNormGradient& what, void* scratch, cudaStream_t stream);

struct BatchNormParameters {
  const void *gamma, *beta;
  const float *mean, *variance;
  float epsilon;
};
// y = the line of x, plus `other` where there is one, no less than 0 with relu.
void column_batch_norm(Element type, Element parameter, const ColumnShape& shape,
                       const BatchNormParameters& parameters, const void* x, const void* other,
                       bool relu, void* y, cudaStream_t stream);
struct ColumnBatchNormGradient {
  const void *dy, *x;
  bool relu;
  void *dx, *dgamma, *dbeta;
  float* exact;  // dgamma, then dbeta, in fp32
};
void column_batch_norm_gradient(Element type, Element parameter, const ColumnShape& shape,
                                const BatchNormParameters& parameters,
                                const ColumnBatchNormGradient& what, void* scratch,
                                cudaStream_t stream);

// rows.cu -----------------------------------------------------------------------------------------

// Rows of `width` that are normalised; parameter_at(row, i) = row % groups * (width / plane) + i /
// plane. mean is null for rms_norm, beta where there is none.
struct NormRows {
  std::int64_t rows, width, plane, groups;
};
void norm_rows(Element type, Element parameter, const NormRows& rows, double epsilon, const void* x,
               const void* gamma, const void* beta, void* y, float* mean, float* rstd,
               cudaStream_t stream);
void norm_rows_gradient(Element type, Element parameter, const NormRows& rows, const void* dy,
                        const void* x, const void* gamma, const float* mean, const float* rstd,
                        void* dx, cudaStream_t stream);

// norm_warps.cu: the same for rows that a warp holds.
constexpr int kMostVectorsOfLane = 8;
bool warps_take_rows(const NormRows& rows, std::int64_t width_of_element);
void norm_rows_by_warps(Element type, Element parameter, const NormRows& rows, double epsilon,
                        const void* x, const void* gamma, const void* beta, void* y, float* mean,
                        float* rstd, cudaStream_t stream);
// `other` is added to dx; null: nothing.
void norm_rows_gradient_by_warps(Element type, Element parameter, const NormRows& rows,
                                 const void* dy, const void* x, const void* gamma,
                                 const float* mean, const float* rstd, const void* other, void* dx,
                                 cudaStream_t stream);

// Lines [outer, count, inner] along the middle axis.
struct Lines {
  std::int64_t outer, count, inner;
};
void softmax_lines(Element type, const Lines& lines, bool as_logarithm, const void* x, void* y,
                   cudaStream_t stream);
void softmax_gradient_lines(Element type, const Lines& lines, bool of_logarithm, const void* dy,
                            const void* y, void* dx, cudaStream_t stream);
// y[i] = x[0] + ... + x[i] along each line.
void running_sums(Element type, const Lines& lines, bool exclusive, bool reverse, const void* x,
                  void* y, cudaStream_t stream);
// The k best of each line in order, and their places; of equals the first.
void best_of_lines(Element type, const Lines& lines, std::int64_t k, bool largest, const void* x,
                   void* y, std::int64_t* places, cudaStream_t stream);

// loss_rows.cu: labels equal to `ignore` do not count, others outside [0, classes) have a loss of
// NaN. `sums` is scratch: two floats a row.
struct LossRows {
  std::int64_t rows, classes;
  std::int64_t step;  // elements from one row to the next
  std::int64_t ignore;
  bool wide_labels;  // int64, else int32
};
void cross_entropy_rows(Element type, const LossRows& rows, const void* logits, const void* labels,
                        float* loss, float* lse, float* sums, cudaStream_t stream);
// The mean of losses of rows that are there already.
void mean_of_losses(const LossRows& rows, const float* losses, const void* labels, float* loss,
                    cudaStream_t stream);
// `count` is scratch: one float. The labels that are counted may be those of more rows.
struct CountedLabels {
  std::int64_t rows;
  const void* labels;
};
void cross_entropy_gradient_rows(Element type, const LossRows& rows, const CountedLabels& counted,
                                 const float* dloss, const void* logits, const void* labels,
                                 const float* lse, void* dlogits, float* count,
                                 cudaStream_t stream);

// to[i] += from[i]
void add_floats(std::int64_t count, const float* from, float* to, cudaStream_t stream);

// attention_rows.cu -------------------------------------------------------------------------------

// Scores [heads, rows, columns] of `heads` heads of one batch. A row sees columns [0, row + shift).
struct ScoreRows {
  std::int64_t heads, rows, columns;
  std::int64_t shift;  // columns for all when nothing is causal
  bool causal;
  const void* mask;  // null when absent; at its first element for these heads
  Element mask_type;
  std::int64_t mask_head, mask_row, mask_column;
};
// scores -> probabilities of the data's type, and lse[head, row].
void attend_rows(Element type, const ScoreRows& rows, float* scores, void* probabilities,
                 float* lse, cudaStream_t stream);
// The same from lse that was stored.
void attend_rows_again(Element type, const ScoreRows& rows, const float* scores,
                       void* probabilities, const float* lse, cudaStream_t stream);
// dscores = scale * p * (dp - mean), mean[head, row] = dot(dy, y) over `width` values.
struct ValueRows {
  std::int64_t width, row, head;  // steps of dy and y from row to row, head to head
};
void score_gradient_rows(Element type, const ScoreRows& rows, const ValueRows& values, double scale,
                         const void* probabilities, float* dprobabilities, const void* dy,
                         const void* y, void* dscores, cudaStream_t stream);

// attention_flash.cu -----------------------------------------------------------------------------

// bf16, fp16, or fp32 rounded to TF32; heads of 32 or 64 numbers, every step a multiple of 8; rows
// see the first columns when causal, as ScoreRows do.
struct FlashSteps {
  std::int64_t batch, row, head;
};
struct FlashShape {
  std::int64_t batch, heads, rows, columns;
  int width;
  float scale;
  bool causal;
  FlashSteps q, k, v, y;
};
void flash_attention(Element type, const FlashShape& shape, const void* q, const void* k,
                     const void* v, void* y, float* lse, cudaStream_t stream);
// `means` is scratch: a float for each of lse. dq lies like q, dk like k, dv like v, dy like y.
struct FlashGradient {
  const void *dy, *q, *k, *v, *y;
  const float* lse;
  float* means;
  void *dq, *dk, *dv;
};
void flash_attention_gradient(Element type, const FlashShape& shape, const FlashGradient& gradient,
                              cudaStream_t stream);

// attention_hopper.cu -----------------------------------------------------------------------------

// The same for 16 bits and heads of 64 on cards of compute capability 9.0; `means` is two floats
// for each of lse.
void hopper_attention(Element type, const FlashShape& shape, const void* q, const void* k,
                      const void* v, void* y, float* lse, cudaStream_t stream);
void hopper_attention_gradient(Element type, const FlashShape& shape, const FlashGradient& gradient,
                               cudaStream_t stream);

// pooling.cu --------------------------------------------------------------------------------------

// Windows over [planes..., depth, height, width]; strides per axis of batch, channel and volume.
struct PoolShape {
  std::int64_t batch, channels;
  std::int64_t data[3], results[3];
  std::int64_t kernel[3], strides[3], dilations[3], begins[3], ends[3];
  std::int64_t data_steps[5], result_steps[5];
  bool counts_pads;  // average: padding counts as elements
  bool wide_places;  // places are int32, else uint8
};
void max_pool(Element type, const PoolShape& shape, const void* x, void* y, void* places,
              cudaStream_t stream);
void max_pool_gradient(Element type, const PoolShape& shape, const void* dy, const void* places,
                       void* dx, cudaStream_t stream);
void max_pool_select(Element type, const PoolShape& shape, const void* x, const void* places,
                     void* y, cudaStream_t stream);
void average_pool(Element type, const PoolShape& shape, const void* x, void* y,
                  cudaStream_t stream);
void average_pool_gradient(Element type, const PoolShape& shape, const void* dy, void* dx,
                           cudaStream_t stream);

// convolution_direct.cu ---------------------------------------------------------------------------

struct DirectConvolution {
  std::int64_t batch, group, inputs, outputs;  // channels of one group
  std::int64_t data[3], results[3];
  std::int64_t kernel[3], strides[3], dilations[3], begins[3];
  std::int64_t x_steps[5], y_steps[5], w_steps[5];
};
void direct_convolution(Element type, const DirectConvolution& shape, const void* x, const void* w,
                        void* y, cudaStream_t stream);
void direct_data_gradient(Element type, const DirectConvolution& shape, const void* dy,
                          const void* w, void* dx, cudaStream_t stream);
void direct_weight_gradient(Element type, const DirectConvolution& shape, const void* x,
                            const void* dy, void* dw, cudaStream_t stream);

// indexing.cu -------------------------------------------------------------------------------------

// Data [outer, extent, inner], `count` indices: [outer, count, inner].
struct GatherShape {
  std::int64_t outer, extent, inner, count;
  bool wide_indices;  // int64, else int32
};
void gather(const GatherShape& shape, std::int64_t width, const void* data, const void* indices,
            void* y, cudaStream_t stream);
// dx[o, k, i] = so_far + sum of dy[o, j, i] over j with index k, in the order of j. The indices are
// sorted with their places in `scratch`.
std::int64_t gather_gradient_scratch(const GatherShape& shape);
void gather_gradient(Element type, const GatherShape& shape, const void* dy, const void* indices,
                     const void* so_far, void* dx, void* scratch, cudaStream_t stream);

enum class Combine : int { kReplace, kAdd, kMultiply, kMax, kMin };
// Lines of data and of indices along one axis of two tensors of one rank; row-major.
struct ElementIndexShape {
  int rank, axis;
  std::int64_t data[8], indices[8];
  bool wide_indices;
};
void gather_elements(const ElementIndexShape& shape, std::int64_t width, const void* data,
                     const void* indices, void* y, cudaStream_t stream);
void scatter_elements(Element type, Combine how, const ElementIndexShape& shape,
                      const void* indices, const void* updates, void* y, cudaStream_t stream);
// `rows` indices of `depth` numbers each name blocks of `block` elements; rows_each per batch.
struct NdShape {
  int depth;
  std::int64_t rows, rows_each, block, batch_size;
  std::int64_t extents[8], steps[8];
  bool wide_indices;
};
void gather_blocks(const NdShape& shape, std::int64_t width, const void* data, const void* indices,
                   void* y, cudaStream_t stream);
void scatter_blocks(Element type, Combine how, const NdShape& shape, const void* indices,
                    const void* updates, void* y, cudaStream_t stream);

// neighbourhoods.cu -------------------------------------------------------------------------------

// y[i] = x[origin(i)] along every axis: edge, wrap or reflect.
enum class PadMode : int { kEdge, kWrap, kReflect };
struct PadShape {
  int rank;
  std::int64_t x[8], y[8], before[8];
};
void pad_by_mode(PadMode mode, const PadShape& shape, std::int64_t width, const void* x, void* y,
                 cudaStream_t stream);

// Windows of channels: [batch, channels, plane] by steps.
struct ChannelWindows {
  std::int64_t batch, channels, plane;
  std::int64_t batch_step, channel_step, plane_step;
  std::int64_t below, above;
  double alpha_each, beta, k;  // alpha / size
};
void normalise_channels(Element type, const ChannelWindows& shape, const void* x, void* y,
                        cudaStream_t stream);
// `terms` is scratch: an fp32 for each element.
void normalise_channels_gradient(Element type, const ChannelWindows& shape, const void* dy,
                                 const void* x, void* dx, float* terms, cudaStream_t stream);

// How an axis is resized: place_of and rounding of ops/movement/resize.h by number.
enum class ResizePlace : int { kHalfPixel, kPytorchHalfPixel, kAsymmetric, kAlignCorners };
enum class ResizeRounding : int { kPreferFloor, kPreferCeil, kFloor, kCeil };
struct ResizeShape {
  int rank;
  std::int64_t from[8], to[8];  // row-major
  bool linear;
  ResizePlace place;
  ResizeRounding rounding;
};
void resize(Element type, const ResizeShape& shape, const void* x, void* y, cudaStream_t stream);
// dx of shape `from` from dy of shape `to`.
void resize_gradient(Element type, const ResizeShape& shape, const void* dy, void* dx,
                     cudaStream_t stream);

// update_group.cu ---------------------------------------------------------------------------------

// Weights and moments, read and written; the latter may lie over the former.
struct AdamWGroup {
  static constexpr int kWeights = 16;
  const void* gradient[kWeights];
  const float *weight[kWeights], *first[kWeights], *second[kWeights];
  float *to_weight[kWeights], *to_first[kWeights], *to_second[kWeights];
  int count[kWeights];  // elements
};
struct AdamWFactors {
  double rate, log_beta1, log_beta2;
  float beta1, rest1, beta2, rest2;  // rest: 1 - beta
  float shrink, epsilon;
};
// The step is one that was counted up already.
void adamw_group(Element gradient, const AdamWGroup& group, const AdamWFactors& factors,
                 const std::int64_t* step, cudaStream_t stream);

// Running statistics of batch norms, and those of a batch. The former may be written over.
struct StatisticsGroup {
  static constexpr int kNorms = 16;
  const float *running_mean[kNorms], *running_variance[kNorms], *mean[kNorms], *variance[kNorms];
  float *to_mean[kNorms], *to_variance[kNorms];
  int channels[kNorms];
  float step_of_variance[kNorms];  // the step, times what makes a variance unbiased
};
void statistics_group(const StatisticsGroup& group, float keep, float step, cudaStream_t stream);

// cast_group.cu -----------------------------------------------------------------------------------

// From fp32 to bf16 or fp16.
struct CastGroup {
  static constexpr int kTensors = 16;
  const float* from[kTensors];
  void* to[kTensors];
  std::int64_t count[kTensors];
};
void cast_group(Element to, const CastGroup& group, cudaStream_t stream);

// encodings.cu ------------------------------------------------------------------------------------

// The bytes that the CPU's codecs write (codec/codec.h); what does not compress goes to the host.
// `sparse` takes the last 8 bytes of the buffer to count what is claimed.
void encode_activation(CodedForm form, const CodedActivation& activation, cudaStream_t stream);
void decode_activation(CodedForm form, const CodedActivation& activation, cudaStream_t stream);

// mask.cu -----------------------------------------------------------------------------------------

// Bit i (lowest first) of the mask: low < x[i] <= high, or low <= x[i] <= high when inclusive.
void mask_of_range(Element type, std::int64_t count, double low, double high, bool inclusive,
                   const void* x, void* mask, cudaStream_t stream);
void apply_mask(Element type, std::int64_t count, const void* x, const void* mask, void* y,
                cudaStream_t stream);

}  // namespace plimsoll::kernels::cuda
