// A kernel: one node of a graph made ready to run on one device.
//
// Making a kernel may be slow (a primitive is compiled, an algorithm chosen) and happens once,
// before the first step; running it is what a step consists of. A kernel owns no tensor memory: it
// is handed the addresses of its inputs, outputs and scratch for every run, allocates nothing, and
// says exactly how much scratch it wants. So the plan accounts for every byte. On a GPU a run only
// enqueues on the stream it is given: it does not wait, and can be captured into a graph.
//
// An output may be the same address as an input where the operator's definition allows it in place
// and in_place() does not object.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "plimsoll/base/result.h"
#include "plimsoll/base/units.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/ops/kernel_facts.h"

namespace plimsoll::kernels {

struct Arguments {
  std::span<const std::byte* const> inputs;  // null for an absent optional input
  std::span<std::byte* const> outputs;
  std::byte* scratch = nullptr;
  void* queue = nullptr;  // the stream to enqueue on: a cudaStream_t on CUDA, unused on the CPU
};

// What rounding an input lost, where a kernel rounds one.
struct Rounding {
  double largest = 0;  // |difference|
  double squares = 0;  // of all differences
  double value_squares = 0;
  std::int64_t elements = 0;
  void add(const Rounding& other) {
    largest = std::max(largest, other.largest);
    squares += other.squares;
    value_squares += other.value_squares;
    elements += other.elements;
  }
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual Bytes scratch() const { return Bytes(0); }
  virtual bool in_place() const { return true; }
  virtual void run(const Arguments& arguments) = 0;
  // Which ways of a library it takes, as text that a kernel can be made with again
  // (cuda/engine_trail.h); empty: there is one way.
  const std::string& engine() const { return engine_; }
  void set_engine(std::string engine) { engine_ = std::move(engine); }
  // Of all runs so far; nothing: it rounds none.
  virtual std::optional<Rounding> rounding() const { return std::nullopt; }

 private:
  std::string engine_;
};

// Every address handed to a kernel of the CPU is aligned to this (to 256 on CUDA: the device says).
inline constexpr std::int64_t kAlignment = 64;

}  // namespace plimsoll::kernels
