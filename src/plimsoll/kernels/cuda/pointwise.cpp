#include "plimsoll/kernels/cuda/pointwise.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "plimsoll/kernels/cuda/nvrtc.h"
#include "plimsoll/kernels/cuda/pointwise_prelude.h"

namespace plimsoll::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kPackBytes = 16;
constexpr std::int64_t kMostPacked = 8;
// Blocks per multiprocessor: enough to hide latency; more only repeat what every thread does once.
constexpr std::int64_t kBlocksEach = 16;

const char* element_type(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kF64:
      return "double";
    case ir::DType::kF32:
      return "float";
    case ir::DType::kF16:
      return "Half";
    case ir::DType::kBF16:
      return "Bf16";
    case ir::DType::kI64:
      return "long long";
    case ir::DType::kI32:
      return "int";
    case ir::DType::kI16:
      return "short";
    case ir::DType::kI8:
      return "signed char";
    case ir::DType::kU64:
      return "unsigned long long";
    case ir::DType::kU32:
      return "unsigned";
    case ir::DType::kU16:
      return "unsigned short";
    case ir::DType::kU8:
    case ir::DType::kBool:
      return "unsigned char";
    default:
      return nullptr;
  }
}

// One operand of the loop: memory or a position.
struct Operand {
  std::string name;
  const char* type = nullptr;  // null for a position
  std::int64_t width = 0;
  std::int64_t offset = 0;
  bool written = false;
};

// What source and arguments are made of.
struct PlannedLoop {
  StridedLoop loop;
  std::vector<Operand> operands;  // outputs, inputs, positions: as the loop's
  std::int64_t packed = 1;
  bool is_wide = false;  // offsets need 64 bits

  std::int64_t step(std::size_t operand, std::size_t axis) const {
    return loop.steps[operand][axis];
  }
  std::size_t rank() const { return loop.extents.size(); }
};

bool packs(const PlannedLoop& plan, std::int64_t width) {
  const std::size_t inner = plan.rank() - 1;
  if (plan.rank() > 1 && plan.loop.row() % width != 0) return false;
  for (std::size_t k = 0; k < plan.operands.size(); ++k) {
    const Operand& operand = plan.operands[k];
    if (operand.type == nullptr) continue;
    const std::int64_t own = plan.step(k, inner);
    if (own != 1 && (own != 0 || operand.written)) return false;
    if (own == 0) continue;
    if (operand.offset % width != 0) return false;
    for (std::size_t axis = 0; axis < inner; ++axis) {
      if (plan.step(k, axis) % width != 0) return false;
    }
  }
  return true;
}

std::int64_t packing_of(const PlannedLoop& plan) {
  std::int64_t widest = 1;
  for (std::size_t k = 0; k < plan.operands.size(); ++k) {
    // What stands still along a row is loaded once, whatever its width.
    if (plan.step(k, plan.rank() - 1) != 0) widest = std::max(widest, plan.operands[k].width);
  }
  std::int64_t packed = std::min(kPackBytes / widest, kMostPacked);
  while (packed > 1 && !packs(plan, packed)) packed /= 2;
  return std::max<std::int64_t>(packed, 1);
}

bool needs_64_bits(const StridedLoop& loop) {
  constexpr std::int64_t kLimit = std::numeric_limits<std::int32_t>::max() / 2;
  std::int64_t count = 1;
  for (const std::int64_t extent : loop.extents) count *= extent;
  if (count > kLimit) return true;
  return std::ranges::any_of(loop.steps, [&](const std::vector<std::int64_t>& steps) {
    std::int64_t reach = 0;
    for (std::size_t axis = 0; axis < steps.size(); ++axis)
      reach += std::abs(steps[axis]) * loop.extents[axis];
    return reach > kLimit;
  });
}

PlannedLoop plan_loop(const Pointwise& p) {
  PlannedLoop out;
  std::vector<Strides> strides;
  for (std::size_t i = 0; i < p.outputs.size(); ++i) {
    const PointwiseTensor& tensor = p.outputs[i];
    out.operands.push_back({fmt::format("y{}", i), element_type(tensor.dtype),
                            width_of(tensor.dtype), tensor.offset, true});
    strides.push_back(tensor.strides);
  }
  for (std::size_t i = 0; i < p.inputs.size(); ++i) {
    const PointwiseTensor& tensor = p.inputs[i];
    out.operands.push_back({input_name(static_cast<int>(i)), element_type(tensor.dtype),
                            width_of(tensor.dtype), tensor.offset, false});
    strides.push_back(tensor.strides);
  }
  for (std::size_t i = 0; i < p.positions.size(); ++i) {
    out.operands.push_back({fmt::format("p{}", i)});
    strides.push_back(p.positions[i]);
  }
  out.loop = make_strided_loop(p.space, strides);
  out.packed = packing_of(out);
  out.is_wide = needs_64_bits(out.loop);
  return out;
}

// Sum of index x step over the axes along which the operand moves.
std::string offset_expression(const PlannedLoop& plan, std::size_t operand) {
  std::string out;
  for (std::size_t axis = 0; axis < plan.rank(); ++axis) {
    const std::int64_t step = plan.step(operand, axis);
    if (step == 0) continue;
    if (!out.empty()) out += " + ";
    out += step == 1 ? fmt::format("i{}", axis)
                     : fmt::format("i{} * loop.step[{}]", axis, operand * plan.rank() + axis);
  }
  return out.empty() ? "0" : out;
}

bool is_wide_real(ir::DType dtype) {
  return dtype == ir::DType::kF64;
}

std::string header(const Pointwise& p, const PlannedLoop& plan) {
  const bool doubles = std::ranges::any_of(p.inputs, is_wide_real, &PointwiseTensor::dtype) ||
                       std::ranges::any_of(p.outputs, is_wide_real, &PointwiseTensor::dtype);
  std::string out = kPointwisePrelude;
  out += fmt::format("typedef {} Real;\n", doubles ? "double" : "float");
  out += "#define kInfinity Real(__int_as_float(0x7f800000))\n";
  out += "#define kNan Real(__int_as_float(0x7fffffff))\n";
  out += plan.is_wide ? "typedef unsigned long long Index;\ntypedef long long Step;\n"
                      : "typedef unsigned Index;\ntypedef int Step;\n";
  out += fmt::format("struct Loop {{ Index groups, count, extent[{}]; Step step[{}]; }};\n",
                     plan.rank(), plan.rank() * plan.operands.size());
  out += "extern \"C\" __global__ void __launch_bounds__(256) pointwise(const Loop loop";
  for (const Operand& operand : plan.operands) {
    if (operand.type == nullptr) continue;
    out +=
        fmt::format(", {}{}* at_{}", operand.written ? "" : "const ", operand.type, operand.name);
  }
  return out + ") {\n";
}

// The index along every axis: i0, i1, ...
std::string indices(const PlannedLoop& plan) {
  std::string out = "    Index rest = group;\n";
  for (std::size_t axis = plan.rank(); axis-- > 0;) {
    const bool inner = axis + 1 == plan.rank();
    const std::string here = axis == 0 ? "rest" : fmt::format("rest % loop.extent[{}]", axis);
    out += fmt::format("    const Step i{} = ({}){};\n", axis, here,
                       inner && plan.packed > 1 ? fmt::format(" * {}", plan.packed) : "");
    if (axis > 0) out += fmt::format("    rest /= loop.extent[{}];\n", axis);
  }
  out += plan.rank() == 1 && plan.packed > 1
             ? fmt::format("    const int live = loop.count - i0 < {0} ? loop.count - i0 : {0};\n",
                           plan.packed)
             : fmt::format("    const int live = {};\n", plan.packed);
  return out;
}

std::string element(const Pointwise& p, const PlannedLoop& plan) {
  std::string out =
      fmt::format("#pragma unroll\n    for (int w = 0; w < {}; ++w) {{\n", plan.packed);
  for (std::size_t k = p.outputs.size(); k < plan.operands.size(); ++k) {
    const Operand& operand = plan.operands[k];
    const std::int64_t inner = plan.step(k, plan.rank() - 1);
    if (operand.type == nullptr) {
      const std::string moved =
          inner == 0 ? "" : fmt::format(" + w * loop.step[{}]", k * plan.rank() + plan.rank() - 1);
      out += fmt::format("      const long long {0} = (long long)o_{0}{1};\n", operand.name, moved);
    } else if (plan.packed > 1 && inner == 0) {
      out += fmt::format("      const auto {0} = wide(pack_{0}.at[0]);\n", operand.name);
    } else {
      out += fmt::format("      const auto {0} = wide(pack_{0}.at[w]);\n", operand.name);
    }
  }
  out += p.statements;
  for (std::size_t i = 0; i < p.outputs.size(); ++i) {
    out += fmt::format("      pack_y{0}.at[w] = Put<{1}>::from({2});\n", i, plan.operands[i].type,
                       p.results[i]);
  }
  return out + "    }\n";
}

std::string source_of(const Pointwise& p, const PlannedLoop& plan) {
  std::string out = header(p, plan) + p.once;
  out +=
      "  for (Index group = blockIdx.x * (Index)blockDim.x + threadIdx.x; group < loop.groups;\n"
      "       group += gridDim.x * (Index)blockDim.x) {\n";
  out += indices(plan);
  for (std::size_t k = 0; k < plan.operands.size(); ++k) {
    const Operand& operand = plan.operands[k];
    out += fmt::format("    const Step o_{} = {};\n", operand.name, offset_expression(plan, k));
    if (operand.type == nullptr) continue;
    if (operand.written) {
      out += fmt::format("    Pack<{}, {}> pack_{};\n", operand.type, plan.packed, operand.name);
      continue;
    }
    const bool spread = plan.packed > 1 && plan.step(k, plan.rank() - 1) == 0;
    out += fmt::format("    const auto pack_{0} = load<{1}>(at_{0} + o_{0}, {2});\n", operand.name,
                       spread ? 1 : plan.packed, spread ? "1" : "live");
  }
  out += element(p, plan);
  for (std::size_t i = 0; i < p.outputs.size(); ++i)
    out += fmt::format("    store<{1}>(at_y{0} + o_y{0}, pack_y{0}, live);\n", i, plan.packed);
  return out + "  }\n}\n";
}

template <typename Number>
std::vector<char> bytes_of_loop(const PlannedLoop& plan, std::int64_t groups, std::int64_t count) {
  std::vector<Number> numbers{static_cast<Number>(groups), static_cast<Number>(count)};
  for (std::size_t axis = 0; axis < plan.rank(); ++axis) {
    const bool inner = axis + 1 == plan.rank();
    numbers.push_back(static_cast<Number>(plan.loop.extents[axis] / (inner ? plan.packed : 1)));
  }
  for (const auto& steps : plan.loop.steps) {
    for (const std::int64_t step : steps) numbers.push_back(static_cast<Number>(step));
  }
  std::vector<char> out(numbers.size() * sizeof(Number));
  std::memcpy(out.data(), numbers.data(), out.size());
  return out;
}

bool lies_alike(const PointwiseTensor& a, const PointwiseTensor& b) {
  return a.strides == b.strides && width_of(a.dtype) == width_of(b.dtype) && a.offset == b.offset;
}

// Every thread reads an element's inputs before it writes there: an output may lie over an input
// that has its strides and width. Inputs of another size nobody lays anything over.
bool allows_in_place(const Site& site, const Pointwise& pointwise) {
  for (const ops::InPlace::Pair& pair : ops::definition_of(site.node).in_place.pairs()) {
    if (!site.has(pair.input) ||
        ir::bytes_of(site.in(pair.input)) != ir::bytes_of(site.out(pair.output)))
      continue;
    std::size_t letter = 0;
    for (int i = 0; i < pair.input; ++i) letter += site.has(i) ? 1 : 0;
    if (!lies_alike(pointwise.inputs[letter],
                    pointwise.outputs[static_cast<std::size_t>(pair.output)]))
      return false;
  }
  return true;
}

}  // namespace

std::string input_name(int input) {
  return std::string(1, static_cast<char>('a' + input));
}

std::string pointwise_source(const Pointwise& pointwise) {
  return source_of(pointwise, plan_loop(pointwise));
}

Result<PointwiseKernel> PointwiseKernel::make(const Pointwise& p) {
  PointwiseKernel out;
  for (const PointwiseTensor& tensor : p.inputs)
    out.input_bytes_.push_back(tensor.offset * width_of(tensor.dtype));
  for (const PointwiseTensor& tensor : p.outputs)
    out.output_bytes_.push_back(tensor.offset * width_of(tensor.dtype));
  if (p.space.shape.elements() == 0) return out;
  const PlannedLoop plan = plan_loop(p);
  PLIMSOLL_TRY(const CurrentDevice device, current_device());
  PLIMSOLL_TRY(out.kernel_, load_source(source_of(p, plan), "pointwise"));
  const std::int64_t count = p.space.shape.elements();
  const std::int64_t groups = (count + plan.packed - 1) / plan.packed;
  out.loop_ = plan.is_wide ? bytes_of_loop<std::int64_t>(plan, groups, count)
                           : bytes_of_loop<std::int32_t>(plan, groups, count);
  out.blocks_ = static_cast<unsigned>(
      std::min((groups + kThreads - 1) / kThreads, kBlocksEach * device.multiprocessors));
  return out;
}

void PointwiseKernel::launch(cudaStream_t stream, std::span<const std::byte* const> inputs,
                             std::span<std::byte* const> outputs) const {
  if (kernel_ == nullptr) return;
  constexpr std::size_t kMostOperands = 24;
  std::array<const std::byte*, kMostOperands> addresses{};
  std::array<void*, kMostOperands + 1> arguments{};
  PLIMSOLL_CHECK(inputs.size() + outputs.size() <= kMostOperands);
  arguments[0] = const_cast<char*>(loop_.data());
  std::size_t next = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    addresses[next++] = outputs[i] + output_bytes_[i];
  for (std::size_t i = 0; i < inputs.size(); ++i) addresses[next++] = inputs[i] + input_bytes_[i];
  for (std::size_t i = 0; i < next; ++i) arguments[i + 1] = &addresses[i];
  cudaLaunchKernel(reinterpret_cast<const void*>(kernel_), dim3(blocks_), dim3(kThreads),
                   arguments.data(), 0, stream);
}

Pointwise pointwise_of(const Site& site) {
  Pointwise out;
  out.space = site.out();
  for (int i = 0; i < site.outputs(); ++i)
    out.outputs.push_back({site.out(i).dtype, broadcast_strides_in(site.out(i), out.space.shape)});
  for (int i = 0; i < site.inputs(); ++i) {
    if (!site.has(i)) continue;
    out.inputs.push_back({site.in(i).dtype, broadcast_strides_in(site.in(i), out.space.shape)});
  }
  return out;
}

Made make_pointwise(const Site& site, const Pointwise& pointwise) {
  const auto has_type = [](const PointwiseTensor& t) { return element_type(t.dtype) != nullptr; };
  if (!std::ranges::all_of(pointwise.inputs, has_type) ||
      !std::ranges::all_of(pointwise.outputs, has_type))
    return no_kernel();
  PLIMSOLL_TRY(PointwiseKernel kernel, PointwiseKernel::make(pointwise));
  std::vector<std::size_t> present;
  for (int i = 0; i < site.inputs(); ++i) {
    if (site.has(i)) present.push_back(static_cast<std::size_t>(i));
  }
  return make_kernel(
      [kernel = std::move(kernel), present = std::move(present)](const Arguments& a,
                                                                 cudaStream_t stream) {
        std::array<const std::byte*, 16> inputs{};
        for (std::size_t i = 0; i < present.size(); ++i) inputs[i] = a.inputs[present[i]];
        kernel.launch(stream, {inputs.data(), present.size()}, a.outputs);
      },
      {Bytes(0), allows_in_place(site, pointwise)});
}

Made make_expression_kernel(const Site& site, const char* expression) {
  if (!all_unblocked(site)) return no_kernel();
  Pointwise pointwise = pointwise_of(site);
  pointwise.results = {expression};
  return make_pointwise(site, pointwise);
}

}  // namespace plimsoll::kernels::cuda
