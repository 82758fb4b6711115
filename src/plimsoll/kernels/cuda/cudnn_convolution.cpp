#include "plimsoll/kernels/cuda/cudnn_convolution.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include <cudnn.h>
#include <fmt/ranges.h>

// Attributes that cuDNN 9.19 no longer asks for and earlier versions need.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace plimsoll::kernels::cuda {
namespace {

constexpr std::int64_t kLeastWorkspaceLimit = std::int64_t{32} << 20;
constexpr std::int64_t kTensorAlignment = 64;
constexpr std::int64_t kIdX = 'x';
constexpr std::int64_t kIdW = 'w';
constexpr std::int64_t kIdY = 'y';

// A handle belongs to a device; the lock holds from choosing its stream to the launch.
struct DnnHandle {
  cudnnHandle_t handle = nullptr;
  std::mutex mutex;
};

Result<DnnHandle*> dnn_handle(int device) {
  static std::mutex mutex;
  static std::map<int, DnnHandle> handles;
  const std::lock_guard lock(mutex);
  DnnHandle& out = handles[device];
  if (out.handle == nullptr) {
    if (const cudnnStatus_t status = cudnnCreate(&out.handle); status != CUDNN_STATUS_SUCCESS) {
      out.handle = nullptr;
      return fail(ErrorCode::kDevice, "cuDNN: {}", cudnnGetErrorString(status));
    }
  }
  return &out;
}

// One backend descriptor. The first attribute that is refused makes it unusable.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    good_ = cudnnBackendCreateDescriptor(type, &raw_) == CUDNN_STATUS_SUCCESS;
  }
  Descriptor(Descriptor&& other) noexcept
      : raw_(std::exchange(other.raw_, nullptr)), good_(other.good_) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(raw_, other.raw_);
    std::swap(good_, other.good_);
    return *this;
  }
  ~Descriptor() {
    if (raw_ != nullptr) cudnnBackendDestroyDescriptor(raw_);
  }

  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  std::int64_t count, const void* values) {
    good_ =
        good_ && cudnnBackendSetAttribute(raw_, name, type, count, values) == CUDNN_STATUS_SUCCESS;
    return *this;
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const std::vector<std::int64_t>& values) {
    return set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
  }
  Descriptor& set(cudnnBackendAttributeName_t name, std::int64_t value) {
    return set(name, CUDNN_TYPE_INT64, 1, &value);
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.raw_);
  }
  bool finish() {
    good_ = good_ && cudnnBackendFinalize(raw_) == CUDNN_STATUS_SUCCESS;
    return good_;
  }
  bool get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t most,
           std::int64_t* count, void* values) const {
    return cudnnBackendGetAttribute(raw_, name, type, most, count, values) == CUDNN_STATUS_SUCCESS;
  }
  cudnnBackendDescriptor_t raw() const { return raw_; }

 private:
  cudnnBackendDescriptor_t raw_ = nullptr;
  bool good_ = false;
};

cudnnDataType_t dnn_type(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kBF16:
      return CUDNN_DATA_BFLOAT16;
    case ir::DType::kF16:
      return CUDNN_DATA_HALF;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

Descriptor tensor(ir::DType dtype, std::int64_t id, const std::vector<std::int64_t>& extents,
                  const std::vector<std::int64_t>& steps) {
  Descriptor out(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const cudnnDataType_t type = dnn_type(dtype);
  out.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, extents)
      .set(CUDNN_ATTR_TENSOR_STRIDES, steps)
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kTensorAlignment)
      .finish();
  return out;
}

Descriptor window(const ConvolutionShape& shape) {
  Descriptor out(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  out.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<std::int64_t>(shape.strides.size()))
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, shape.dilations)
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, shape.strides)
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, shape.begins)
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, shape.ends)
      .finish();
  return out;
}

// The names of one operation's attributes.
struct OperationNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t x, w, y, window, alpha, beta;
};

OperationNames names_of(ConvolutionWay way) {
  switch (way) {
    case ConvolutionWay::kData:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case ConvolutionWay::kWeight:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    case ConvolutionWay::kForward:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
}

// Everything an execution plan refers to.
struct OperationGraph {
  Descriptor x, w, y, window, operation, graph;
  bool good = false;

  OperationGraph(const ConvolutionShape& shape, cudnnHandle_t handle)
      : x(tensor(shape.dtype, kIdX, shape.x, shape.x_steps)),
        w(tensor(shape.dtype, kIdW, shape.w, shape.w_steps)),
        y(tensor(shape.dtype, kIdY, shape.y, shape.y_steps)),
        window(cuda::window(shape)),
        operation(names_of(shape.way).type),
        graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
    const OperationNames names = names_of(shape.way);
    const float one = 1;
    const float zero = 0;
    operation.set(names.x, x)
        .set(names.w, w)
        .set(names.y, y)
        .set(names.window, window)
        .set(names.alpha, CUDNN_TYPE_FLOAT, 1, &one)
        .set(names.beta, CUDNN_TYPE_FLOAT, 1, &zero);
    if (!operation.finish()) return;
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation)
        .set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    good = graph.finish();
  }
};

// The engine configurations that a heuristic lists, best first.
std::vector<Descriptor> configurations(const OperationGraph& graph, cudnnBackendHeurMode_t mode) {
  Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  std::vector<Descriptor> out;
  if (!heuristic.finish()) return out;
  std::int64_t count = 0;
  if (!heuristic.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count,
                     nullptr))
    return out;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < count; ++i) {
    out.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    raw.push_back(out.back().raw());
  }
  if (!heuristic.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count,
                     raw.data()))
    return {};
  // A descriptor that is moved loses its place, never its content.
  out.erase(out.begin() + static_cast<std::ptrdiff_t>(std::max<std::int64_t>(count, 0)), out.end());
  return out;
}

bool passes(const Descriptor& configuration, bool exact) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.raw();
  std::int64_t count = 0;
  if (!configuration.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                         &raw))
    return false;
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  if (!engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                  CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes.data()))
    return false;
  return std::none_of(notes.begin(), notes.begin() + count, [&](cudnnBackendNumericalNote_t note) {
    switch (note) {
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
        return true;
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13:
        return exact;
      default:
        return false;
    }
  });
}

// By what name a configuration can be asked for again; nothing where cuDNN does not say.
std::optional<DnnEngine> engine_of(const Descriptor& configuration) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.raw();
  std::int64_t count = 0;
  DnnEngine out;
  if (!configuration.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                         &raw) ||
      !engine.get(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count, &out.index))
    return std::nullopt;
  std::vector<Descriptor> knobs;
  std::vector<cudnnBackendDescriptor_t> places;
  for (int i = 0; i < CUDNN_KNOB_TYPE_COUNTS; ++i) {
    knobs.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    places.push_back(knobs.back().raw());
  }
  count = 0;
  if (!configuration.get(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                         std::ssize(places), &count, places.data()))
    return std::nullopt;
  for (std::int64_t i = 0; i < std::min(count, std::ssize(knobs)); ++i) {
    const Descriptor& knob = knobs[static_cast<std::size_t>(i)];
    cudnnBackendKnobType_t type{};
    std::int64_t value = 0;
    std::int64_t one = 0;
    if (!knob.get(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &one, &type) ||
        !knob.get(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &one, &value))
      return std::nullopt;
    out.knobs.push_back({static_cast<std::int64_t>(type), value});
  }
  return out;
}

// The configuration of that name. What an execution plan refers to lives as long as it.
struct NamedConfiguration {
  Descriptor engine{CUDNN_BACKEND_ENGINE_DESCRIPTOR};
  std::vector<Descriptor> knobs;
  Descriptor configuration{CUDNN_BACKEND_ENGINECFG_DESCRIPTOR};
  bool good = false;

  NamedConfiguration(const OperationGraph& graph, const DnnEngine& name) {
    engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph.graph)
        .set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, name.index);
    if (!engine.finish()) return;
    std::vector<cudnnBackendDescriptor_t> places;
    for (const DnnEngine::Knob& knob : name.knobs) {
      const auto type = static_cast<cudnnBackendKnobType_t>(knob.type);
      Descriptor& one = knobs.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
      one.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type)
          .set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, knob.value);
      if (!one.finish()) return;
      places.push_back(one.raw());
    }
    configuration.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
    if (!places.empty())
      configuration.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                        std::ssize(places), places.data());
    good = configuration.finish();
  }
};

class PlannedConvolution final : public CudnnConvolution {
 public:
  PlannedConvolution(DnnHandle& handle, Descriptor plan, std::int64_t workspace, std::string engine)
      : handle_(handle),
        plan_(std::move(plan)),
        workspace_(workspace),
        engine_(std::move(engine)) {}

  Bytes workspace() const override { return Bytes(workspace_); }
  const std::string& engine() const override { return engine_; }

  void run(cudaStream_t stream, const std::byte* x, const std::byte* w, const std::byte* y,
           std::byte* workspace) const override {
    const std::array<std::int64_t, 3> ids{kIdX, kIdW, kIdY};
    const std::array<const void*, 3> addresses{x, w, y};
    Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, ids.data())
        .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, addresses.data())
        .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    pack.finish();
    const std::lock_guard lock(handle_.mutex);
    cudnnSetStream(handle_.handle, stream);
    const cudnnStatus_t status = cudnnBackendExecute(handle_.handle, plan_.raw(), pack.raw());
    PLIMSOLL_CHECK(status == CUDNN_STATUS_SUCCESS, "cuDNN: {}", cudnnGetErrorString(status));
  }

 private:
  DnnHandle& handle_;
  Descriptor plan_;
  std::int64_t workspace_;
  std::string engine_;
};

std::int64_t workspace_limit(const ConvolutionShape& shape) {
  std::int64_t elements = 0;
  for (const auto* extents : {&shape.x, &shape.w, &shape.y}) {
    std::int64_t product = 1;
    for (const std::int64_t extent : *extents) product *= extent;
    elements += product;
  }
  // The first convolution of a network wants a copy of its data and more (its weight gradient 1.06
  // times what it reads and writes, for a quarter of the time); others a few mebibytes.
  return std::max(kLeastWorkspaceLimit, elements * width_of(shape.dtype) * 5 / 4);
}

// Null where the configuration does not pass.
std::shared_ptr<const CudnnConvolution> planned(const Descriptor& configuration,
                                                const ConvolutionShape& shape, DnnHandle& handle,
                                                bool exact, const std::optional<DnnEngine>& name) {
  if (!passes(configuration, exact)) return nullptr;
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle.handle)
      .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  std::int64_t workspace = 0;
  std::int64_t count = 0;
  if (!plan.finish() ||
      !plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &workspace))
    return nullptr;
  if (workspace > workspace_limit(shape)) return nullptr;
  return std::make_shared<PlannedConvolution>(handle, std::move(plan), workspace,
                                              name ? to_string(*name) : std::string());
}

// The first that passes, or the one of this name: of cuDNN's own list, else made from its name.
std::shared_ptr<const CudnnConvolution> choose(const ConvolutionShape& shape, DnnHandle& handle,
                                               bool exact, const std::optional<DnnEngine>& wanted) {
  const OperationGraph graph(shape, handle.handle);
  if (!graph.good) return nullptr;
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const Descriptor& configuration : configurations(graph, mode)) {
      const std::optional<DnnEngine> name = engine_of(configuration);
      if (wanted && name != wanted) continue;
      auto out = planned(configuration, shape, handle, exact, name);
      if (out) return out;
    }
  }
  if (!wanted) return nullptr;
  const NamedConfiguration named(graph, *wanted);
  return named.good ? planned(named.configuration, shape, handle, exact, wanted) : nullptr;
}

std::string description(const ConvolutionShape& s, const CudaKernelOptions& options) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", static_cast<int>(s.way),
                     ir::name(s.dtype), s.x, s.x_steps, s.w, s.w_steps, s.y, s.y_steps, s.strides,
                     s.dilations, s.begins, s.ends, options.tf32, options.device,
                     static_cast<int>(s.strides.size()));
}

}  // namespace

Result<std::shared_ptr<const CudnnConvolution>> make_cudnn_convolution(
    const ConvolutionShape& shape, const CudaKernelOptions& options) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const CudnnConvolution>> known;
  const auto wanted = options.engines ? options.engines->next() : std::nullopt;
  if (wanted == kDirectEngine) {
    options.engines->took(*wanted);
    return nullptr;
  }
  const auto name = wanted ? parse_dnn_engine(*wanted) : std::nullopt;
  if (wanted && !name) return no_such_engine("cuDNN", *wanted);
  PLIMSOLL_TRY(DnnHandle * handle, dnn_handle(options.device));
  const std::lock_guard lock(mutex);
  const auto [place, is_new] =
      known.try_emplace(description(shape, options) + " " + wanted.value_or(""));
  if (is_new) {
    const bool exact = shape.dtype == ir::DType::kF32 && !options.tf32;
    place->second = choose(shape, *handle, exact, name);
  }
  if (wanted && !place->second) return no_such_engine("cuDNN", *wanted);
  if (options.engines)
    options.engines->took(place->second ? place->second->engine() : std::string(kDirectEngine));
  return place->second;
}

}  // namespace plimsoll::kernels::cuda
