// A backend: a device together with the kernels that were written for it.
//
//   cpu       the CPU's device and kernels (kernels/cpu)
//   cuda[:N]  a card and its kernels (kernels/cuda), from libplimsoll_cuda.so, which is opened when
//             somebody asks for it: the program needs no CUDA library. It is looked for under the
//             name in PLIMSOLL_CUDA_LIBRARY, else beside the program, in ../lib beside it, and
//             where the system looks
//
// The fake device (device/fake) with the CPU's kernels is a backend too, for tests.
//
// Failures: kDevice and one line where there is no library, no driver, no card, or one of them is
// too old; kBadInput, naming the operator, where a node has no kernel.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "plimsoll/base/result.h"
#include "plimsoll/device/device.h"
#include "plimsoll/device/fake/fake_device.h"
#include "plimsoll/kernels/activation_encoding.h"
#include "plimsoll/kernels/kernel.h"
#include "plimsoll/ops/kernel_facts.h"

namespace plimsoll::kernels {

// Which rewrites a graph goes through for a backend.
struct BackendRewrites {
  // Kernels read narrow numbers and compute with wide ones (rewrite/drop_casts.h).
  bool drops_casts = false;
  // Ends of residual blocks have kernels of their own (rewrite/fuse_residuals.h).
  bool fuses_residuals = false;
  // Convolutions want a trained weight in one layout (rewrite/lay_out_weights.h).
  bool lays_out_weights = false;
  // Products and losses take rows that end in padding (rewrite/pad_rows.h).
  bool pads_rows = false;
  // Small weights are updated together, and weights cast together (rewrite/group_updates.h,
  // rewrite/group_casts.h).
  bool groups_weights = false;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual device::Device& device() const = 0;
  // Never called twice at once. A kernel may hold state while it runs: one for each stream.
  virtual Result<std::unique_ptr<Kernel>> make_kernel(const ir::Graph& graph, NodeId node) = 0;
  // The layout a convolution (or a gradient of one) wants for its weights, the other tensors lying
  // as the node says; and of how many input channels on it wants them last.
  virtual ir::Layout weights_layout(const ir::Graph& graph, const ir::Node& node) const = 0;
  virtual std::int64_t least_channels_last() const = 0;
  // What kernels can do that changes the graph they are given.
  virtual BackendRewrites rewrites() const { return {}; }
  // What kernels choose by, and whose they are: "avx512_core", "oneDNN 2.6.3"; plans name both.
  virtual std::string instruction_set() const = 0;
  virtual std::string library() const = 0;
  // Of a device that is only planned for: what a kernel of this signature takes there.
  virtual std::optional<ops::KernelFacts> known_facts(const std::string& /*signature*/) const {
    return std::nullopt;
  }
  // By signature, which engine make_kernel() takes from now on (kernels/cuda/engine_trail.h); where
  // there is none of that name it fails. A backend whose kernels have one way ignores it.
  virtual void use_engines(const std::map<std::string, std::string>& /*engines*/) {}
  // Whether kernels can be made and run; else the device is only planned for (paper_card.h).
  virtual bool is_here() const { return true; }
  // A kernel that was made to ask for its facts: the next make_kernel() of this signature may take
  // it, where making one is slow.
  virtual void keep(const std::string& /*signature*/, std::unique_ptr<Kernel> /*kernel*/) {}
  // By work, on the stream that it was handed: calls the host when the stream has come so far, and
  // the stream goes on when the call returns. It may not use the device.
  virtual Status call_host(void* /*queue*/, void (*call)(void*), void* subject) {
    call(subject);
    return {};
  }
  // By work, on the stream that it was handed, as a kernel runs: an activation into its compressed
  // buffer, and out of it. The first time may load code.
  virtual Status encode(const ActivationEncoding& /*encoding*/, void* /*queue*/) {
    return without_encodings();
  }
  virtual Status decode(const ActivationEncoding& /*encoding*/, void* /*queue*/) {
    return without_encodings();
  }
  // Bytes of device memory that the program holds now beside what it asked for (the context,
  // modules, graphs), and of these the context's alone; 0 where the device is not told apart from
  // the host, or does not say.
  virtual Bytes context_bytes() const { return Bytes(0); }
  virtual Bytes bare_context_bytes() const { return Bytes(0); }
  // Others who hold memory of the device, in words; empty: nobody, or unknown.
  virtual std::string neighbours() const { return {}; }

 private:
  Status without_encodings() const {
    return fail(ErrorCode::kDevice, "{}: has no encodings; plan without encode", device().name());
  }
};

struct CudaOptions {
  int index = 0;      // of the card
  bool tf32 = false;  // products and convolutions of fp32 may round their operands to TF32
  device::AddressRegistry* addresses = &device::addresses();  // where the card enters its memory
};

// "cuda" or "cuda:N": the number of the card. Nothing for other names; an error for "cuda:x".
Result<std::optional<int>> parse_cuda(std::string_view device);

std::shared_ptr<Backend> make_cpu_backend(int threads);  // 0: as many as the machine has
std::shared_ptr<Backend> make_fake_backend(const device::FakeDeviceOptions& options);
Result<std::shared_ptr<Backend>> open_cuda_backend(const CudaOptions& options);

// The facts of every node of the graph, for planning on the machine that runs; the first node
// without a kernel is an error that names it.
Result<ops::KernelTable> kernel_facts(Backend& backend, const ir::Graph& graph);

}  // namespace plimsoll::kernels
