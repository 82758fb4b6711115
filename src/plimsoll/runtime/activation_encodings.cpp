#include "plimsoll/runtime/activation_encodings.h"

#include "plimsoll/base/random.h"

namespace plimsoll::runtime {

Result<ActivationEncodings::Bound> ActivationEncodings::bind(const plan::Plan& plan,
                                                             const plan::PlanStep& step,
                                                             std::size_t number,
                                                             const PlanMemory& memory) {
  Bound out;
  out.encodes = step.kind == plan::StepKind::kEncode;
  const plan::Slot& plain = out.encodes ? step.inputs.front() : step.outputs.front();
  const plan::Slot& small = out.encodes ? step.outputs.front() : step.inputs.front();
  const ir::Value& value = plan.graph.value(step.value);
  out.codec = codec::find_codec(step.codec);
  const ir::DType stored =
      out.codec != nullptr && out.codec->element_bytes == 1 ? ir::DType::kU8 : ir::DType::kF32;
  if (out.codec == nullptr || value.type.dtype != stored)
    return bad_input("codec '{}' cannot store {}", step.codec, ir::name(value.type.dtype));
  const Bytes plain_bytes = ir::bytes_of(value.type);
  const Bytes small_bytes = plan.buffer(small.buffer).bytes;
  out.plain = {memory.address(plain), static_cast<std::size_t>(plain_bytes.value)};
  out.compressed = {reinterpret_cast<std::uint8_t*>(memory.address(small)),
                    static_cast<std::size_t>(small_bytes.value)};
  if (out.compressed.size() <
      codec::least_compressed_bytes(out.plain.size() / out.codec->element_bytes))
    return bad_input("the compressed buffer of '{}' is too small", value.name);
  out.overflow = &overflow_.try_emplace(small.buffer, *out.codec, out.plain.size()).first->second;
  out.seed = mix64(number);
  if (!out.encodes) return out;
  out.account = &accounts_.emplace_back();
  if (!out.codec->lossless) out.account->by_block.resize(out.overflow->blocks());
  EncodedActivation& account = out.account->activation;
  account.tensor = value.name;
  account.form = out.codec->name;
  account.lossless = out.codec->lossless;
  account.plain = plain_bytes;
  account.planned = small_bytes;
  account.elements = value.type.shape.elements();
  return out;
}

Status ActivationEncodings::take_memory() {
  Bytes total;
  for (const auto& [buffer, overflow] : overflow_) total += overflow.memory_wanted();
  if (total.value == 0) return {};
  PLIMSOLL_TRY(memory_, device::CpuArena::make(total));
  std::span<std::byte> left = memory_.bytes();
  for (auto& [buffer, overflow] : overflow_) left = overflow.take_memory(left);
  return {};
}

void ActivationEncodings::run(const Bound& bound, std::uint64_t steps) {
  if (bound.encodes) return encode(bound, steps);
  PLIMSOLL_CHECK(
      kernels::decompress_activation(*bound.codec, bound.compressed, *bound.overflow, bound.plain),
      "an encoded activation was overwritten");
}

void ActivationEncodings::encode(const Bound& bound, std::uint64_t steps) {
  const std::uint64_t seed = mix64(rounding_seed_ + steps) ^ bound.seed;
  EncodedActivation& account = bound.account->activation;
  account.used = Bytes(static_cast<std::int64_t>(kernels::compress_activation(
      *bound.codec, bound.plain, bound.compressed, *bound.overflow, seed)));
  account.overflow = bound.overflow->bytes();
  if (account.lossless || steps > 0) return;
  const kernels::ActivationError error = kernels::error_of(
      *bound.codec, bound.plain, bound.compressed, *bound.overflow, bound.account->by_block);
  account.largest_error = error.largest;
  account.squared_error = error.squares;
  account.squared_values = error.value_squares;
}

Bytes ActivationEncodings::overflow_bytes() const {
  Bytes total;
  for (const auto& [buffer, overflow] : overflow_) total += overflow.bytes();
  return total;
}

std::vector<EncodedActivation> ActivationEncodings::accounts() const {
  std::vector<EncodedActivation> out;
  for (const EncodingAccount& account : accounts_) out.push_back(account.activation);
  return out;
}

}  // namespace plimsoll::runtime
