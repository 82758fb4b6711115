// Any bytes as a file of weights, of whatever format they begin like (safetensors, .plim, GGUF,
// torch.save, npz): an error, or tensors whose values can be read or are refused. The checksums at
// the end of a .plim file are put right first, or no mutation would get past them; what lies behind
// the checksum of a chunk is weight_codecs_fuzz.cpp's.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "plimsoll/base/checksum64.h"
#include "plimsoll/codec/weights/encoded_matrix.h"
#include "plimsoll/store/weights_file.h"

namespace {

// A weight that stays encoded, once it was read, multiplies without a fault.
void multiply_encoded(const plimsoll::store::WeightsFile& file,
                      const plimsoll::store::WeightTensor& tensor) {
  namespace codec = plimsoll::codec;
  const std::uint64_t bytes = file.encoded_bytes(tensor);
  if (bytes == 0 || bytes > (1u << 20)) return;
  std::vector<std::byte> encoded(bytes);
  if (!file.read_encoded(tensor, encoded)) return;
  const auto kind = tensor.element == plimsoll::store::Element::kF32   ? codec::WeightKind::kF32
                    : tensor.element == plimsoll::store::Element::kF16 ? codec::WeightKind::kF16
                                                                       : codec::WeightKind::kBF16;
  const codec::EncodedType type{kind, tensor.bytes / (kind == codec::WeightKind::kF32 ? 4 : 2),
                                tensor.dims.back()};
  const auto matrix = codec::EncodedMatrix::view(
      {reinterpret_cast<const std::uint8_t*>(encoded.data()), encoded.size()}, type);
  if (!matrix) __builtin_trap();
  const std::vector<float> in(std::max(type.rows(), type.columns), 0.5f);
  std::vector<float> by_rows(type.rows() + 1);
  std::vector<float> by_columns(type.columns);
  std::vector<std::byte> scratch(codec::EncodedMatrix::kScratchBytes);
  for (std::size_t i = 0; i < type.chunks(); ++i) {
    const bool rows = matrix->multiply(i, codec::Product::kRows,
                                       {1, in.data(), 0, by_rows.data(), 0}, scratch.data());
    const bool columns = matrix->multiply(i, codec::Product::kColumns,
                                          {1, in.data(), 0, by_columns.data(), 0}, scratch.data());
    if (!rows || !columns) __builtin_trap();
  }
}

// As store/plim_file.h has its last 64 bytes.
void put_checksums_right(std::vector<std::byte>& file) {
  constexpr std::string_view kMagic = "PLIMWGT1";
  constexpr std::size_t kEnd = 64;
  if (file.size() < 4096 + kEnd || std::memcmp(file.data(), kMagic.data(), kMagic.size()) != 0)
    return;
  const std::span<std::byte> end = std::span(file).last(kEnd);
  std::uint64_t begin;
  std::memcpy(&begin, end.data() + 8, 8);
  if (begin > file.size() - kEnd) return;
  const std::uint64_t length = file.size() - kEnd - begin;
  const std::uint64_t index = plimsoll::checksum64(std::span(file).subspan(begin, length));
  const std::uint64_t size = file.size();
  std::memcpy(end.data() + 16, &length, 8);
  std::memcpy(end.data() + 24, &index, 8);
  std::memcpy(end.data() + 48, &size, 8);
  const std::uint64_t all = plimsoll::checksum64(end.first(kEnd - 8));
  std::memcpy(end.data() + 56, &all, 8);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> bytes(begin, begin + size);
  put_checksums_right(bytes);
  const auto file = plimsoll::store::WeightsFile::from_bytes(bytes);
  if (!file) return 0;
  for (const auto& tensor : file->tensors()) {
    if (tensor.bytes > (1u << 20)) continue;
    std::vector<std::byte> out(tensor.bytes);
    (void)file->read_into(tensor, out);
    multiply_encoded(*file, tensor);
  }
  return 0;
}
