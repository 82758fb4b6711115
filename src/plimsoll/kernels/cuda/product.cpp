#include "plimsoll/kernels/cuda/product.h"

#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <cublasLt.h>

namespace plimsoll::kernels::cuda {
namespace {

constexpr std::size_t kMostWorkspace = std::size_t{32} << 20;
constexpr int kMostListed = 64;  // among which an algorithm is looked for by name
// Sums of parts of k: none, or in one pass behind the product; never in place, by atomics.
constexpr std::uint32_t kSchemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;

cudaDataType_t blas_type(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kBF16:
      return CUDA_R_16BF;
    case ir::DType::kF16:
      return CUDA_R_16F;
    default:
      return CUDA_R_32F;
  }
}

// One per process: it is safe on several threads and belongs to no stream.
Result<cublasLtHandle_t> blas_handle() {
  static cublasLtHandle_t handle = nullptr;
  static const cublasStatus_t made = cublasLtCreate(&handle);
  if (made != CUBLAS_STATUS_SUCCESS)
    return fail(ErrorCode::kDevice, "cuBLASLt: {}", cublasLtGetStatusString(made));
  return handle;
}

// What cuBLASLt calls a matrix is column-major: our C[m,n] is its [n,m], and our B its first
// operand.
cublasLtMatrixLayout_t matrix(ir::DType dtype, std::int64_t rows, std::int64_t columns,
                              std::int64_t row_step, std::int64_t batch, std::int64_t step) {
  cublasLtMatrixLayout_t out = nullptr;
  cublasLtMatrixLayoutCreate(&out, blas_type(dtype), static_cast<std::uint64_t>(columns),
                             static_cast<std::uint64_t>(rows), row_step);
  const auto count = static_cast<std::int32_t>(batch);
  cublasLtMatrixLayoutSetAttribute(out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count));
  cublasLtMatrixLayoutSetAttribute(out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step,
                                   sizeof(step));
  return out;
}

}  // namespace

struct Product::State {
  ProductShape shape;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr;
  cublasLtMatrixLayout_t b = nullptr;
  cublasLtMatrixLayout_t c = nullptr;
  cublasLtMatmulHeuristicResult_t chosen{};

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (operation != nullptr) cublasLtMatmulDescDestroy(operation);
    for (cublasLtMatrixLayout_t layout : {a, b, c}) {
      if (layout != nullptr) cublasLtMatrixLayoutDestroy(layout);
    }
  }

  template <typename Value>
  void set(cublasLtMatmulDescAttributes_t attribute, const Value& value) {
    cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof(value));
  }

  void describe(bool tf32) {
    const bool fast = tf32 && shape.dtype == ir::DType::kF32;
    cublasLtMatmulDescCreate(&operation, fast ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                             CUDA_R_32F);
    set(CUBLASLT_MATMUL_DESC_TRANSA, shape.turned_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, shape.turned_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (shape.bias) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, blas_type(shape.result));
    }
    const auto stored = [&](bool turned, std::int64_t rows, std::int64_t columns, std::int64_t row,
                            std::int64_t step) {
      return matrix(shape.dtype, turned ? columns : rows, turned ? rows : columns, row, shape.batch,
                    step);
    };
    a = stored(shape.turned_a, shape.m, shape.k, shape.row_a, shape.step_a);
    b = stored(shape.turned_b, shape.k, shape.n, shape.row_b, shape.step_b);
    c = matrix(shape.result, shape.m, shape.n, shape.row_c, shape.batch, shape.step_c);
  }

  // The library's own list, best first, without those that add up in place.
  std::vector<cublasLtMatmulHeuristicResult_t> listed(int most) const {
    cublasLtMatmulPreference_t preference = nullptr;
    cublasLtMatmulPreferenceCreate(&preference);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value));
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspace);
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, kSchemes);
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      prefer(attribute, static_cast<std::uint32_t>(shape.alignment));
    std::vector<cublasLtMatmulHeuristicResult_t> out(static_cast<std::size_t>(most));
    int found = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle, operation, b, a, c, c, preference, most, out.data(), &found);
    cublasLtMatmulPreferenceDestroy(preference);
    out.resize(status == CUBLAS_STATUS_SUCCESS ? static_cast<std::size_t>(found) : 0);
    return out;
  }

  Status choose() {
    const std::vector<cublasLtMatmulHeuristicResult_t> best = listed(1);
    if (best.empty() || best.front().state != CUBLAS_STATUS_SUCCESS)
      return fail(ErrorCode::kDevice, "cuBLASLt has no algorithm for a product of {} x {} x {}",
                  shape.m, shape.n, shape.k);
    chosen = best.front();
    return {};
  }

  // An algorithm that another run took: one of the list, and nothing that a file makes up.
  Status take(const std::string& engine) {
    const std::optional<BlasAlgorithm> wanted = parse_blas_algorithm(engine);
    if (!wanted) return no_such_engine("cuBLASLt", engine);
    for (const cublasLtMatmulHeuristicResult_t& one : listed(kMostListed)) {
      if (one.state != CUBLAS_STATUS_SUCCESS || configuration_of(one) != *wanted) continue;
      chosen = one;
      return {};
    }
    return no_such_engine("cuBLASLt", engine);
  }

  static BlasAlgorithm configuration_of(const cublasLtMatmulHeuristicResult_t& one) {
    constexpr std::array kAttributes = {CUBLASLT_ALGO_CONFIG_ID,
                                        CUBLASLT_ALGO_CONFIG_TILE_ID,
                                        CUBLASLT_ALGO_CONFIG_SPLITK_NUM,
                                        CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME,
                                        CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING,
                                        CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION,
                                        CUBLASLT_ALGO_CONFIG_STAGES_ID,
                                        CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID,
                                        CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID};
    BlasAlgorithm out{};
    static_assert(kAttributes.size() == std::tuple_size_v<BlasAlgorithm>);
    for (std::size_t i = 0; i < out.size(); ++i) {
      // Two of them have 16 bits, the others 32.
      const bool narrow = kAttributes[i] == CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID ||
                          kAttributes[i] == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID;
      std::uint16_t half = 0;
      std::size_t written = 0;
      cublasLtMatmulAlgoConfigGetAttribute(&one.algo, kAttributes[i],
                                           narrow ? static_cast<void*>(&half) : &out[i],
                                           narrow ? sizeof(half) : sizeof(out[i]), &written);
      if (narrow) out[i] = half;
    }
    return out;
  }
};

Product::Product(std::unique_ptr<State> state) : state_(std::move(state)) {}
Product::Product(Product&&) noexcept = default;
Product& Product::operator=(Product&&) noexcept = default;
Product::~Product() = default;

Result<Product> Product::make(const ProductShape& shape, const CudaKernelOptions& options) {
  auto state = std::make_unique<State>();
  state->shape = shape;
  if (shape.k > 0) {
    PLIMSOLL_TRY(state->handle, blas_handle());
    state->describe(options.tf32);
    // The address itself comes with every run; here it says that there will be one.
    if (shape.bias)
      state->set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<const void*>(shape.alignment));
    const auto wanted = options.engines ? options.engines->next() : std::nullopt;
    PLIMSOLL_RETURN_IF_ERROR(wanted ? state->take(*wanted) : state->choose());
    if (options.engines) options.engines->took(to_string(State::configuration_of(state->chosen)));
  }
  return Product(std::move(state));
}

Bytes Product::workspace() const {
  return Bytes(static_cast<std::int64_t>(state_->chosen.workspaceSize));
}

void Product::run(cudaStream_t stream, const std::byte* a, const std::byte* b,
                  const std::byte* bias, std::byte* c, std::byte* workspace, float beta) const {
  State& state = *state_;
  const ProductShape& shape = state.shape;
  if (shape.k == 0) {
    // Never with a bias: linear layers without inputs are made of it alone (matmul.cpp).
    if (beta == 0) {
      const auto row = static_cast<std::size_t>(shape.n * width_of(shape.result));
      const auto pitch = static_cast<std::size_t>(shape.row_c * width_of(shape.result));
      for (std::int64_t i = 0; i < shape.batch; ++i) {
        cudaMemset2DAsync(c + i * shape.step_c * width_of(shape.result), pitch, 0, row,
                          static_cast<std::size_t>(shape.m), stream);
      }
    }
    return;
  }
  if (shape.bias) state.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(bias));
  const auto alpha = static_cast<float>(shape.alpha);
  const cublasStatus_t status = cublasLtMatmul(
      state.handle, state.operation, &alpha, b, state.b, a, state.a, &beta, c, state.c, c, state.c,
      &state.chosen.algo, workspace, state.chosen.workspaceSize, stream);
  PLIMSOLL_CHECK(status == CUBLAS_STATUS_SUCCESS, "cuBLASLt: {}", cublasLtGetStatusString(status));
}

}  // namespace plimsoll::kernels::cuda
