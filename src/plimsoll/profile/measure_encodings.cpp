#include "plimsoll/profile/measure_encodings.h"

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "plimsoll/base/checked.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/base/random.h"

namespace plimsoll::profile {
namespace {

constexpr std::size_t kActivation = 64 << 20;
constexpr int kRuns = 5;  // in a sequence

// Drawn once and repeated: what matters is which are zero, in no order that could be predicted.
std::vector<float> half_zero() {
  std::vector<float> out(kActivation / sizeof(float));
  Random random(1);
  constexpr std::size_t kDrawn = 1 << 16;
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = i < kDrawn ? std::max(0.0F, static_cast<float>(random.normal())) : out[i - kDrawn];
  return out;
}

struct OneWay final : device::Work {
  Status run(void* queue) override {
    return encodes ? backend->encode(*encoding, queue) : backend->decode(*encoding, queue);
  }
  kernels::Backend* backend = nullptr;
  const kernels::ActivationEncoding* encoding = nullptr;
  bool encodes = true;
};

// The second run loads no code any more, the third is a graph where there is one.
Result<double> seconds_of(OneWay& work) {
  device::Command command;
  command.kind = device::Command::Kind::kWork;
  command.work = &work;
  PLIMSOLL_TRY(const std::unique_ptr<device::Sequence> sequence,
               work.backend->device().make_sequence(std::vector<device::Command>(kRuns, command)));
  double seconds = 0;
  for (int run = 0; run < 3; ++run) {
    const Stopwatch watch;
    PLIMSOLL_RETURN_IF_ERROR(sequence->run());
    seconds = watch.seconds();
  }
  return std::max(seconds / kRuns, 1e-9);
}

Result<schedule::CodecRate> rate_of(const codec::Codec& codec, kernels::Backend& backend,
                                    std::byte* plain) {
  device::Device& device = backend.device();
  const std::size_t count = kActivation / codec.element_bytes;
  const auto small = static_cast<std::int64_t>(codec::compressed_bytes(codec, count, 0.4));
  kernels::Overflow overflow(codec, kActivation);
  PLIMSOLL_TRY(const auto arena, device.make_arena(Bytes(small)));
  PLIMSOLL_TRY(const auto host,
               device.make_host_arena(overflow.memory_wanted() + Bytes(kernels::kAlignment)));
  kernels::ActivationEncoding encoding;
  encoding.step = new (host->data()) kernels::EncodingStep;
  overflow.take_memory(host->bytes().subspan(static_cast<std::size_t>(kernels::kAlignment)));
  encoding.codec = &codec;
  encoding.plain = {plain, kActivation};
  encoding.compressed = {reinterpret_cast<std::uint8_t*>(arena->data()),
                         static_cast<std::size_t>(small)};
  encoding.overflow = &overflow;
  OneWay work;
  work.backend = &backend;
  work.encoding = &encoding;
  PLIMSOLL_TRY(const double encode, seconds_of(work));
  work.encodes = false;
  PLIMSOLL_TRY(const double decode, seconds_of(work));
  return schedule::CodecRate{kActivation / encode, kActivation / decode};
}

}  // namespace

Result<schedule::CodecRates> measure_encodings(kernels::Backend& backend, double latency) {
  PLIMSOLL_TRY(const auto arena, backend.device().make_arena(Bytes(kActivation)));
  const std::vector<float> values = half_zero();
  schedule::CodecRates out;
  out.latency_seconds = latency;
  for (const codec::Codec& codec : codec::codecs()) {
    if (codec.element_bytes != sizeof(float)) continue;
    PLIMSOLL_RETURN_IF_ERROR(
        backend.device().write(arena->data(), std::as_bytes(std::span(values))));
    PLIMSOLL_TRY(const schedule::CodecRate rate, rate_of(codec, backend, arena->data()));
    if (codec.lossless) {
      out.encode_bytes_per_second = rate.encode_bytes_per_second;
      out.decode_bytes_per_second = rate.decode_bytes_per_second;
    } else {
      out.forms[std::string(codec.name)] = rate;
    }
  }
  return out;
}

}  // namespace plimsoll::profile
