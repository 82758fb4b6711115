// One scheme for everything that reduces: an operation says what it starts from, how it takes an
// element, how two partial results merge and what it writes at the end.
//
//   rows      a block per output; its threads stride over the reduced elements
//   columns   32 outputs x 8 lanes a block; lanes stride over the reduced elements
// Both may be split over several blocks; the partial results of the splits are merged in order by a
// second kernel. Every order is fixed by the shape: the same bits in every run.
#include <cmath>
#include <type_traits>

#include "plimsoll/kernels/cuda/elements.cuh"

namespace plimsoll::kernels::cuda {
namespace {

constexpr int kColumns = 32;
constexpr int kLanes = 8;

struct Place {
  std::int64_t element;
  std::int64_t also;
};

__device__ __forceinline__ Place place_of(const Walk& walk, std::int64_t index) {
  Place out{0, 0};
  auto rest = static_cast<std::uint32_t>(index);
  for (int axis = walk.rank - 1; axis > 0; --axis) {
    const std::uint32_t quotient = rest / walk.extents[axis];
    const std::uint32_t here = rest - quotient * walk.extents[axis];
    out.element += here * walk.steps[axis];
    out.also += here * walk.also[axis];
    rest = quotient;
  }
  out.element += rest * walk.steps[0];
  out.also += rest * walk.also[0];
  return out;
}

// One element on its way into a reduction.
struct Taken {
  std::int64_t at;         // its place
  std::int64_t statistic;  // the place of the statistic that belongs to it
  std::int64_t first;      // the place of the output's first element
  std::int64_t output, index;
};

struct Range {
  std::int64_t begin, end;
};
__device__ __forceinline__ Range split_range(const ReducePlan& plan, int split) {
  return {plan.count * split / plan.splits, plan.count * (split + 1) / plan.splits};
}

template <typename Op>
__device__ void take(const ReducePlan& plan, const Op& op, typename Op::State& state,
                     const Place& kept, std::int64_t o, std::int64_t r) {
  const Place reduced = place_of(plan.reduced, r);
  op.take(state, {kept.element + reduced.element, kept.also + reduced.also, kept.element, o, r});
}

template <typename Op>
__device__ void deliver(const ReducePlan& plan, const Op& op, const typename Op::State& state,
                        std::int64_t o, int split, void* scratch) {
  if (plan.splits == 1) {
    op.finish(state, o, place_of(plan.kept, o).element);
  } else {
    static_cast<typename Op::State*>(scratch)[split * plan.outputs + o] = state;
  }
}

template <typename Op>
__global__ void reduce_rows(ReducePlan plan, Op op, void* scratch) {
  __shared__ typename Op::State shared[kBlockThreads / 32];
  const std::int64_t o = blockIdx.x;
  const Place kept = place_of(plan.kept, o);
  const Range range = split_range(plan, blockIdx.y);
  typename Op::State state = op.start();
#pragma unroll 4  // loads of several elements at once
  for (std::int64_t r = range.begin + threadIdx.x; r < range.end; r += kBlockThreads)
    take(plan, op, state, kept, o, r);
  const auto merge = [&](const typename Op::State& a, const typename Op::State& b) {
    return op.merge(a, b);
  };
  const typename Op::State all = merge_block(state, shared, merge);
  if (threadIdx.x == 0) deliver(plan, op, all, o, blockIdx.y, scratch);
}

template <typename Op>
__global__ void reduce_columns(ReducePlan plan, Op op, void* scratch) {
  __shared__ typename Op::State shared[kLanes][kColumns];
  const std::int64_t o = blockIdx.x * static_cast<std::int64_t>(kColumns) + threadIdx.x;
  typename Op::State state = op.start();
  if (o < plan.outputs) {
    const Place kept = place_of(plan.kept, o);
    const Range range = split_range(plan, blockIdx.y);
#pragma unroll 4
    for (std::int64_t r = range.begin + threadIdx.y; r < range.end; r += kLanes)
      take(plan, op, state, kept, o, r);
  }
  shared[threadIdx.y][threadIdx.x] = state;
  __syncthreads();
  if (threadIdx.y != 0 || o >= plan.outputs) return;
  for (int lane = 1; lane < kLanes; ++lane) state = op.merge(state, shared[lane][threadIdx.x]);
  deliver(plan, op, state, o, blockIdx.y, scratch);
}

template <typename Op>
__global__ void merge_splits(ReducePlan plan, Op op, const void* scratch) {
  const auto* partial = static_cast<const typename Op::State*>(scratch);
  PLIMSOLL_GRID_LOOP(o, plan.outputs) {
    typename Op::State state = partial[o];
    for (int split = 1; split < plan.splits; ++split)
      state = op.merge(state, partial[split * plan.outputs + o]);
    op.finish(state, o, place_of(plan.kept, o).element);
  }
}

template <typename Op>
void reduce(const ReducePlan& plan, const Op& op, void* scratch, cudaStream_t stream) {
  static_assert(sizeof(typename Op::State) <= kPartialBytes, "scratch is counted for less");
  const auto splits = static_cast<unsigned>(plan.splits);
  if (plan.by_columns) {
    const auto blocks = static_cast<unsigned>((plan.outputs + kColumns - 1) / kColumns);
    reduce_columns<<<dim3(blocks, splits), dim3(kColumns, kLanes), 0, stream>>>(plan, op, scratch);
  } else {
    const auto blocks = static_cast<unsigned>(plan.outputs);
    reduce_rows<<<dim3(blocks, splits), kBlockThreads, 0, stream>>>(plan, op, scratch);
  }
  if (plan.splits > 1)
    merge_splits<<<blocks_for(plan.outputs), kBlockThreads, 0, stream>>>(plan, op, scratch);
}

// Folds -------------------------------------------------------------------------------------------

template <typename T, Fold how>
struct FoldOp {
  using Number = WideOf<T>;
  using State = Number;
  using Out = std::conditional_t<how == Fold::kSumSquares, float, T>;
  const T* x;
  Out* y;
  float scale;
  std::int64_t divisor;

  __device__ State start() const { return Number(how == Fold::kProduct ? 1 : 0); }
  static __device__ Number better(Number a, Number b) {
    const bool takes_b = how == Fold::kMax ? b > a : b < a;
    return takes_b || b != b ? b : a;
  }
  __device__ void take(State& state, const Taken& taken) const {
    const Number value = wide(x[taken.at]);
    if (how == Fold::kSumSquares) {
      state += value * value;
    } else {
      state = combine(state, value);
    }
  }
  static __device__ Number combine(Number a, Number b) {
    if (how == Fold::kProduct) return a * b;
    if (how == Fold::kMax || how == Fold::kMin) return a != a ? a : better(a, b);
    return a + b;
  }
  __device__ State merge(State a, State b) const { return combine(a, b); }
  __device__ void finish(State state, std::int64_t o, std::int64_t) const {
    if constexpr (std::is_same_v<Number, std::int64_t>) {
      y[o] = narrow<Out>(divisor > 1 ? state / divisor : state);
    } else {
      y[o] = narrow<Out>(state * scale);
    }
  }
};

// The neutral element of an extreme: below or above everything.
template <typename Number, bool largest>
__device__ Number neutral() {
  if constexpr (std::is_same_v<Number, std::int64_t>) {
    return largest ? INT64_MIN : INT64_MAX;
  } else {
    return largest ? -INFINITY : INFINITY;
  }
}

template <typename T, bool largest>
struct ExtremeOp : FoldOp<T, largest ? Fold::kMax : Fold::kMin> {
  __device__ typename FoldOp<T, largest ? Fold::kMax : Fold::kMin>::State start() const {
    return neutral<WideOf<T>, largest>();
  }
};

// Places of extremes ------------------------------------------------------------------------------

template <typename T, bool largest>
struct FindOp {
  using Number = WideOf<T>;
  struct State {
    Number value;
    std::int64_t at;  // -1: nothing yet
  };
  const T* x;
  std::int64_t* y;
  bool last;

  static __device__ bool is_less(Number a, Number b) { return a < b || (b != b && a == a); }
  __device__ State start() const { return {Number(0), -1}; }
  // Whether b, found behind a or before it, is to be preferred.
  __device__ State merge(const State& a, const State& b) const {
    if (a.at < 0) return b;
    if (b.at < 0) return a;
    const bool better = largest ? is_less(a.value, b.value) : is_less(b.value, a.value);
    const bool worse = largest ? is_less(b.value, a.value) : is_less(a.value, b.value);
    if (better || worse) return better ? b : a;
    return (a.at < b.at) == last ? b : a;
  }
  __device__ void take(State& state, const Taken& taken) const {
    state = merge(state, {wide(x[taken.at]), taken.index});
  }
  __device__ void finish(const State& state, std::int64_t o, std::int64_t) const {
    y[o] = state.at;
  }
};

// Moments -----------------------------------------------------------------------------------------

// Welford's update and Chan's merge, of differences from the first element: the variance of numbers
// far from zero keeps its digits. The mean is kept both ways, and the one that came of the smaller
// numbers is taken: one near zero would lose its digits in the first element's.
template <typename T>
struct MomentsOp {
  struct State {
    float count, plain, shifted, squares;
  };
  const T* x;
  float *mean, *variance;

  __device__ State start() const { return {0, 0, 0, 0}; }
  __device__ void take(State& state, const Taken& taken) const {
    const float value = wide(x[taken.at]);
    const float difference = value - wide(x[taken.first]);
    state.count += 1;
    const float share = __frcp_rn(state.count);
    const float delta = difference - state.shifted;
    state.plain += (value - state.plain) * share;
    state.shifted += delta * share;
    state.squares += delta * (difference - state.shifted);
  }
  __device__ State merge(const State& a, const State& b) const {
    const float count = a.count + b.count;
    if (count == 0) return a;
    const float delta = b.shifted - a.shifted;
    const float share = b.count / count;
    return {count, a.plain + (b.plain - a.plain) * share, a.shifted + delta * share,
            a.squares + b.squares + delta * delta * a.count * share};
  }
  __device__ void finish(const State& state, std::int64_t o, std::int64_t first) const {
    const bool near_zero = fabsf(state.plain) < fabsf(state.shifted);
    mean[o] = state.count > 0 && !near_zero ? wide(x[first]) + state.shifted : state.plain;
    variance[o] = state.count > 0 ? state.squares / state.count : 0;
  }
};

// Gradients of parameters -------------------------------------------------------------------------

struct Pair {
  float gamma, beta;
};

template <typename T, typename P>
struct BatchNormOp {
  using State = Pair;
  const T *dy, *x;
  const P *gamma, *beta;
  const float *mean, *variance;
  float epsilon;
  bool relu;
  P *dgamma, *dbeta;
  float* exact;
  std::int64_t channels;

  __device__ State start() const { return {0, 0}; }
  __device__ void take(State& state, const Taken& taken) const {
    const std::int64_t o = taken.output;
    const float normal = (wide(x[taken.at]) - mean[o]) * (1 / sqrtf(variance[o] + epsilon));
    float adjoint = wide(dy[taken.at]);
    if (relu && !(normal * wide(gamma[o]) + wide(beta[o]) > 0)) adjoint = 0;
    state.gamma += adjoint * normal;
    state.beta += adjoint;
  }
  __device__ State merge(const State& a, const State& b) const {
    return {a.gamma + b.gamma, a.beta + b.beta};
  }
  __device__ void finish(const State& state, std::int64_t o, std::int64_t) const {
    dgamma[o] = narrow<P>(state.gamma);
    dbeta[o] = narrow<P>(state.beta);
    exact[o] = state.gamma;
    exact[channels + o] = state.beta;
  }
};

template <typename T, typename P>
struct RowNormOp {
  using State = Pair;
  const T *dy, *x;
  const float *mean, *rstd;
  P *dgamma, *dbeta;

  __device__ State start() const { return {0, 0}; }
  __device__ void take(State& state, const Taken& taken) const {
    const float adjoint = wide(dy[taken.at]);
    const float value = wide(x[taken.at]);
    const float centred = mean == nullptr ? value : value - mean[taken.statistic];
    state.gamma += adjoint * (centred * rstd[taken.statistic]);
    state.beta += adjoint;
  }
  __device__ State merge(const State& a, const State& b) const {
    return {a.gamma + b.gamma, a.beta + b.beta};
  }
  __device__ void finish(const State& state, std::int64_t o, std::int64_t) const {
    dgamma[o] = narrow<P>(state.gamma);
    if (dbeta != nullptr) dbeta[o] = narrow<P>(state.beta);
  }
};

}  // namespace

void fold(Fold how, Element type, const ReducePlan& plan, const void* x, void* y, double scale,
          std::int64_t divisor, void* scratch, cudaStream_t stream) {
  const auto factor = static_cast<float>(scale);
  for_element(type, [&](auto element) {
    using T = decltype(element);
    const auto* from = static_cast<const T*>(x);
    auto* to = static_cast<T*>(y);
    switch (how) {
      case Fold::kSum:
        return reduce(plan, FoldOp<T, Fold::kSum>{from, to, factor, divisor}, scratch, stream);
      case Fold::kProduct:
        return reduce(plan, FoldOp<T, Fold::kProduct>{from, to, factor, divisor}, scratch, stream);
      case Fold::kMax:
        return reduce(plan, ExtremeOp<T, true>{{from, to, factor, divisor}}, scratch, stream);
      case Fold::kMin:
        return reduce(plan, ExtremeOp<T, false>{{from, to, factor, divisor}}, scratch, stream);
      case Fold::kSumSquares:
        return reduce(plan,
                      FoldOp<T, Fold::kSumSquares>{from, static_cast<float*>(y), factor, divisor},
                      scratch, stream);
    }
  });
}

void find_extreme(bool largest, bool last, Element type, const ReducePlan& plan, const void* x,
                  std::int64_t* y, void* scratch, cudaStream_t stream) {
  for_element(type, [&](auto element) {
    using T = decltype(element);
    const auto* from = static_cast<const T*>(x);
    if (largest) {
      reduce(plan, FindOp<T, true>{from, y, last}, scratch, stream);
    } else {
      reduce(plan, FindOp<T, false>{from, y, last}, scratch, stream);
    }
  });
}

void moments(Element type, const ReducePlan& plan, const void* x, float* mean, float* variance,
             void* scratch, cudaStream_t stream) {
  for_float(type, [&](auto element) {
    using T = decltype(element);
    reduce(plan, MomentsOp<T>{static_cast<const T*>(x), mean, variance}, scratch, stream);
  });
}

void batch_norm_sums(Element type, Element parameter, const ReducePlan& plan,
                     const BatchNormGradient& what, void* scratch, cudaStream_t stream) {
  for_parameter(type, parameter, [&](auto element, auto own) {
    using T = decltype(element);
    using P = decltype(own);
    reduce(plan,
           BatchNormOp<T, P>{static_cast<const T*>(what.dy), static_cast<const T*>(what.x),
                             static_cast<const P*>(what.gamma), static_cast<const P*>(what.beta),
                             what.mean, what.variance, static_cast<float>(what.epsilon), what.relu,
                             static_cast<P*>(what.dgamma), static_cast<P*>(what.dbeta), what.exact,
                             plan.outputs},
           scratch, stream);
  });
}

void row_norm_sums(Element type, Element parameter, const ReducePlan& plan,
                   const RowNormGradient& what, void* scratch, cudaStream_t stream) {
  for_parameter(type, parameter, [&](auto element, auto own) {
    using T = decltype(element);
    using P = decltype(own);
    reduce(plan,
           RowNormOp<T, P>{static_cast<const T*>(what.dy), static_cast<const T*>(what.x), what.mean,
                           what.rstd, static_cast<P*>(what.dgamma), static_cast<P*>(what.dbeta)},
           scratch, stream);
  });
}

}  // namespace plimsoll::kernels::cuda
