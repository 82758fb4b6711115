// The encodings and decodings of a plan: each made ready once with its addresses, then run in every
// step by the device, with an account of what it took and what it lost.
//
// The plan fixed the size of every compressed buffer; incompressible blocks wait in host memory
// instead (kernels/activation_encoding.h): slower, never wrong, never over budget. That memory is
// taken before the first step, as large as it could ever be; where the device computes on the host,
// pages that nothing overflows into are never touched, else it is pinned.
//
// Several streams may run encodings at once; one at a time runs on one buffer.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "plimsoll/device/device.h"
#include "plimsoll/kernels/activation_encoding.h"
#include "plimsoll/runtime/plan_memory.h"

namespace plimsoll::runtime {

class ActivationEncodings {
 public:
  // Roundings of lossy codecs differ by this seed, by step and by encoding.
  explicit ActivationEncodings(std::uint64_t rounding_seed) : rounding_seed_(rounding_seed) {}

  // `number` is that of the step in its plan. What is bound stays where it is.
  Result<const kernels::ActivationEncoding*> bind(const plan::Plan& plan,
                                                  const plan::PlanStep& step, std::size_t number,
                                                  const PlanMemory& memory);
  // For all that was bound.
  Status take_memory(device::Device& device);

  // `steps` is how many were run before.
  void begin_step(std::uint64_t steps);

  Bytes overflow_bytes() const;
  std::vector<EncodedActivation> accounts() const;

 private:
  struct Bound {
    kernels::ActivationEncoding encoding;
    EncodedActivation account;  // of an encoding, without what the data decides
    bool encodes = false;
  };

  std::uint64_t rounding_seed_;
  std::map<BufferId, kernels::Overflow> overflow_;  // by compressed buffer
  std::deque<Bound> bound_;                         // in the order of steps
  std::unique_ptr<device::Arena> memory_;           // of the host, for all of them
  kernels::EncodingStep* step_ = nullptr;           // there
};

}  // namespace plimsoll::runtime
