// Any bytes as a file of weights, of whatever format they begin like (safetensors, .plim, GGUF,
// torch.save, npz): an error, or tensors whose values can be read or are refused. From memory and
// from a file, by each way to read one: the verdicts and the values must be the same. The checksums
// at the end of a .plim file are put right first, or no mutation would get past them; what lies
// behind the checksum of a chunk is weight_codecs_fuzz.cpp's.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
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
                                codec::row_elements(tensor.dims)};
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

using plimsoll::store::ReadMethod;
using plimsoll::store::WeightsFile;
using plimsoll::store::WeightTensor;
using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kLargest = 1u << 20;  // tensors above are not read

// Nothing: refused.
std::optional<Bytes> values_of(const WeightsFile& file, const WeightTensor& tensor) {
  Bytes out(tensor.bytes);
  if (!file.read_into(tensor, out)) return std::nullopt;
  return out;
}

// The same in pieces, which must be its chunks.
std::optional<Bytes> values_in_chunks(const WeightsFile& file, const WeightTensor& tensor) {
  Bytes out;
  const auto visited = file.for_chunks(tensor, [&](std::span<const std::byte> piece) {
    out.insert(out.end(), piece.begin(), piece.end());
    return plimsoll::Status{};
  });
  if (!visited) return std::nullopt;
  if (out.size() != tensor.bytes) __builtin_trap();
  return out;
}

// All tensors as one queue of parts, which is an error or gives what each has by itself.
void read_together(const WeightsFile& file, const std::vector<std::optional<Bytes>>& expected) {
  std::vector<Bytes> memory;
  std::vector<WeightsFile::Wanted> wanted;
  bool all_right = true;
  for (const auto& tensor : file.tensors())
    memory.emplace_back(tensor.bytes > kLargest ? 0 : tensor.bytes);
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (file.tensors()[i].bytes > kLargest) continue;
    wanted.push_back({&file.tensors()[i], memory[i]});
    all_right = all_right && expected[i].has_value();
  }
  const bool read = file.read_all(wanted).has_value();
  if (read != all_right) __builtin_trap();
  for (std::size_t i = 0; read && i < memory.size(); ++i)
    if (file.tensors()[i].bytes <= kLargest && memory[i] != *expected[i]) __builtin_trap();
}

// Pages of the file in place of its bytes, where they can be laid.
void read_over_pages(const WeightsFile& file, const WeightTensor& tensor, const Bytes& expected) {
  if (tensor.bytes < (1u << 12)) return;
  const std::size_t room = tensor.bytes + (1u << 12);
  void* memory = ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  {
    const std::span<std::byte> out(static_cast<std::byte*>(memory), tensor.bytes);
    const auto laid = file.lay_over(tensor, out);
    if (!laid) __builtin_trap();
    if (*laid != nullptr && !std::equal(out.begin(), out.end(), expected.begin())) __builtin_trap();
  }
  ::munmap(memory, room);
}

void read_through_file(const Bytes& bytes, const WeightsFile& from_memory,
                       const std::vector<std::optional<Bytes>>& expected) {
  static const int descriptor = ::memfd_create("weights", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  if (descriptor < 0 || ::ftruncate(descriptor, 0) != 0 ||
      ::pwrite(descriptor, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    __builtin_trap();
  auto file = WeightsFile::open(path);
  if (!file || file->tensors().size() != from_memory.tensors().size()) __builtin_trap();
  constexpr ReadMethod kMethods[] = {ReadMethod::kCached, ReadMethod::kDirect, ReadMethod::kNetwork,
                                     ReadMethod::kMapped};
  file->set_read_method(kMethods[bytes.size() % std::size(kMethods)]);
  for (std::size_t i = 0; i < file->tensors().size(); ++i) {
    const WeightTensor& tensor = file->tensors()[i];
    if (tensor.bytes > kLargest) continue;
    if (values_of(*file, tensor) != expected[i]) __builtin_trap();
    if (values_in_chunks(*file, tensor) != expected[i]) __builtin_trap();
    if (expected[i]) read_over_pages(*file, tensor, *expected[i]);
    multiply_encoded(*file, tensor);
  }
  read_together(*file, expected);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  Bytes bytes(begin, begin + size);
  put_checksums_right(bytes);
  const auto file = WeightsFile::from_bytes(bytes);
  if (!file) return 0;
  std::vector<std::optional<Bytes>> values;
  for (const auto& tensor : file->tensors()) {
    values.emplace_back();
    if (tensor.bytes > kLargest) continue;
    values.back() = values_of(*file, tensor);
    multiply_encoded(*file, tensor);
  }
  read_through_file(bytes, *file, values);
  return 0;
}
