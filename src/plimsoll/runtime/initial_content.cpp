#include "plimsoll/runtime/initial_content.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "plimsoll/base/random.h"
#include "plimsoll/ops/evaluation/array.h"
#include "plimsoll/runtime/layout_copy.h"

namespace plimsoll::runtime {
namespace {

// Elements are drawn in chunks with a generator each, so that chunks can be filled by any thread.
constexpr std::int64_t kChunk = 1 << 16;

std::uint64_t hash(std::string_view text) {
  std::uint64_t state = 0xcbf29ce484222325ULL;
  for (const char c : text) state = (state ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return state;
}

double draw(const ir::Init& init, bool real, Random& random) {
  switch (init.kind) {
    case ir::Init::Kind::kConstant:
      return init.a;
    case ir::Init::Kind::kNormal:
      return init.a + init.b * random.normal();
    case ir::Init::Kind::kUniform: {
      const double number = init.a + (init.b - init.a) * random.uniform();
      return real ? number : std::floor(number);
    }
    case ir::Init::Kind::kNone:
      return real ? random.normal() : 0.0;
    case ir::Init::Kind::kFile:
      return 0.0;
  }
  return 0.0;
}

// Drawn in pieces on the stack: a batch is filled without a copy of it beside the arena.
constexpr std::int64_t kPiece = 256;

void fill_chunk(const ir::Value& value, std::uint64_t seed, std::int64_t first, std::int64_t count,
                std::span<std::byte> memory) {
  std::uint64_t state = seed + static_cast<std::uint64_t>(first / kChunk) * 0x9e3779b97f4a7c15ULL;
  Random random(splitmix64(state));
  const ir::DType dtype = value.type.dtype;
  for (std::int64_t at = first; at < first + count; at += kPiece) {
    const std::int64_t now = std::min(kPiece, first + count - at);
    if (dtype == ir::DType::kF32) {
      std::array<float, kPiece> piece;
      for (std::int64_t i = 0; i < now; ++i)
        piece[static_cast<std::size_t>(i)] = static_cast<float>(draw(value.init, true, random));
      place_row_major(value.type, at,
                      std::as_bytes(std::span(piece).first(static_cast<std::size_t>(now))), memory);
      continue;
    }
    ops::Array piece(ir::TensorType{dtype, {now}, {}});
    for (std::int64_t i = 0; i < now; ++i)
      piece.set_number(i, draw(value.init, piece.is_real(), random));
    piece.round();
    place_row_major(value.type, at, piece.to_bytes(), memory);
  }
}

}  // namespace

void fill_source(const ir::Value& value, std::uint64_t seed, std::uint64_t step,
                 std::span<std::byte> memory) {
  if (value.init.kind == ir::Init::Kind::kFile || value.kind == ir::ValueKind::kConstant) return;
  const std::int64_t count = value.type.shape.elements();
  const bool padded = value.type.layout.block_count > 0;
  if (padded) std::memset(memory.data(), 0, memory.size());
  std::uint64_t mix = seed ^ hash(value.name);
  if (value.kind == ir::ValueKind::kInput) mix += step * 0xd1342543de82ef95ULL;
  const std::uint64_t own = splitmix64(mix);
  const std::int64_t chunks = (count + kChunk - 1) / kChunk;
  const auto fill_from = [&](std::int64_t first_chunk, std::int64_t stride) {
    for (std::int64_t chunk = first_chunk; chunk < chunks; chunk += stride) {
      const std::int64_t first = chunk * kChunk;
      fill_chunk(value, own, first, std::min(kChunk, count - first), memory);
    }
  };
  const auto workers =
      std::min<std::int64_t>(chunks, std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::thread> threads;
  for (std::int64_t w = 1; w < workers; ++w) threads.emplace_back(fill_from, w, workers);
  fill_from(0, workers);
  for (std::thread& thread : threads) thread.join();
}

Status fill_source(Executor& executor, ValueId source, std::uint64_t seed, std::uint64_t step) {
  return executor.write(source, [&](std::span<std::byte> memory) -> Status {
    fill_source(executor.graph().value(source), seed, step, memory);
    return {};
  });
}

}  // namespace plimsoll::runtime
