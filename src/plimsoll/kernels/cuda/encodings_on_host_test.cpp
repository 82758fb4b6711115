// The bodies of the kernels that compress activations, where there is no card.
#include <cstring>

#include "plimsoll/kernels/cuda/testing/encoding_contract.h"
#include "plimsoll/kernels/cuda/testing/host_grid.h"
// after the words it is written in
#include "plimsoll/kernels/cuda/coded_forms.cuh"

namespace plimsoll::kernels::cuda {
namespace {

void on_the_host(EncodingMemory& memory, bool encodes) {
  CodedActivation a{};
  a.plain = reinterpret_cast<std::uint8_t*>(memory.plain.data());
  a.count = static_cast<std::int64_t>(memory.encoding.count());
  a.buffer = memory.compressed.data();
  a.buffer_bytes = static_cast<std::int64_t>(memory.compressed.size());
  a.overflow = reinterpret_cast<std::uint8_t*>(memory.overflow.memory().data());
  a.stored = memory.overflow.stored().data();
  a.errors = reinterpret_cast<double*>(memory.errors.data());
  a.step = reinterpret_cast<const std::uint64_t*>(&memory.step);
  a.seed = memory.encoding.seed;
  // Codecs and forms are told in one order.
  const auto number = memory.encoding.codec - codec::codecs().data();
  const CodedKernels kernels = coded_kernels(static_cast<CodedForm>(number));
  if (encodes) std::memset(a.buffer + (a.buffer_bytes / kUnit - 1) * kUnit, 0, kUnit);
  run_grid(static_cast<unsigned>(memory.overflow.blocks()),
           [&] { encodes ? kernels.encode(a) : kernels.decode(a); });
}

TEST(EncodingKernels, WriteTheBytesOfTheCpusCodecsOnTheHostToo) {
  expect_encoding_contract_of_all(1, on_the_host);
}

TEST(EncodingKernels, SurviveWhateverABufferHolds) {
  expect_damage_is_survived(3, on_the_host);
}

}  // namespace
}  // namespace plimsoll::kernels::cuda
