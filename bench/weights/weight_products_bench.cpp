// One token through a layer whose weight stays encoded, beside the same layer in fp32; and rows of
// it gathered.
//
//   build/release/bin/weight_products_bench                  # 4096 x 4096, all threads
//   build/release/bin/weight_products_bench 4096 11008 1     # columns, rows, threads
//
// Each run meets its weight cold: copies of it fill 512 MiB and take turns. Times are the median of
// 15 runs. "speed-up" is the time of `linear` in fp32 (oneDNN) over that of `encoded_linear`;
// "sparse" forms hold a weight of which nine in ten values are zero; "x int8" rounds the other
// operand (ops/products/encoded_weight.h).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/base/clock.h"
#include "plimsoll/base/random.h"
#include "plimsoll/base/threads.h"
#include "plimsoll/codec/weights/encoded_matrix.h"
#include "plimsoll/codec/weights/weight_codecs.h"
#include "plimsoll/device/cpu/arena.h"
#include "plimsoll/kernels/cpu/cpu_kernels.h"
#include "plimsoll/ops/functions.h"
#include "plimsoll/ops/products/encoded_weight.h"

namespace {

using namespace plimsoll;

struct Sizes {
  std::int64_t inner;
  std::int64_t columns;
  bool turned;
  int threads;
  std::int64_t tokens;
};

std::vector<float> weight_of(const Sizes& sizes, double zeros, bool ternary) {
  Random random(1);
  std::vector<float> out(static_cast<std::size_t>(sizes.inner * sizes.columns));
  for (float& value : out) {
    const auto normal = static_cast<float>(0.02 * random.normal());
    value = random.chance(zeros) ? 0.0f : ternary ? std::copysign(0.02f, normal) : normal;
  }
  return out;
}

// The weight as encoded_matrix.h has it; empty: refused.
std::vector<std::uint8_t> encoded(const codec::WeightCodec& codec, const std::vector<float>& values,
                                  std::size_t columns) {
  const codec::EncodedType type{codec::WeightKind::kF32, values.size(), columns};
  const auto form = static_cast<std::uint8_t>(codec::find_weight_codec(codec.name) -
                                              codec::weight_codecs().data() + 1);
  std::vector<codec::EncodedChunk> chunks;
  std::vector<std::uint8_t> stored;
  for (std::size_t i = 0; i < type.chunks(); ++i) {
    const std::size_t begin = i * type.chunk_elements();
    const auto part =
        std::span(values).subspan(begin, std::min(type.chunk_elements(), values.size() - begin));
    const codec::ChunkShape shape{codec::WeightKind::kF32, 4, columns, begin};
    std::vector<std::uint8_t> bytes(codec.largest_bytes(part.size(), shape));
    std::size_t used = 0;
    if (!codec.encode(std::as_bytes(part), shape, bytes, used)) return {};
    chunks.push_back({form, static_cast<std::uint32_t>(used)});
    stored.insert(stored.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(used));
  }
  std::vector<std::uint8_t> out(codec::encoded_table_bytes(chunks.size()));
  codec::write_encoded_table(chunks, out);
  out.insert(out.end(), stored.begin(), stored.end());
  return out;
}

ir::Graph layer(const Sizes& sizes, std::string_view form, std::int64_t bytes,
                bool rounded = false) {
  ops::Builder builder("layer");
  const ops::Var x = builder.input("x", {ir::DType::kF32, {sizes.tokens, sizes.inner}, {}});
  const ir::Shape shape =
      sizes.turned ? ir::Shape{sizes.columns, sizes.inner} : ir::Shape{sizes.inner, sizes.columns};
  if (form.empty()) {
    const ops::Var w = builder.weight("w", {ir::DType::kF32, shape, {}}, {});
    return *builder.finish({ops::linear(x, w, {}, {sizes.turned})});
  }
  const ops::Var w = builder.weight("w", {ir::DType::kU8, {bytes}, {}}, {});
  ir::Attributes attributes = ops::encoded_attributes(shape, ir::DType::kF32, form);
  attributes.set("trans_w", std::int64_t{sizes.turned ? 1 : 0});
  if (rounded) attributes.set("int8_activations", std::int64_t{1});
  return *builder.finish({builder.call1("encoded_linear", {x, w}, std::move(attributes))});
}

// Seconds of one run, the weight not in a cache.
double seconds_of(const Sizes& sizes, const ir::Graph& graph, std::span<const std::byte> weight) {
  constexpr std::size_t kAll = std::size_t{512} << 20;
  const ir::Node& node = graph.nodes.front();
  auto kernel = kernels::make_cpu_kernel(graph, node, {sizes.threads});
  if (!kernel) std::abort();
  const std::size_t step = (weight.size() + 4095) / 4096 * 4096;
  const std::size_t copies = std::max<std::size_t>(2, kAll / step);
  const auto take = [](std::size_t bytes) {
    return std::move(
        *device::CpuArena::make(Bytes(static_cast<std::int64_t>((bytes + 4095) / 4096 * 4096))));
  };
  const device::CpuArena weights = take(copies * step);
  for (std::size_t i = 0; i < copies; ++i)
    std::memcpy(weights.data() + i * step, weight.data(), weight.size());
  const device::CpuArena x = take(static_cast<std::size_t>(4 * sizes.tokens * sizes.inner));
  std::fill_n(reinterpret_cast<float*>(x.data()), sizes.tokens * sizes.inner, 0.5f);
  const device::CpuArena y = take(static_cast<std::size_t>(4 * sizes.tokens * sizes.columns));
  const device::CpuArena scratch = take(static_cast<std::size_t>((*kernel)->scratch().value) + 64);
  std::vector<double> times;
  for (std::size_t i = 0; i < 15; ++i) {
    const std::vector<const std::byte*> inputs = {x.data(), weights.data() + i % copies * step};
    const std::vector<std::byte*> outputs = {y.data()};
    const Stopwatch watch;
    (*kernel)->run({inputs, outputs, scratch.data()});
    times.push_back(watch.seconds());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void measure_layer(const Sizes& sizes) {
  fmt::print("{} token{} x [{}], {} thread{}\n  {:<14}{:>8}{:>10}{:>10}{:>12}\n", sizes.tokens,
             sizes.tokens == 1 ? "" : "s",
             sizes.turned ? fmt::format("{},{}] turned, [", sizes.columns, sizes.inner) + "N,K"
                          : fmt::format("{},{}], [", sizes.inner, sizes.columns) + "K,N",
             sizes.threads, sizes.threads == 1 ? "" : "s", "form", "bits", "ms", "GB/s",
             "speed-up");
  const auto columns = static_cast<std::size_t>(sizes.turned ? sizes.inner : sizes.columns);
  const std::vector<float> dense = weight_of(sizes, 0, false);
  const std::vector<float> sparse = weight_of(sizes, 0.9, false);
  const std::vector<float> ternary = weight_of(sizes, 0.9, true);
  const double plain = seconds_of(sizes, layer(sizes, "", 0), std::as_bytes(std::span(dense)));
  const double elements = static_cast<double>(dense.size());
  fmt::print("  {:<14}{:>8.2f}{:>10.3f}{:>10.2f}{:>12}\n", "fp32", 32.0, 1e3 * plain,
             4 * elements / plain / 1e9, "1.00");
  for (const codec::WeightCodec& codec : codec::weight_codecs()) {
    const bool is_sparse = codec.name == "coo" || codec.name == "csr" || codec.name == "bitmask";
    const auto bytes = encoded(codec,
                               is_sparse                 ? sparse
                               : codec.name == "ternary" ? ternary
                                                         : dense,
                               columns);
    if (bytes.empty() || !codec::stays_in_memory(codec)) continue;
    const auto measure = [&](const std::string& title, bool rounded) {
      const double seconds = seconds_of(
          sizes, layer(sizes, codec.name, static_cast<std::int64_t>(bytes.size()), rounded),
          std::as_bytes(std::span(bytes)));
      fmt::print("  {:<14}{:>8.2f}{:>10.3f}{:>10.2f}{:>12.2f}\n", title,
                 8 * static_cast<double>(bytes.size()) / elements, 1e3 * seconds,
                 static_cast<double>(bytes.size()) / seconds / 1e9, plain / seconds);
    };
    measure(std::string(codec.name), false);
    if (codec.multiply_whole != nullptr && sizes.turned)
      measure(fmt::format("{}, x int8", codec.name), true);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int i, std::int64_t otherwise) {
    return argc > i ? std::atoll(argv[i]) : otherwise;
  };
  const auto threads = static_cast<int>(number(3, resolve_threads(0)));
  for (const bool turned : {true, false})
    measure_layer({number(1, 4096), number(2, 4096), turned, threads, number(4, 1)});
  return 0;
}
