#include "plimsoll/profile/measure_on_device.h"

#include <algorithm>
#include <map>

#include "plimsoll/base/checked.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/ops/builder.h"
#include "plimsoll/ops/collective/collective.h"
#include "plimsoll/ops/in_place_pairs.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/profile/measure_encodings.h"

namespace plimsoll::profile {
namespace {

constexpr Bytes kBehindDeviceCaches(512 << 20);  // ten times an H200's 50 MB
constexpr int kRunsInSequence = 10;
constexpr std::int64_t kProduct = 8192;
constexpr std::int64_t kLargeMap = 256 << 20;
constexpr std::int64_t kSmallCopy = 4096;
// Of every byte of a float: 0.0115 in fp32 and in bf16.
constexpr std::byte kSmallFloat{0x3c};

struct OneRun final : device::Work {
  Status run(void* queue) override {
    kernel->run({inputs, outputs, scratch, queue});
    return {};
  }
  kernels::Kernel* kernel = nullptr;
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  std::byte* scratch = nullptr;
};

// Where the operands of one node lie, one behind the other, from the beginning of a place.
struct Operands {
  std::vector<std::int64_t> inputs;
  std::vector<std::int64_t> outputs;
  std::int64_t scratch = 0;
  std::int64_t bytes = 0;
};

Operands lay_out(const ir::Graph& graph, const ir::Node& node, const kernels::Kernel& kernel,
                 Bytes alignment) {
  Operands out;
  const auto add = [&](Bytes bytes) {
    const std::int64_t at = out.bytes;
    out.bytes += round_up(std::max<std::int64_t>(bytes.value, 1), alignment.value);
    return at;
  };
  for (const ValueId input : node.inputs)
    out.inputs.push_back(add(input.valid() ? ir::bytes_of(graph.value(input).type) : Bytes(0)));
  for (const ValueId output : node.outputs)
    out.outputs.push_back(add(ir::bytes_of(graph.value(output).type)));
  out.scratch = add(kernel.scratch());
  const ops::InPlace& rule = ops::definition_of(node).in_place;
  if (!rule.must()) return out;
  for (const ops::InPlace::Pair& pair : ops::pairs_of(rule, node))
    out.outputs[static_cast<std::size_t>(pair.output)] =
        out.inputs[static_cast<std::size_t>(pair.input)];
  return out;
}

Status fill_inputs(const ir::Graph& graph, const ir::Node& node, const Operands& operands,
                   std::byte* at, device::Stream& stream) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i].valid()) continue;
    const ir::TensorType& type = graph.value(node.inputs[i]).type;
    PLIMSOLL_RETURN_IF_ERROR(stream.fill(at + operands.inputs[i],
                                         ir::is_float(type.dtype) ? kSmallFloat : std::byte{0},
                                         static_cast<std::size_t>(ir::bytes_of(type).value)));
  }
  return stream.synchronize();
}

// The seconds of the sequence when it has settled: the third run, unless the first took long.
Result<double> seconds_of_sequence(device::Sequence& sequence) {
  double seconds = 0;
  for (int run = 0; run < 3; ++run) {
    const Stopwatch watch;
    PLIMSOLL_RETURN_IF_ERROR(sequence.run());
    seconds = watch.seconds();
    if (run == 0 && seconds > 2) break;
  }
  return seconds;
}

Result<double> seconds_on_device(const ir::Graph& graph, const ir::Node& node,
                                 kernels::Kernel& kernel, device::Device& device,
                                 device::Arena& region) {
  const Operands operands = lay_out(graph, node, kernel, device.alignment());
  PLIMSOLL_TRY(const std::unique_ptr<device::Stream> stream, device.make_stream());
  const auto places = static_cast<int>(
      std::clamp<std::int64_t>(region.size().value / operands.bytes, 1, kRunsInSequence));
  for (int place = 0; place < places; ++place)
    PLIMSOLL_RETURN_IF_ERROR(
        fill_inputs(graph, node, operands, region.data() + place * operands.bytes, *stream));
  std::vector<OneRun> runs(kRunsInSequence);
  std::vector<device::Command> commands(kRunsInSequence);
  for (int run = 0; run < kRunsInSequence; ++run) {
    OneRun& one = runs[static_cast<std::size_t>(run)];
    std::byte* const at = region.data() + (run % places) * operands.bytes;
    one.kernel = &kernel;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      one.inputs.push_back(node.inputs[i].valid() ? at + operands.inputs[i] : nullptr);
    for (const std::int64_t output : operands.outputs) one.outputs.push_back(at + output);
    one.scratch = at + operands.scratch;
    commands[static_cast<std::size_t>(run)].kind = device::Command::Kind::kWork;
    commands[static_cast<std::size_t>(run)].work = &one;
  }
  PLIMSOLL_TRY(const std::unique_ptr<device::Sequence> sequence,
               device.make_sequence(std::move(commands)));
  PLIMSOLL_TRY(const double seconds, seconds_of_sequence(*sequence));
  return std::max(seconds / kRunsInSequence, 1e-9);
}

Result<ir::Graph> one_node(std::string_view op, const ir::TensorType& type) {
  ops::Builder builder("profile");
  const ops::Var a = builder.input("a", type);
  const ops::Var b = builder.input("b", type);
  return builder.finish({builder.call1(op, {a, b})});
}

Result<double> seconds_of_one(kernels::Backend& backend, std::string_view op,
                              const ir::TensorType& type) {
  PLIMSOLL_TRY(const ir::Graph graph, one_node(op, type));
  schedule::DeviceProfile only;
  MeasureOptions how;
  how.backend = &backend;
  PLIMSOLL_RETURN_IF_ERROR(measure_on_device(graph, how, only));
  return only.measured.begin()->second;
}

Result<double> seconds_of_copy(device::Device& device, std::byte* to, const std::byte* from,
                               std::int64_t bytes) {
  std::vector<device::Command> commands(1);
  commands[0].kind = device::Command::Kind::kCopy;
  commands[0].to = to;
  commands[0].from = from;
  commands[0].bytes = static_cast<std::size_t>(bytes);
  PLIMSOLL_TRY(const std::unique_ptr<device::Sequence> sequence,
               device.make_sequence(std::move(commands)));
  return seconds_of_sequence(*sequence);
}

Status measure_device_copies(device::Device& device, schedule::DeviceProfile& profile) {
  PLIMSOLL_TRY(const auto arena, device.make_arena(Bytes(kLargeMap)));
  PLIMSOLL_TRY(const auto host, device.make_host_arena(Bytes(kLargeMap)));
  PLIMSOLL_TRY(const double out, seconds_of_copy(device, host->data(), arena->data(), kLargeMap));
  PLIMSOLL_TRY(const double in, seconds_of_copy(device, arena->data(), host->data(), kLargeMap));
  PLIMSOLL_TRY(const double small,
               seconds_of_copy(device, arena->data(), host->data(), kSmallCopy));
  const double latency = std::min({small, out / 2, in / 2});
  profile.copies = {kLargeMap / (out - latency), kLargeMap / (in - latency), latency};
  return {};
}

// What a machine without the card must know of its kernel; what takes nothing is not written down.
void note_needs(const std::string& signature, const kernels::Kernel& kernel,
                schedule::DeviceProfile& profile) {
  if (!profile.card) return;
  const schedule::KernelNeed need{kernel.scratch(), kernel.in_place(), kernel.engine()};
  if (need == schedule::KernelNeed{}) {
    profile.card->kernels.erase(signature);
  } else {
    profile.card->kernels[signature] = need;
  }
}

}  // namespace

Status measure_on_device(const ir::Graph& graph, const MeasureOptions& options,
                         schedule::DeviceProfile& profile) {
  device::Device& device = options.backend->device();
  std::map<std::string, NodeId> signatures;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    // What ranks send is priced by the link, and ranks that measured alone would wait for others.
    if (ops::is_collective(graph.nodes[n].op) && graph.nodes[n].op != "own_part") continue;
    std::string signature = ops::signature(graph, graph.nodes[n]);
    if (options.only_new && profile.measured.contains(signature)) continue;
    signatures.try_emplace(std::move(signature), NodeId(n));
  }
  std::vector<std::unique_ptr<kernels::Kernel>> kernels;
  PLIMSOLL_TRY(const device::MemoryInfo memory, device.memory_info());
  Bytes largest = std::min(kBehindDeviceCaches, Bytes(memory.free.value / 4));
  for (const auto& [signature, node] : signatures) {
    PLIMSOLL_TRY(std::unique_ptr<kernels::Kernel> kernel,
                 options.backend->make_kernel(graph, node));
    largest = std::max(largest,
                       Bytes(lay_out(graph, graph.node(node), *kernel, device.alignment()).bytes));
    kernels.push_back(std::move(kernel));
  }
  PLIMSOLL_TRY(const std::unique_ptr<device::Arena> region, device.make_arena(largest));
  std::size_t done = 0;
  for (const auto& [signature, node] : signatures) {
    if (options.on_progress) options.on_progress(done, signatures.size());
    PLIMSOLL_TRY(profile.measured[signature],
                 seconds_on_device(graph, graph.node(node), *kernels[done], device, *region));
    note_needs(signature, *kernels[done], profile);
    ++done;
  }
  // The run that follows takes them instead of making its own.
  done = 0;
  for (const auto& [signature, node] : signatures)
    options.backend->keep(signature, std::move(kernels[done++]));
  return {};
}

Result<schedule::DeviceProfile> profile_device(kernels::Backend& backend,
                                               const std::function<void(std::string_view)>& tell) {
  schedule::DeviceProfile out;
  out.name = backend.device().name();
  out.note = fmt::format("measured: {}, {}", backend.instruction_set(), backend.library());
  PLIMSOLL_TRY(const device::MemoryInfo memory, backend.device().memory_info());
  out.memory_bytes = memory.total;
  out.card = schedule::ProfiledCard{backend.instruction_set(), backend.library(), {}};
  if (tell) tell("arithmetic and memory");
  for (const ir::DType dtype : {ir::DType::kF32, ir::DType::kBF16}) {
    PLIMSOLL_TRY(const double seconds,
                 seconds_of_one(backend, "matmul", {dtype, {kProduct, kProduct}, {}}));
    out.operations_per_second[std::string(ir::name(dtype))] =
        2.0 * kProduct * kProduct * kProduct / seconds;
  }
  if (backend.instruction_set().ends_with(" tf32"))
    out.operations_per_second["tf32"] = out.operations_per_second["fp32"];
  PLIMSOLL_TRY(const double moved,
               seconds_of_one(backend, "add", {ir::DType::kF32, {kLargeMap / 4}, {}}));
  out.memory_bytes_per_second = 3.0 * kLargeMap / moved;
  PLIMSOLL_TRY(out.launch_seconds, seconds_of_one(backend, "add", {ir::DType::kF32, {16}, {}}));
  if (tell) tell("copies");
  PLIMSOLL_RETURN_IF_ERROR(measure_device_copies(backend.device(), out));
  out.disk = {};
  if (tell) tell("encodings");
  PLIMSOLL_TRY(out.codecs, measure_encodings(backend, out.launch_seconds));
  return out;
}

}  // namespace plimsoll::profile
