// The encodings and decodings of a plan: each made ready once with its addresses, then run in every
// step, with an account of what it took and what it lost.
//
// The plan fixed the size of every compressed buffer; incompressible blocks wait in host memory
// instead (kernels/cpu/compressed_activation.h): slower, never wrong, never over budget. That
// memory is taken before the first step, as large as it could ever be; pages that nothing overflows
// into are never touched.
//
// Several streams may run() at once; one encoding at a time runs on one buffer.
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "plimsoll/device/cpu/arena.h"
#include "plimsoll/kernels/cpu/compressed_activation.h"
#include "plimsoll/runtime/plan_memory.h"

namespace plimsoll::runtime {

struct EncodingAccount {
  EncodedActivation activation;
  std::vector<kernels::ActivationError> by_block;  // where what a lossy one loses is measured
};

class ActivationEncodings {
 public:
  // Roundings of lossy codecs differ by this seed, by step and by encoding.
  explicit ActivationEncodings(std::uint64_t rounding_seed) : rounding_seed_(rounding_seed) {}

  struct Bound {
    const codec::Codec* codec = nullptr;
    bool encodes = false;
    std::span<std::byte> plain;
    std::span<std::uint8_t> compressed;
    kernels::Overflow* overflow = nullptr;
    EncodingAccount* account = nullptr;  // of an encoding
    std::uint64_t seed = 0;              // tells the roundings of encodings apart
  };
  // `number` is that of the step in its plan.
  Result<Bound> bind(const plan::Plan& plan, const plan::PlanStep& step, std::size_t number,
                     const PlanMemory& memory);
  // For all that was bound.
  Status take_memory();

  // `steps` is how many were run before.
  void run(const Bound& bound, std::uint64_t steps);

  Bytes overflow_bytes() const;
  std::vector<EncodedActivation> accounts() const;

 private:
  void encode(const Bound& bound, std::uint64_t steps);

  std::uint64_t rounding_seed_;
  std::map<BufferId, kernels::Overflow> overflow_;  // by compressed buffer
  device::CpuArena memory_;                         // of the host, for all of them
  std::deque<EncodingAccount> accounts_;            // in the order of steps, which point into it
};

}  // namespace plimsoll::runtime
