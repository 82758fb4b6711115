#include "plimsoll/runtime/nan_finder.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "plimsoll/ops/evaluation/array.h"

namespace plimsoll::runtime {
namespace {

template <typename Bits>
void count_bits(const std::byte* memory, std::int64_t elements, Bits exponent, Bits mantissa,
                std::int64_t& nans, std::int64_t& infinities) {
  for (std::int64_t i = 0; i < elements; ++i) {
    Bits bits = 0;
    std::memcpy(&bits, memory + static_cast<std::size_t>(i) * sizeof(Bits), sizeof(Bits));
    if ((bits & exponent) != exponent) continue;
    ((bits & mantissa) != 0 ? nans : infinities) += 1;
  }
}

std::string where(const ir::Node& node) {
  return fmt::format("'{}' ({})", node.layer.empty() ? node.op : node.layer, node.op);
}

}  // namespace

NanFinder::Count NanFinder::count(const ir::TensorType& type, const std::byte* memory) {
  Count out;
  if (memory == nullptr || type.layout.block_count > 0) return out;
  const std::int64_t elements = type.shape.elements();
  switch (type.dtype) {
    case ir::DType::kF64:
      count_bits<std::uint64_t>(memory, elements, 0x7ff0000000000000ULL, 0x000fffffffffffffULL,
                                out.nans, out.infinities);
      break;
    case ir::DType::kF32:
      count_bits<std::uint32_t>(memory, elements, 0x7f800000U, 0x007fffffU, out.nans,
                                out.infinities);
      break;
    case ir::DType::kF16:
      count_bits<std::uint16_t>(memory, elements, 0x7c00, 0x03ff, out.nans, out.infinities);
      break;
    case ir::DType::kBF16:
      count_bits<std::uint16_t>(memory, elements, 0x7f80, 0x007f, out.nans, out.infinities);
      break;
    default:
      break;
  }
  return out;
}

// A node's kernel with its types.
class WatchedKernel final : public kernels::Kernel {
 public:
  WatchedKernel(NanFinder& finder, device::Device* device, const ir::Graph& graph,
                const ir::Node& node, std::unique_ptr<kernels::Kernel> kernel)
      : finder_(finder), device_(device), node_(node), kernel_(std::move(kernel)) {
    for (const ValueId input : node.inputs)
      inputs_.push_back(input.valid() ? graph.value(input) : ir::Value{});
    for (const ValueId output : node.outputs) outputs_.push_back(graph.value(output));
  }

  Bytes scratch() const override { return kernel_->scratch(); }
  bool in_place() const override { return kernel_->in_place(); }

  void run(const kernels::Arguments& arguments) override {
    NanFinder::Count before;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const auto one = count(inputs_[i].type, arguments.inputs[i], arguments.queue);
      before.nans += one.nans;
      before.infinities += one.infinities;
    }
    kernel_->run(arguments);
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      finder_.made(node_, outputs_[i], before,
                   count(outputs_[i].type, arguments.outputs[i], arguments.queue));
    }
  }

 private:
  // A copy that fails is said by what the step does next.
  NanFinder::Count count(const ir::TensorType& type, const std::byte* memory, void* queue) {
    if (device_ == nullptr || device_->computes_on_host() || memory == nullptr)
      return NanFinder::count(type, memory);
    if (!ir::is_float(type.dtype)) return {};
    std::vector<std::byte> copy(static_cast<std::size_t>(ir::bytes_of(type).value));
    if (!device_->read_between(queue, copy, memory)) return {};
    return NanFinder::count(type, copy.data());
  }

  NanFinder& finder_;
  device::Device* device_;
  ir::Node node_;
  std::vector<ir::Value> inputs_;
  std::vector<ir::Value> outputs_;
  std::unique_ptr<kernels::Kernel> kernel_;
};

WatchKernel NanFinder::watch(device::Device* device) {
  return [this, device](const ir::Graph& graph, const ir::Node& node,
                        std::unique_ptr<kernels::Kernel> kernel) {
    return std::make_unique<WatchedKernel>(*this, device, graph, node, std::move(kernel));
  };
}

void NanFinder::made(const ir::Node& node, const ir::Value& value, Count before, Count after) {
  if (after.nans == 0 && after.infinities == 0) return;
  const std::scoped_lock lock(mutex_);
  const auto sentence = [&](const char* what, std::int64_t many) {
    return fmt::format("step {}: {} of the {} pass made the first {}, {} of {} elements of '{}'",
                       step_ + 1, where(node), ir::name(node.phase), what, many,
                       value.type.shape.elements(), value.name);
  };
  if (after.nans > 0 && before.nans == 0 && nan_.empty()) {
    nan_ = sentence("NaN", after.nans);
    if (before.infinities > 0) {
      nan_ += fmt::format(" from {} infinities that it read", before.infinities);
      if (!infinity_.empty()) nan_ += "; " + infinity_;
    }
  }
  if (after.infinities > 0 && before.infinities == 0 && before.nans == 0 && infinity_.empty())
    infinity_ = sentence("infinity", after.infinities);
}

Status NanFinder::look_at(Executor& executor, int step) {
  {
    const std::scoped_lock lock(mutex_);
    step_ = step;
  }
  const ir::Graph& graph = executor.graph();
  for (std::size_t v = 0; v < graph.values.size() && source_.empty(); ++v) {
    const ir::Value& value = graph.values[v];
    const bool input = value.kind == ir::ValueKind::kInput;
    if (!input && !(step == 0 && ir::is_persistent(value.kind))) continue;
    Count found;
    PLIMSOLL_RETURN_IF_ERROR(
        executor.read(ValueId(v), [&](std::span<const std::byte> memory) -> Status {
          found = count(value.type, memory.data());
          return {};
        }));
    if (found.nans == 0) continue;
    source_ = fmt::format("step {}: {} '{}' holds {} NaNs before it begins", step + 1,
                          ir::name(value.kind), value.name, found.nans);
  }
  return {};
}

std::string NanFinder::what() const {
  const std::scoped_lock lock(mutex_);
  if (!source_.empty()) return source_;
  return !nan_.empty() ? nan_ : infinity_;
}

bool has_bad_result(Executor& executor) {
  const ir::Graph& graph = executor.graph();
  const bool trains = ir::has_phase(graph, ir::Phase::kUpdate);
  for (const ValueId output : graph.outputs) {
    const ir::TensorType& type = graph.value(output).type;
    if (!ir::is_float(type.dtype) || type.layout.block_count > 0) continue;
    const auto bytes = executor.result(output);
    if (!bytes) continue;
    const auto array = ops::Array::from_bytes({type.dtype, {type.shape.elements()}, {}}, *bytes);
    if (array && !std::all_of(array->reals.begin(), array->reals.end(),
                              [](double number) { return std::isfinite(number); }))
      return true;
    if (trains) break;
  }
  return false;
}

}  // namespace plimsoll::runtime
