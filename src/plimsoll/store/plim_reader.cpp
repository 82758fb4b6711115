#include "plimsoll/store/plim_reader.h"

#include <algorithm>

#include "plimsoll/codec/weights/ternary.h"

namespace plimsoll::store {
namespace {

constexpr std::size_t kPieceChunks = 4;

std::size_t largest_chunk(const PlimTensor& tensor) {
  std::uint32_t out = 0;
  for (const PlimChunk& chunk : tensor.chunks) out = std::max(out, chunk.stored);
  return out;
}

}  // namespace

Status PlimReader::for_chunks(const WeightTensor& tensor, const Visit& visit,
                              const ReadPart& read) const {
  const PlimTensor& from = tensors_[tensor.index];
  std::vector<std::byte> stored(largest_chunk(from));
  std::vector<std::byte> piece;
  for (std::uint64_t i = 0; i < from.chunks.size(); ++i) {
    const PlimChunk& chunk = from.chunks[i];
    const std::span<std::byte> one = std::span(stored).first(chunk.stored);
    PLIMSOLL_RETURN_IF_ERROR(read(file_.subspan(chunk.offset, chunk.stored), one));
    piece.resize(chunk_bytes(from.bytes, i));
    PLIMSOLL_RETURN_IF_ERROR(decode_plim_chunk(one, from, i, piece));
    PLIMSOLL_RETURN_IF_ERROR(visit(piece));
  }
  return {};
}

Status PlimReader::read_into(const WeightTensor& tensor, std::span<std::byte> out) const {
  const PlimTensor& from = tensors_[tensor.index];
  const bool aligned = reinterpret_cast<std::uintptr_t>(out.data()) % 8 == 0;
  std::vector<std::byte> piece;
  for (std::uint64_t i = 0; i < from.chunks.size(); ++i) {
    const auto part = out.subspan(i * codec::kChunkBytes, chunk_bytes(from.bytes, i));
    if (aligned) {
      PLIMSOLL_RETURN_IF_ERROR(decode_plim(file_, from, i, part));
      continue;
    }
    PLIMSOLL_RETURN_IF_ERROR(read_one(from, i, piece));
    std::copy(piece.begin(), piece.end(), part.begin());
  }
  return {};
}

std::optional<WeightsReader::FilePart> PlimReader::part_of(const WeightTensor& tensor,
                                                           std::span<std::byte> out) const {
  const PlimTensor& from = tensors_[tensor.index];
  if (reinterpret_cast<std::uintptr_t>(out.data()) % 8 != 0) return std::nullopt;
  const std::span<std::byte> stored = out.last(from.stored_bytes());
  return FilePart{file_.subspan(from.chunks[0].offset, stored.size()), stored};
}

Status PlimReader::finish(const WeightTensor& tensor, std::span<std::byte> out) const {
  const PlimTensor& from = tensors_[tensor.index];
  const std::span<std::byte> stored = out.last(from.stored_bytes());
  std::vector<std::byte> one;
  for (std::uint64_t i = 0; i < from.chunks.size(); ++i) {
    const PlimChunk& chunk = from.chunks[i];
    const std::span<std::byte> here =
        stored.subspan(chunk.offset - from.chunks[0].offset, chunk.stored);
    const std::span<std::byte> values =
        out.subspan(i * codec::kChunkBytes, chunk_bytes(from.bytes, i));
    if (chunk.form == Form::kRaw && here.data() == values.data() && here.size() == values.size()) {
      PLIMSOLL_RETURN_IF_ERROR(check_plim_chunk(here, from, i));
      continue;
    }
    one.reserve(largest_chunk(from));
    one.assign(here.begin(), here.end());
    PLIMSOLL_RETURN_IF_ERROR(decode_plim_chunk(one, from, i, values));
  }
  return {};
}

std::size_t PlimReader::piece_bytes(const WeightTensor& tensor) const {
  return tensors_[tensor.index].is_raw() ? kPieceChunks * codec::kChunkBytes : 0;
}

Status PlimReader::finish_piece(const WeightTensor& tensor, std::span<std::byte> out,
                                std::size_t piece) const {
  const PlimTensor& from = tensors_[tensor.index];
  const std::size_t end = std::min((piece + 1) * kPieceChunks, from.chunks.size());
  for (std::size_t i = piece * kPieceChunks; i < end; ++i)
    PLIMSOLL_RETURN_IF_ERROR(
        check_plim_chunk(out.subspan(i * codec::kChunkBytes, chunk_bytes(from.bytes, i)), from, i));
  return {};
}

Status PlimReader::check(const WeightTensor& tensor, std::span<const std::byte> stored) const {
  const PlimTensor& from = tensors_[tensor.index];
  std::vector<std::byte> decoded;
  for (std::uint64_t i = 0; i < from.chunks.size(); ++i) {
    const PlimChunk& chunk = from.chunks[i];
    decoded.resize(chunk_bytes(from.bytes, i));
    PLIMSOLL_RETURN_IF_ERROR(decode_plim_chunk(
        stored.subspan(chunk.offset - from.chunks[0].offset, chunk.stored), from, i, decoded));
  }
  return {};
}

Status PlimReader::read_one(const PlimTensor& from, std::uint64_t chunk,
                            std::vector<std::byte>& out) const {
  out.resize(chunk_bytes(from.bytes, chunk));
  return decode_plim(file_, from, chunk, out);
}

std::set<unsigned> PlimReader::ternary_zeros() const {
  std::set<unsigned> out;
  for (const PlimTensor& tensor : tensors_) {
    for (const PlimChunk& chunk : tensor.chunks) {
      if (name(chunk.form) != codec::kTernaryWeights.name || chunk.stored == 0) continue;
      const auto first = static_cast<std::uint8_t>(file_[chunk.offset]);
      if (const unsigned zeros = codec::zeros_of_ternary({&first, 1}); zeros > 0) out.insert(zeros);
    }
  }
  return out;
}

}  // namespace plimsoll::store
