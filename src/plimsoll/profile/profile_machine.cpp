#include "plimsoll/profile/profile_machine.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "plimsoll/base/clock.h"
#include "plimsoll/base/random.h"
#include "plimsoll/base/threads.h"
#include "plimsoll/device/cpu/arena.h"
#include "plimsoll/device/cpu/swap_file.h"
#include "plimsoll/kernels/cpu/compressed_activation.h"
#include "plimsoll/kernels/cpu/cpu_kernels.h"
#include "plimsoll/ops/builder.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/profile/measure_operators.h"

namespace plimsoll::profile {
namespace {

constexpr std::int64_t kMatrix = 512;  // a run of less than a slice of the scheduler
constexpr std::int64_t kTaxed = 1536;  // of many slices
constexpr std::int64_t kMap = 64 << 20;
constexpr std::int64_t kHeld = 3 << 19;  // in the second-level caches of two small cores
constexpr std::int64_t kPage = 4096;
constexpr int kRepeats = 5;

// One node on inputs of these types.
Result<ir::Graph> graph_of(std::string_view op, const std::vector<ir::TensorType>& types) {
  ops::Builder builder("profile");
  std::vector<ops::Var> inputs;
  for (std::size_t i = 0; i < types.size(); ++i)
    inputs.push_back(builder.input(fmt::format("x{}", i), types[i]));
  return builder.finish({builder.call1(op, inputs)});
}

Result<double> seconds_of(const ir::Graph& graph, int threads, bool fastest = true) {
  schedule::DeviceProfile only;
  MeasureOptions how;
  how.threads = threads;
  how.fastest = fastest;
  PLIMSOLL_RETURN_IF_ERROR(measure_operators(graph, how, only));
  return only.measured.begin()->second;
}

// To read two tensors and write a third, of so many bytes together.
Result<double> seconds_to_add(std::int64_t bytes, int threads) {
  const ir::TensorType map{ir::DType::kF32, {bytes / 12}, {}};
  PLIMSOLL_TRY(const ir::Graph sum, graph_of("add", {map, map}));
  return seconds_of(sum, threads);
}

template <typename Body>
double best_of(int repeats, const Body& body) {
  double best = 1e30;
  for (int i = 0; i < repeats; ++i) {
    const Stopwatch watch;
    body();
    best = std::min(best, watch.seconds());
  }
  return best;
}

// The first run pays for pages and threads.
template <typename Body>
double settled(const Body& body) {
  body();
  return best_of(kRepeats, body);
}

Status measure_arithmetic(int threads, schedule::DeviceProfile& profile) {
  for (const ir::DType dtype : {ir::DType::kF32, ir::DType::kBF16}) {
    const ir::TensorType matrix{dtype, {kMatrix, kMatrix}, {}};
    PLIMSOLL_TRY(const ir::Graph product, graph_of("matmul", {matrix, matrix}));
    if (!kernels::has_special_kernel(product, product.nodes.front())) continue;
    PLIMSOLL_TRY(const double seconds, seconds_of(product, threads));
    profile.operations_per_second[std::string(ir::name(dtype))] =
        2.0 * kMatrix * kMatrix * kMatrix / seconds;
  }
  PLIMSOLL_TRY(const double moved, seconds_to_add(3 * kMap, threads));
  profile.memory_bytes_per_second = 3.0 * kMap / moved;
  PLIMSOLL_TRY(const double held, seconds_to_add(kHeld, threads));
  profile.cache = {Bytes(kHeld), kHeld / held};
  const ir::TensorType tiny{ir::DType::kF32, {16}, {}};
  PLIMSOLL_TRY(const ir::Graph small, graph_of("add", {tiny, tiny}));
  PLIMSOLL_TRY(profile.launch_seconds, seconds_of(small, threads));
  return {};
}

// Seconds for a copy on a thread of its own, from the call to its end.
template <typename Body>
double on_a_thread(const Body& body) {
  return settled([&] { std::thread(body).join(); });
}

schedule::CopyRates rates_of(double out, double in, double small) {
  const double latency = std::min({small, out / 2, in / 2});
  return {kMap / (out - latency), kMap / (in - latency), latency};
}

Status measure_copies(schedule::DeviceProfile& profile) {
  PLIMSOLL_TRY(const device::CpuArena device, device::CpuArena::make(Bytes(kMap)));
  PLIMSOLL_TRY(const device::CpuArena host, device::CpuArena::make(Bytes(kMap)));
  std::memset(device.data(), 1, kMap);
  const double out = on_a_thread([&] { std::memcpy(host.data(), device.data(), kMap); });
  const double in = on_a_thread([&] { std::memcpy(device.data(), host.data(), kMap); });
  const double small = on_a_thread([&] { std::memcpy(device.data(), host.data(), kPage); });
  profile.copies = rates_of(out, in, small);
  return {};
}

// A product with and without copies beside it, on a thread that never rests.
Status measure_tax(int threads, schedule::DeviceProfile& profile) {
  const ir::TensorType matrix{ir::DType::kF32, {kTaxed, kTaxed}, {}};
  PLIMSOLL_TRY(const ir::Graph product, graph_of("matmul", {matrix, matrix}));
  PLIMSOLL_TRY(const double alone, seconds_of(product, threads, false));
  std::vector<std::byte> from(kMap, std::byte{1});
  std::vector<std::byte> to(kMap, std::byte{2});
  std::atomic<bool> over{false};
  std::thread copier([&] {
    while (!over.load(std::memory_order_relaxed)) std::memcpy(to.data(), from.data(), kMap / 8);
  });
  const Result<double> beside = seconds_of(product, threads, false);
  over.store(true);
  copier.join();
  if (!beside) return forward(beside);
  profile.copy_tax = std::clamp(1 - alone / *beside, 0.0, 1.0);
  return {};
}

void measure_codecs(bool lossy, schedule::DeviceProfile& profile) {
  std::vector<float> map(kMap / sizeof(float));
  std::vector<float> back(map.size());
  Random random(1);
  // Drawn once and repeated: what matters is which are zero, in no order that could be predicted.
  constexpr std::size_t kDrawn = 1 << 16;
  for (std::size_t i = 0; i < map.size(); ++i)
    map[i] = i < kDrawn ? std::max(0.0F, static_cast<float>(random.normal())) : map[i - kDrawn];
  profile.codecs.latency_seconds = profile.launch_seconds;
  for (const codec::Codec& codec : codec::codecs()) {
    if (codec.element_bytes != sizeof(float) || !(codec.lossless || lossy)) continue;
    // `run --budget` measures first: the five lossy forms together may take as long as the sparse
    // one.
    const std::span<float> part =
        std::span(map).first(codec.lossless ? map.size() : map.size() / 5);
    std::vector<std::uint8_t> compressed(codec::compressed_bytes(codec, part.size(), 0.4));
    kernels::Overflow overflow(codec, part.size_bytes());
    std::vector<std::byte> room(static_cast<std::size_t>(overflow.memory_wanted().value));
    overflow.take_memory(room);
    const double encode = settled(
        [&] { kernels::compress_activation(codec, std::as_bytes(part), compressed, overflow); });
    const double decode = settled([&] {
      kernels::decompress_activation(codec, compressed, overflow,
                                     std::as_writable_bytes(std::span(back).first(part.size())));
    });
    const schedule::CodecRate rate{static_cast<double>(part.size_bytes()) / encode,
                                   static_cast<double>(part.size_bytes()) / decode};
    if (codec.lossless) {
      profile.codecs.encode_bytes_per_second = rate.encode_bytes_per_second;
      profile.codecs.decode_bytes_per_second = rate.decode_bytes_per_second;
    } else {
      profile.codecs.forms[std::string(codec.name)] = rate;
    }
  }
}

}  // namespace

Result<schedule::CopyRates> measure_disk(const std::filesystem::path& folder) {
  PLIMSOLL_TRY(const device::SwapFile file, device::SwapFile::make(folder, Bytes(kMap)));
  std::vector<std::byte> memory(kMap, std::byte{1});
  Status status;
  const auto note = [&](Status one) {
    if (status && !one) status = std::move(one);
  };
  const double out = on_a_thread([&] { note(file.write(Offset(0), memory)); });
  const double in = on_a_thread([&] { note(file.read(Offset(0), memory)); });
  const double small =
      on_a_thread([&] { note(file.read(Offset(0), std::span(memory).first(kPage))); });
  PLIMSOLL_RETURN_IF_ERROR(status);
  return rates_of(out, in, small);
}

Result<schedule::DeviceProfile> profile_machine(const ProfileOptions& options) {
  const int threads = resolve_threads(options.threads);
  const auto tell = [&](std::string_view what) {
    if (options.on_progress) options.on_progress(what);
  };
  schedule::DeviceProfile out;
  out.name = fmt::format("cpu{}", threads);
  out.note = fmt::format("measured: {} threads, {}, {}", threads, kernels::cpu_instruction_set(),
                         kernels::cpu_kernel_library());
  out.memory_bytes =
      Bytes(static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE));
  tell("arithmetic and memory");
  PLIMSOLL_RETURN_IF_ERROR(measure_arithmetic(threads, out));
  tell("copies");
  PLIMSOLL_RETURN_IF_ERROR(measure_copies(out));
  if (!options.quick) {
    PLIMSOLL_RETURN_IF_ERROR(measure_tax(threads, out));
    tell("disk");
    PLIMSOLL_TRY(out.disk, measure_disk(options.folder));
  }
  tell("encodings");
  measure_codecs(!options.quick, out);
  return out;
}

}  // namespace plimsoll::profile
