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

// Elements first to first + count of what ranks share, of which those from `begin` on are this
// rank's.
void fill_chunk(const ir::Value& value, std::uint64_t seed, std::int64_t first, std::int64_t count,
                std::int64_t begin, std::span<std::byte> memory) {
  std::uint64_t state = seed + static_cast<std::uint64_t>(first / kChunk) * 0x9e3779b97f4a7c15ULL;
  Random random(splitmix64(state));
  const ir::DType dtype = value.type.dtype;
  for (std::int64_t at = first; at < first + count; at += kPiece) {
    const std::int64_t now = std::min(kPiece, first + count - at);
    if (dtype == ir::DType::kF32) {
      std::array<float, kPiece> piece;
      for (std::int64_t i = 0; i < now; ++i)
        piece[static_cast<std::size_t>(i)] = static_cast<float>(draw(value.init, true, random));
      const std::int64_t skip = std::clamp<std::int64_t>(begin - at, 0, now);
      if (skip < now)
        place_row_major(value.type, at + skip - begin,
                        std::as_bytes(std::span(piece).subspan(
                            static_cast<std::size_t>(skip), static_cast<std::size_t>(now - skip))),
                        memory);
      continue;
    }
    ops::Array piece(ir::TensorType{dtype, {now}, {}});
    for (std::int64_t i = 0; i < now; ++i)
      piece.set_number(i, draw(value.init, piece.is_real(), random));
    piece.round();
    const std::int64_t skip = std::clamp<std::int64_t>(begin - at, 0, now);
    const std::vector<std::byte> bytes = piece.to_bytes();
    const auto skipped = static_cast<std::size_t>(skip * ir::bits(dtype) / 8);
    if (skip < now)
      place_row_major(value.type, at + skip - begin, std::span(bytes).subspan(skipped), memory);
  }
}

}  // namespace

void fill_source(const ir::Value& value, std::uint64_t seed, std::uint64_t step,
                 std::span<std::byte> memory, BatchPart part) {
  if (value.init.kind == ir::Init::Kind::kFile || value.kind == ir::ValueKind::kConstant) return;
  const std::int64_t count = value.type.shape.elements();
  const bool padded = value.type.layout.block_count > 0;
  if (padded) std::memset(memory.data(), 0, memory.size());
  std::uint64_t mix = seed ^ hash(value.name);
  if (value.kind == ir::ValueKind::kInput) mix += step * 0xd1342543de82ef95ULL;
  const std::uint64_t own = splitmix64(mix);
  const bool shared = value.kind == ir::ValueKind::kInput && value.type.shape.rank() > 0;
  const std::int64_t begin = shared ? count * part.rank : 0;
  const std::int64_t front = begin / kChunk;  // chunks that are other ranks'
  const std::int64_t chunks = (begin + count + kChunk - 1) / kChunk - front;
  const auto fill_from = [&](std::int64_t first_chunk, std::int64_t stride) {
    for (std::int64_t chunk = first_chunk; chunk < chunks; chunk += stride) {
      const std::int64_t first = (front + chunk) * kChunk;
      fill_chunk(value, own, first, std::min(kChunk, begin + count - first), begin, memory);
    }
  };
  const auto workers =
      std::min<std::int64_t>(chunks, std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::thread> threads;
  for (std::int64_t w = 1; w < workers; ++w) threads.emplace_back(fill_from, w, workers);
  fill_from(0, workers);
  for (std::thread& thread : threads) thread.join();
}

void fill_elements(const ir::Value& value, std::uint64_t seed, std::int64_t first,
                   std::span<std::byte> memory) {
  const std::int64_t count = std::ssize(memory) * 8 / ir::bits(value.type.dtype);
  std::uint64_t mix = seed ^ hash(value.name);
  const std::uint64_t own = splitmix64(mix);
  for (std::int64_t chunk = first / kChunk; chunk * kChunk < first + count; ++chunk) {
    const std::int64_t at = chunk * kChunk;
    fill_chunk(value, own, at, std::min(kChunk, first + count - at), first, memory);
  }
}

Status fill_source(Executor& executor, ValueId source, std::uint64_t seed, std::uint64_t step,
                   BatchPart part) {
  return executor.write(source, [&](std::span<std::byte> memory) -> Status {
    fill_source(executor.graph().value(source), seed, step, memory, part);
    return {};
  });
}

}  // namespace plimsoll::runtime
