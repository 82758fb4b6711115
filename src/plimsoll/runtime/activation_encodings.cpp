#include "plimsoll/runtime/activation_encodings.h"

#include <algorithm>

#include "plimsoll/base/checked.h"
#include "plimsoll/base/random.h"
#include "plimsoll/kernels/kernel.h"

namespace plimsoll::runtime {
namespace {

Bytes bytes_of_errors(const kernels::Overflow& overflow) {
  const std::size_t bytes = overflow.blocks() * sizeof(kernels::ActivationError);
  return Bytes(round_up(static_cast<std::int64_t>(bytes), kernels::kAlignment));
}

}  // namespace

Result<const kernels::ActivationEncoding*> ActivationEncodings::bind(const plan::Plan& plan,
                                                                     const plan::PlanStep& step,
                                                                     std::size_t number,
                                                                     const PlanMemory& memory) {
  const bool encodes = step.kind == plan::StepKind::kEncode;
  const plan::Slot& plain = encodes ? step.inputs.front() : step.outputs.front();
  const plan::Slot& small = encodes ? step.outputs.front() : step.inputs.front();
  const ir::Value& value = plan.graph.value(step.value);
  const codec::Codec* const codec = codec::find_codec(step.codec);
  const ir::DType stored =
      codec != nullptr && codec->element_bytes == 1 ? ir::DType::kU8 : ir::DType::kF32;
  if (codec == nullptr || value.type.dtype != stored)
    return bad_input("codec '{}' cannot store {}", step.codec, ir::name(value.type.dtype));
  const Bytes plain_bytes = ir::bytes_of(value.type);
  const Bytes small_bytes = plan.buffer(small.buffer).bytes;
  Bound& out = bound_.emplace_back();
  out.encodes = encodes;
  kernels::ActivationEncoding& encoding = out.encoding;
  encoding.codec = codec;
  encoding.plain = {memory.address(plain), static_cast<std::size_t>(plain_bytes.value)};
  encoding.compressed = {reinterpret_cast<std::uint8_t*>(memory.address(small)),
                         static_cast<std::size_t>(small_bytes.value)};
  if (encoding.compressed.size() < codec::least_compressed_bytes(encoding.count()))
    return bad_input("the compressed buffer of '{}' is too small", value.name);
  encoding.overflow =
      &overflow_.try_emplace(small.buffer, *codec, encoding.plain.size()).first->second;
  encoding.seed = mix64(number);
  out.account.tensor = value.name;
  out.account.form = codec->name;
  out.account.lossless = codec->lossless;
  out.account.plain = plain_bytes;
  out.account.planned = small_bytes;
  out.account.elements = value.type.shape.elements();
  return &encoding;
}

Status ActivationEncodings::take_memory(device::Device& device) {
  if (bound_.empty()) return {};
  Bytes total(kernels::kAlignment);
  for (const auto& [buffer, overflow] : overflow_) total += overflow.memory_wanted();
  for (const Bound& bound : bound_) total += bytes_of_errors(*bound.encoding.overflow);
  PLIMSOLL_TRY(memory_, device.make_host_arena(total));
  std::span<std::byte> left = memory_->bytes();
  step_ = new (left.data()) kernels::EncodingStep;
  left = left.subspan(static_cast<std::size_t>(kernels::kAlignment));
  for (auto& [buffer, overflow] : overflow_) left = overflow.take_memory(left);
  for (Bound& bound : bound_) {
    bound.encoding.step = step_;
    if (!bound.encodes || bound.encoding.codec->lossless) continue;
    const kernels::Overflow& overflow = *bound.encoding.overflow;
    auto* const errors = reinterpret_cast<kernels::ActivationError*>(left.data());
    bound.encoding.errors = {errors, overflow.blocks()};
    std::uninitialized_fill_n(errors, overflow.blocks(), kernels::ActivationError{});
    left = left.subspan(static_cast<std::size_t>(bytes_of_errors(overflow).value));
  }
  return {};
}

void ActivationEncodings::begin_step(std::uint64_t steps) {
  if (step_ == nullptr) return;
  step_->seed = mix64(rounding_seed_ + steps);
  step_->measures_errors = steps == 0 ? 1 : 0;
}

Bytes ActivationEncodings::overflow_bytes() const {
  Bytes total;
  for (const auto& [buffer, overflow] : overflow_) total += overflow.bytes();
  return total;
}

std::vector<EncodedActivation> ActivationEncodings::accounts() const {
  std::vector<EncodedActivation> out;
  for (const Bound& bound : bound_) {
    if (!bound.encodes) continue;
    EncodedActivation& account = out.emplace_back(bound.account);
    account.used = bound.encoding.overflow->stored_bytes();
    account.overflow = bound.encoding.overflow->bytes();
    for (const kernels::ActivationError& error : bound.encoding.errors) {
      account.largest_error = std::max(account.largest_error, error.largest);
      account.squared_error += error.squares;
      account.squared_values += error.value_squares;
    }
  }
  return out;
}

}  // namespace plimsoll::runtime
