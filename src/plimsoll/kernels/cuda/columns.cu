// Matrices [rows, columns] whose columns are neighbours in memory, 16 bytes to a load: sums over
// the rows (statistics and gradients of batch norm, gradients of biases and of row norms), and the
// passes of batch norm that follow them. Tensors that lie channels last are such matrices.
//
//   a block      256 threads: `across` groups of 16 bytes side by side x 256 / across lanes of rows
//   a thread     keeps its 4 or 8 columns (their parameters stand in registers) and walks over rows
//   sums         `splits` blocks take rows in turn, by shape alone; partial results lie in scratch
//                and are merged in a fixed order by a second kernel: the same bits in every run
//   passes       begin with the last rows: sums ended there, and they are still in the cache
//
// Several rows are loaded before the first is used, so that memory is kept busy: results may lie
// over an operand, and a compiler may not move a load over a store.
#include <cmath>

#include "plimsoll/kernels/cuda/elements.cuh"
#include "plimsoll/kernels/cuda/vectors.cuh"

namespace plimsoll::kernels::cuda {
namespace {

constexpr int kColumnThreads = 256;
constexpr int kSumUnroll = 4;
constexpr int kMergeWidth = 32;
constexpr int kMergeUnroll = 8;

// The columns and rows of one thread.
struct Corner {
  std::int64_t column;
  int lane, lanes, across;
  bool alive;
};

template <int size>
__device__ __forceinline__ Corner corner_of(const ColumnShape& shape) {
  Corner out{};
  out.across = shape.across;
  out.lanes = kColumnThreads / shape.across;
  out.lane = threadIdx.x / shape.across;
  out.column =
      (blockIdx.x * static_cast<std::int64_t>(shape.across) + threadIdx.x % shape.across) * size;
  out.alive = out.column < shape.columns;
  return out;
}

// The rows begin, begin + step, ... below end, kUnroll of them loaded at a time. What a thread
// knows of its columns is read (prepare) while its first rows are on their way.
template <int kUnroll, typename Loaded, typename Load, typename Prepare, typename Take>
__device__ __forceinline__ void walk_rows(std::int64_t begin, std::int64_t end, std::int64_t step,
                                          const Load& load, const Prepare& prepare,
                                          const Take& take) {
  Loaded loaded[kUnroll];
  const auto load_some = [&](std::int64_t row) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (row + u * step < end) load(loaded[u], row + u * step);
    }
  };
  load_some(begin);
  prepare();
  for (std::int64_t row = begin; row < end; row += kUnroll * step) {
    if (row != begin) load_some(row);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (row + u * step < end) take(loaded[u], row + u * step);
    }
  }
}

// Sums --------------------------------------------------------------------------------------------

// An operation has: State, one per column, with state() and merge(); Sums, what a thread keeps for
// its columns; Loaded, what it needs of one row; Known, what finish() needs of memory, loaded
// ahead. state(sums, v) is what was summed for column v.
template <typename Op>
__global__ void __launch_bounds__(kColumnThreads, 3)
    sum_columns(ColumnShape shape, Op op, typename Op::State* partial) {
  constexpr int kSize = Op::kSize;
  __shared__ typename Op::State shared[kSize][kColumnThreads];
  const Corner corner = corner_of<kSize>(shape);
  const std::int64_t begin = blockIdx.y * static_cast<std::int64_t>(corner.lanes) + corner.lane;
  const std::int64_t end = corner.alive ? shape.rows : 0;
  const std::int64_t step = static_cast<std::int64_t>(corner.lanes) * shape.splits;
  typename Op::Sums sums;
  walk_rows<Op::kUnroll, typename Op::Loaded>(
      begin, end, step,
      [&](auto& loaded, std::int64_t row) { op.load(loaded, row, corner.column); },
      [&] { op.start(sums, corner, begin, begin < end); },
      [&](const auto& loaded, std::int64_t) { op.take(sums, loaded); });
  typename Op::State own[kSize];
#pragma unroll
  for (int v = 0; v < kSize; ++v) own[v] = Op::state(sums, v);
  // The upper half of the lanes that are left gives its states to the lower half.
  for (int half = corner.lanes / 2; half > 0; half /= 2) {
    if (corner.lane >= half && corner.lane < 2 * half) {
#pragma unroll
      for (int v = 0; v < kSize; ++v) shared[v][threadIdx.x] = own[v];
    }
    __syncthreads();
    if (corner.lane < half) {
#pragma unroll
      for (int v = 0; v < kSize; ++v)
        own[v] = Op::merge(own[v], shared[v][threadIdx.x + half * corner.across]);
    }
  }
  if (corner.lane == 0 && corner.alive) {
#pragma unroll
    for (int v = 0; v < kSize; ++v)
      partial[blockIdx.y * shape.columns + corner.column + v] = own[v];
  }
}

template <typename Op>
__global__ void __launch_bounds__(kMergeWidth* kMergeWidth)
    merge_columns(ColumnShape shape, Op op, const typename Op::State* partial) {
  __shared__ typename Op::State shared[kMergeWidth][kMergeWidth];
  const std::int64_t column = blockIdx.x * static_cast<std::int64_t>(kMergeWidth) + threadIdx.x;
  typename Op::State state = Op::none();
  typename Op::Known known{};
  if (threadIdx.y == 0 && column < shape.columns) known = op.known(column);
  // A block waits for its loads and for little else, so it has many of them on their way.
  const int end = column < shape.columns ? shape.splits : 0;
  for (int split = threadIdx.y; split < end; split += kMergeUnroll * kMergeWidth) {
    typename Op::State loaded[kMergeUnroll];
#pragma unroll
    for (int u = 0; u < kMergeUnroll; ++u) {
      if (split + u * kMergeWidth < end)
        loaded[u] = partial[(split + u * kMergeWidth) * shape.columns + column];
    }
#pragma unroll
    for (int u = 0; u < kMergeUnroll; ++u) {
      if (split + u * kMergeWidth < end) state = Op::merge(state, loaded[u]);
    }
  }
  shared[threadIdx.y][threadIdx.x] = state;
  for (int half = kMergeWidth / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y < half) {
      shared[threadIdx.y][threadIdx.x] =
          Op::merge(shared[threadIdx.y][threadIdx.x], shared[threadIdx.y + half][threadIdx.x]);
    }
  }
  if (threadIdx.y == 0 && column < shape.columns) op.finish(shared[0][threadIdx.x], known, column);
}

template <typename Op>
void sum_rows(const ColumnShape& shape, const Op& op, void* scratch, cudaStream_t stream) {
  static_assert(sizeof(typename Op::State) <= kPartialBytes, "scratch is counted for less");
  auto* partial = static_cast<typename Op::State*>(scratch);
  const std::int64_t groups = (shape.columns + Op::kSize - 1) / Op::kSize;
  const auto blocks = static_cast<unsigned>((groups + shape.across - 1) / shape.across);
  sum_columns<<<dim3(blocks, static_cast<unsigned>(shape.splits)), kColumnThreads, 0, stream>>>(
      shape, op, partial);
  const auto merging = static_cast<unsigned>((shape.columns + kMergeWidth - 1) / kMergeWidth);
  merge_columns<<<merging, dim3(kMergeWidth, kMergeWidth), 0, stream>>>(shape, op, partial);
}

// Mean and variance. A thread sums differences from the first element that it sees, and what
// threads found is merged by Chan's formula, as differences from the column's first element and as
// they are: the variance of numbers far from zero keeps its digits, and so does a mean near zero
// (MomentsOp in reduction.cu).
template <typename T>
struct ColumnMoments {
  static constexpr int kSize = kVectorSize<T>;
  static constexpr int kUnroll = kSumUnroll;
  struct State {
    float count, plain, shifted, squares;
  };
  struct Sums {
    float base[kSize], first[kSize], second[kSize];
    float count;
    Vector<T> origin;  // the first row
  };
  using Loaded = Vector<T>;
  using Known = float;  // the column's first element
  const T* x;
  std::int64_t step;
  float *mean, *variance;

  __device__ void start(Sums& sums, const Corner& corner, std::int64_t row, bool any) const {
    sums.count = 0;
    Vector<T> base{};
    if (any) {
      base.load(x + row * step + corner.column);
      sums.origin.load(x + corner.column);
    }
#pragma unroll
    for (int v = 0; v < kSize; ++v) {
      sums.base[v] = base.at(v);
      sums.first[v] = sums.second[v] = 0;
    }
  }
  __device__ void load(Loaded& loaded, std::int64_t row, std::int64_t column) const {
    loaded.load(x + row * step + column);
  }
  __device__ void take(Sums& sums, const Loaded& loaded) const {
    sums.count += 1;
#pragma unroll
    for (int v = 0; v < kSize; ++v) {
      const float difference = loaded.at(v) - sums.base[v];
      sums.first[v] += difference;
      sums.second[v] += difference * difference;
    }
  }
  static __device__ State none() {
    return {0, 0, 0, 0};
  }
  static __device__ State state(const Sums& sums, int v) {
    if (sums.count == 0) return none();
    const float average = sums.first[v] / sums.count;
    const float squares = sums.second[v] - sums.first[v] * average;
    return {sums.count, sums.base[v] + average, (sums.base[v] - sums.origin.at(v)) + average,
            squares < 0 ? 0 : squares};
  }
  static __device__ State merge(const State& a, const State& b) {
    const float count = a.count + b.count;
    if (count == 0) return a;
    const float delta = b.shifted - a.shifted;
    const float share = b.count / count;
    return {count, a.plain + (b.plain - a.plain) * share, a.shifted + delta * share,
            a.squares + b.squares + delta * delta * a.count * share};
  }
  __device__ Known known(std::int64_t column) const {
    return wide(x[column]);
  }
  __device__ void finish(const State& state, Known origin, std::int64_t column) const {
    const bool near_zero = fabsf(state.plain) < fabsf(state.shifted);
    mean[column] = state.count > 0 && !near_zero ? origin + state.shifted : state.plain;
    variance[column] = state.count > 0 ? state.squares / state.count : 0;
  }
};

struct PairOfSums {
  float gamma, beta;
};

// Sums of one or two terms of every element.
template <typename T>
struct PairSums {
  static constexpr int kSize = kVectorSize<T>;
  using State = PairOfSums;
  struct Known {};
  struct Sums {
    float gamma[kSize], beta[kSize];
  };
  static __device__ Known known(std::int64_t) { return {}; }
  static __device__ State none() { return {0, 0}; }
  static __device__ State state(const Sums& sums, int v) { return {sums.gamma[v], sums.beta[v]}; }
  static __device__ State merge(const State& a, const State& b) {
    return {a.gamma + b.gamma, a.beta + b.beta};
  }
  static __device__ void clear(Sums& sums) {
#pragma unroll
    for (int v = 0; v < kSize; ++v) sums.gamma[v] = sums.beta[v] = 0;
  }
};

// What batch norm makes of x in its columns.
template <typename T, typename P>
struct ChannelLines {
  static constexpr int kSize = kVectorSize<T>;
  float mean[kSize], rstd[kSize], gamma[kSize], beta[kSize];

  __device__ void read(const BatchNormParameters& from, std::int64_t column) {
#pragma unroll
    for (int v = 0; v < kSize; ++v) {
      mean[v] = from.mean[column + v];
      rstd[v] = 1 / sqrtf(from.variance[column + v] + from.epsilon);
      gamma[v] = wide(static_cast<const P*>(from.gamma)[column + v]);
      beta[v] = wide(static_cast<const P*>(from.beta)[column + v]);
    }
  }
  __device__ float normal(int v, float x) const {
    return (x - mean[v]) * rstd[v];
  }
  __device__ float line(int v, float normal) const {
    return normal * gamma[v] + beta[v];
  }
};

// dgamma = the sum of dy' * normal, dbeta = the sum of dy'; dy' is 0 where relu cut off.
template <typename T, typename P, bool relu>
struct BatchNormSums : PairSums<T> {
  static constexpr int kUnroll = PairSums<T>::kSize > 4 ? 2 : 4;
  using Known = typename PairSums<T>::Known;
  struct Sums : PairSums<T>::Sums {
    ChannelLines<T, P> lines;
  };
  struct Loaded {
    Vector<T> x, dy;
  };
  const T *x, *dy;
  BatchNormParameters parameters;
  P *dgamma, *dbeta;
  float* exact;
  std::int64_t columns;

  __device__ void start(Sums& sums, const Corner& corner, std::int64_t, bool) const {
    this->clear(sums);
    if (corner.alive) sums.lines.read(parameters, corner.column);
  }
  __device__ void load(Loaded& loaded, std::int64_t row, std::int64_t column) const {
    loaded.x.load(x + row * columns + column);
    loaded.dy.load(dy + row * columns + column);
  }
  __device__ void take(Sums& sums, const Loaded& loaded) const {
#pragma unroll
    for (int v = 0; v < PairSums<T>::kSize; ++v) {
      const float normal = sums.lines.normal(v, loaded.x.at(v));
      float adjoint = loaded.dy.at(v);
      if (relu && !(sums.lines.line(v, normal) > 0)) adjoint = 0;
      sums.gamma[v] += adjoint * normal;
      sums.beta[v] += adjoint;
    }
  }
  __device__ void finish(const PairOfSums& state, Known, std::int64_t column) const {
    dgamma[column] = narrow<P>(state.gamma);
    dbeta[column] = narrow<P>(state.beta);
    exact[column] = state.gamma;
    exact[columns + column] = state.beta;
  }
};

template <typename T>
struct PlainSums : PairSums<T> {
  static constexpr int kUnroll = kSumUnroll;
  using Known = typename PairSums<T>::Known;
  using Sums = typename PairSums<T>::Sums;
  using Loaded = Vector<T>;
  const T* x;
  std::int64_t step;
  T* y;

  __device__ void start(Sums& sums, const Corner&, std::int64_t, bool) const { this->clear(sums); }
  __device__ void load(Loaded& loaded, std::int64_t row, std::int64_t column) const {
    loaded.load(x + row * step + column);
  }
  __device__ void take(Sums& sums, const Loaded& loaded) const {
#pragma unroll
    for (int v = 0; v < PairSums<T>::kSize; ++v) sums.beta[v] += loaded.at(v);
  }
  __device__ void finish(const PairOfSums& state, Known, std::int64_t column) const {
    y[column] = narrow<T>(state.beta);
  }
};

template <typename T, typename P>
struct RowNormSums : PairSums<T> {
  static constexpr int kUnroll = 2;
  using Known = typename PairSums<T>::Known;
  using Sums = typename PairSums<T>::Sums;
  struct Loaded {
    Vector<T> x, dy;
    float centre, scale;
  };
  const T *dy, *x;
  std::int64_t step;
  const float *mean, *rstd;
  P *dgamma, *dbeta;

  __device__ void start(Sums& sums, const Corner&, std::int64_t, bool) const { this->clear(sums); }
  __device__ void load(Loaded& loaded, std::int64_t row, std::int64_t column) const {
    loaded.x.load(x + row * step + column);
    loaded.dy.load(dy + row * step + column);
    loaded.centre = mean == nullptr ? 0 : mean[row];
    loaded.scale = rstd[row];
  }
  __device__ void take(Sums& sums, const Loaded& loaded) const {
#pragma unroll
    for (int v = 0; v < PairSums<T>::kSize; ++v) {
      const float adjoint = loaded.dy.at(v);
      sums.gamma[v] += adjoint * ((loaded.x.at(v) - loaded.centre) * loaded.scale);
      sums.beta[v] += adjoint;
    }
  }
  __device__ void finish(const PairOfSums& state, Known, std::int64_t column) const {
    dgamma[column] = narrow<P>(state.gamma);
    if (dbeta != nullptr) dbeta[column] = narrow<P>(state.beta);
  }
};

// Passes ------------------------------------------------------------------------------------------

constexpr int kPassUnroll = 4;
constexpr std::int64_t kMostRowsOfThread = 16;
constexpr std::int64_t kLeastRowsOfThread = 4;
constexpr std::int64_t kEnoughPassBlocks = 528;  // four for each multiprocessor of an H200

// One pass over the elements. An operation has Lines, what a thread keeps for its columns, Loaded,
// and make(lines, loaded): the vector to be stored.
template <typename Op>
__global__ void __launch_bounds__(kColumnThreads)
    pass_columns(ColumnShape shape, Op op, std::int64_t rows_of_thread) {
  const Corner corner = corner_of<Op::kSize>(shape);
  if (!corner.alive) return;
  typename Op::Lines lines;
  const std::int64_t step = corner.lanes;
  const std::int64_t piece = gridDim.y - 1 - blockIdx.y;
  const std::int64_t begin = piece * step * rows_of_thread + corner.lane;
  const std::int64_t stop = (piece + 1) * step * rows_of_thread;
  const std::int64_t end = stop < shape.rows ? stop : shape.rows;
  walk_rows<Op::kUnroll, typename Op::Loaded>(
      begin, end, step,
      [&](auto& loaded, std::int64_t row) { op.load(loaded, row * shape.columns + corner.column); },
      [&] { op.read(lines, corner.column); },
      [&](const auto& loaded, std::int64_t row) {
        op.store(lines, loaded, row * shape.columns + corner.column);
      });
}

template <typename Op>
void pass_rows(const ColumnShape& shape, const Op& op, cudaStream_t stream) {
  const std::int64_t groups = (shape.columns + Op::kSize - 1) / Op::kSize;
  const std::int64_t lanes = kColumnThreads / shape.across;
  const auto blocks = static_cast<unsigned>((groups + shape.across - 1) / shape.across);
  const auto down = [&](std::int64_t rows_of_thread) {
    const std::int64_t each = lanes * rows_of_thread;
    return static_cast<unsigned>((shape.rows + each - 1) / each);
  };
  // Small planes go to more threads of fewer rows: half of a card would wait for the other.
  std::int64_t rows = kMostRowsOfThread;
  while (rows > kLeastRowsOfThread &&
         blocks * static_cast<std::int64_t>(down(rows)) < kEnoughPassBlocks)
    rows /= 2;
  pass_columns<<<dim3(blocks, down(rows)), kColumnThreads, 0, stream>>>(shape, op, rows);
}

// y = gamma * (x - mean) * rstd + beta, plus another tensor, cut at 0.
template <typename T, typename P, bool adds>
struct BatchNormPass {
  static constexpr int kSize = kVectorSize<T>;
  static constexpr int kUnroll = kPassUnroll;
  using Lines = ChannelLines<T, P>;
  struct Loaded {
    Vector<T> x, other;
  };
  const T *x, *other;
  BatchNormParameters parameters;
  bool relu;
  T* y;

  __device__ void read(Lines& lines, std::int64_t column) const { lines.read(parameters, column); }
  __device__ void load(Loaded& loaded, std::int64_t at) const {
    loaded.x.load(x + at);
    if (adds) loaded.other.load(other + at);
  }
  __device__ void store(const Lines& lines, const Loaded& loaded, std::int64_t at) const {
    Vector<T> out;
#pragma unroll
    for (int v = 0; v < kSize; ++v) {
      float line = lines.line(v, lines.normal(v, loaded.x.at(v)));
      if (adds) line += loaded.other.at(v);
      out.set(v, relu && line < 0 ? 0 : line);
    }
    out.store(y + at);
  }
};

// dx = gamma * rstd * (dy' - (dbeta + normal * dgamma) / rows)
template <typename T, typename P, bool relu>
struct BatchNormGradientPass {
  static constexpr int kSize = kVectorSize<T>;
  static constexpr int kUnroll = 2;
  struct Lines : ChannelLines<T, P> {
    float mean_gamma[kSize], mean_beta[kSize];
  };
  struct Loaded {
    Vector<T> x, dy;
  };
  const T *x, *dy;
  BatchNormParameters parameters;
  const float* exact;
  std::int64_t columns;
  float share;  // 1 / rows
  T* dx;

  __device__ void read(Lines& lines, std::int64_t column) const {
    lines.read(parameters, column);
#pragma unroll
    for (int v = 0; v < kSize; ++v) {
      lines.mean_gamma[v] = exact[column + v] * share;
      lines.mean_beta[v] = exact[columns + column + v] * share;
    }
  }
  __device__ void load(Loaded& loaded, std::int64_t at) const {
    loaded.x.load(x + at);
    loaded.dy.load(dy + at);
  }
  __device__ void store(const Lines& lines, const Loaded& loaded, std::int64_t at) const {
    Vector<T> out;
#pragma unroll
    for (int v = 0; v < kSize; ++v) {
      const float normal = lines.normal(v, loaded.x.at(v));
      float adjoint = loaded.dy.at(v);
      if (relu && !(lines.line(v, normal) > 0)) adjoint = 0;
      out.set(v, lines.gamma[v] * lines.rstd[v] *
                     (adjoint - (lines.mean_beta[v] + normal * lines.mean_gamma[v])));
    }
    out.store(dx + at);
  }
};

}  // namespace

void column_moments(Element type, const ColumnShape& shape, const void* x, float* mean,
                    float* variance, void* scratch, cudaStream_t stream) {
  for_float(type, [&](auto element) {
    using T = decltype(element);
    sum_rows(shape, ColumnMoments<T>{static_cast<const T*>(x), shape.step, mean, variance}, scratch,
             stream);
  });
}

void column_sums(Element type, const ColumnShape& shape, const void* x, void* y, void* scratch,
                 cudaStream_t stream) {
  for_float(type, [&](auto element) {
    using T = decltype(element);
    PlainSums<T> op{};
    op.x = static_cast<const T*>(x);
    op.step = shape.step;
    op.y = static_cast<T*>(y);
    sum_rows(shape, op, scratch, stream);
  });
}

void column_row_norm_sums(Element type, Element parameter, const ColumnShape& shape,
                          const RowNormGradient& what, void* scratch, cudaStream_t stream) {
  for_parameter(type, parameter, [&](auto element, auto own) {
    using T = decltype(element);
    using P = decltype(own);
    RowNormSums<T, P> op{};
    op.dy = static_cast<const T*>(what.dy);
    op.x = static_cast<const T*>(what.x);
    op.step = shape.step;
    op.mean = what.mean;
    op.rstd = what.rstd;
    op.dgamma = static_cast<P*>(what.dgamma);
    op.dbeta = static_cast<P*>(what.dbeta);
    sum_rows(shape, op, scratch, stream);
  });
}

void column_batch_norm(Element type, Element parameter, const ColumnShape& shape,
                       const BatchNormParameters& parameters, const void* x, const void* other,
                       bool relu, void* y, cudaStream_t stream) {
  for_parameter(type, parameter, [&](auto element, auto own) {
    using T = decltype(element);
    using P = decltype(own);
    const auto* from = static_cast<const T*>(x);
    const auto* beside = static_cast<const T*>(other);
    auto* to = static_cast<T*>(y);
    if (other == nullptr) {
      pass_rows(shape, BatchNormPass<T, P, false>{from, beside, parameters, relu, to}, stream);
    } else {
      pass_rows(shape, BatchNormPass<T, P, true>{from, beside, parameters, relu, to}, stream);
    }
  });
}

namespace {

template <typename T, typename P, bool relu>
void batch_norm_gradient_of(const ColumnShape& shape, const BatchNormParameters& parameters,
                            const ColumnBatchNormGradient& what, void* scratch,
                            cudaStream_t stream) {
  BatchNormSums<T, P, relu> sums{};
  sums.x = static_cast<const T*>(what.x);
  sums.dy = static_cast<const T*>(what.dy);
  sums.parameters = parameters;
  sums.dgamma = static_cast<P*>(what.dgamma);
  sums.dbeta = static_cast<P*>(what.dbeta);
  sums.exact = what.exact;
  sums.columns = shape.columns;
  sum_rows(shape, sums, scratch, stream);
  BatchNormGradientPass<T, P, relu> pass{};
  pass.x = sums.x;
  pass.dy = sums.dy;
  pass.parameters = parameters;
  pass.exact = what.exact;
  pass.columns = shape.columns;
  pass.share = 1.0F / static_cast<float>(shape.rows);
  pass.dx = static_cast<T*>(what.dx);
  pass_rows(shape, pass, stream);
}

}  // namespace

void column_batch_norm_gradient(Element type, Element parameter, const ColumnShape& shape,
                                const BatchNormParameters& parameters,
                                const ColumnBatchNormGradient& what, void* scratch,
                                cudaStream_t stream) {
  for_parameter(type, parameter, [&](auto element, auto own) {
    using T = decltype(element);
    using P = decltype(own);
    if (what.relu) {
      batch_norm_gradient_of<T, P, true>(shape, parameters, what, scratch, stream);
    } else {
      batch_norm_gradient_of<T, P, false>(shape, parameters, what, scratch, stream);
    }
  });
}

}  // namespace plimsoll::kernels::cuda
