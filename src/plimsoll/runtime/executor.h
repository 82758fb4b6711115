// An executor: runs one step of a graph, again and again, in memory it accounts for.
//
// Two strategies stand behind this interface. On demand (on_demand.h): before each operator its
// results are taken from a pool, and given back when their last reader has run. Planned
// (planned.h): one arena is taken at the start and every byte has its place. They compute the same
// bits, and tests hold one against the other.
//
//   executor->write(w, ...)    gives a source its content: the batch, a weight; between steps
//   executor->step()           one step
//   executor->read(w, ...)     a source as it is now
//   executor->result(y, ...)   an output after a step, until the next
//
// Content goes through memory that the caller is handed for the time of the call: the source's own
// where the device computes on the host, else memory from which it is copied (staging.h).
//
// State stays in place between steps; inputs must be written before every step, because their
// memory may be used again within one.
//
// Not thread-safe; one executor, one caller.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/base/units.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/kernels/backend/backend.h"
#include "plimsoll/kernels/kernel.h"
#include "plimsoll/runtime/paging/pager.h"
#include "plimsoll/runtime/staging.h"
#include "plimsoll/trace/event.h"

namespace plimsoll::runtime {

// What one encoding of a plan did: bytes of the last step, errors of the first. Errors are measured
// once, because decoding again to compare takes time that the steps after it should not pay.
struct EncodedActivation {
  std::string tensor;
  std::string form;  // the name of its codec
  bool lossless = true;
  Bytes plain;     // of the activation
  Bytes planned;   // of its compressed buffer
  Bytes used;      // of the compressed buffer
  Bytes overflow;  // plain bytes of incompressible blocks, which waited in host memory
  std::int64_t elements = 0;
  double largest_error = 0;
  double squared_error = 0;  // sum over the elements
  double squared_values = 0;
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual const ir::Graph& graph() const = 0;
  virtual Status write(ValueId source, const WriteBytes& content) = 0;
  virtual Status read(ValueId source, const ReadBytes& use) = 0;
  virtual Status step() = 0;
  virtual Status result(ValueId output, const ReadBytes& use) = 0;
  // Device memory as whoever hands it out counts it: the arena, or the most that a pool had in use
  // at once.
  virtual Bytes peak_bytes() const = 0;
  // Where a source lies between steps, on the device.
  virtual std::span<std::byte> memory_of(ValueId source) const = 0;
  // Memory it took once and runs in: device memory, then the host's where it has some. None: it
  // takes memory as it goes.
  virtual std::vector<std::span<std::byte>> arenas() const { return {}; }
  // Where it runs; the executor's own where it was given none.
  virtual kernels::Backend& backend() const = 0;
  // Keeps something that lies over its arena until that is given back; false: it has no arena of
  // its own.
  virtual bool keep(const std::shared_ptr<const void>&) { return false; }
  // Memory of its arena that the host may use before the first step: no source lies there. Nothing:
  // it has no arena of its own that the host can write to.
  virtual std::optional<std::span<std::byte>> free_memory() const { return std::nullopt; }
  // Of encoded activations, what was incompressible in the last step and waited in host memory.
  virtual Bytes overflow_bytes() const { return Bytes(0); }
  // Of a plan: one for each encoding in a step.
  virtual std::vector<EncodedActivation> encoded_activations() const { return {}; }

  // Of kernels that round what they read (kernels/kernel.h), all steps and kernels together.
  virtual std::optional<kernels::Rounding> rounding() const { return std::nullopt; }

  // Of one that pages: what its last step copied.
  virtual std::optional<PagingReport> paging() const { return std::nullopt; }

  // The same with memory of the caller's.
  Status write(ValueId source, std::span<const std::byte> bytes);
  Result<std::vector<std::byte>> read(ValueId source);
  Result<std::vector<std::byte>> result(ValueId output);
};

// Stands between an executor and the kernels it made: tests plant faults with it.
using WrapKernel = std::function<std::unique_ptr<kernels::Kernel>(
    const ir::Node&, std::unique_ptr<kernels::Kernel>)>;

// The same for whoever has to know which node runs: with it no two nodes share a kernel.
using WatchKernel = std::function<std::unique_ptr<kernels::Kernel>(
    const ir::Graph&, const ir::Node&, std::unique_ptr<kernels::Kernel>)>;

// Host memory that runs which page take over from each other: pinning gigabytes takes seconds.
struct BackingStore {
  std::unique_ptr<device::Arena> memory;
};

struct ExecutorOptions {
  int threads = 0;                // of the CPU's kernels; 0: as many as the machine has
  trace::Trace* trace = nullptr;  // where events go, when wanted
  bool poison = false;            // fill memory with NaN patterns when it is freed
  std::string swap_file{};        // where values wait that left the device; empty: in host memory
  // of a plan: seconds of each of its steps, the last time it ran
  std::vector<double>* step_seconds = nullptr;
  WrapKernel wrap_kernel{};
  Bytes space_behind{};             // the device arena: tests see who writes there
  std::uint64_t rounding_seed = 1;  // by which lossy encodings round; moves on by one every step
  WatchKernel watch_kernel{};
  std::shared_ptr<kernels::Backend> backend{};  // where it runs; absent: on the CPU
  std::shared_ptr<BackingStore> backing{};      // of one that pages; absent: its own
};

// The one that the options name, or the CPU's.
std::shared_ptr<kernels::Backend> backend_of(const ExecutorOptions& options);

// A kernel with its addresses, ready to be run on a stream.
struct BoundKernel : device::Work {
  kernels::Kernel* kernel = nullptr;
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  std::byte* scratch = nullptr;

  // Whether all of them lie on the device that the kernel runs on: asked before every launch.
  Status check_addresses(const device::Device& device, const ir::Graph& graph,
                         const ir::Node& node) const;
  Status run(void* queue) override {
    kernel->run({inputs, outputs, scratch, queue});
    return {};
  }
};

// One kernel per distinct signature, and which node uses which.
class KernelSet {
 public:
  // Of all nodes, or of those that are wanted.
  static Result<KernelSet> make(const ir::Graph& graph, kernels::Backend& backend,
                                const ExecutorOptions& options,
                                const std::vector<bool>& wanted = {});

  kernels::Kernel& of(NodeId node) const { return *kernels_[index_[node.index()]]; }
  // Added to `all`.
  void add_rounding(std::optional<kernels::Rounding>& all) const;

 private:
  std::vector<std::unique_ptr<kernels::Kernel>> kernels_;
  std::vector<std::size_t> index_;
};

// The category of a value in a trace.
trace::Category category_of(const ir::Graph& graph, ValueId value);
// "layer/op", as traces and reports name a node.
std::string display_name(const ir::Node& node);
// Nanoseconds on the steady clock.
std::int64_t now_ns();

}  // namespace plimsoll::runtime
