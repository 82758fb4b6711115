// What a format of weight files does: the tensors that it has, and their values. One reader for
// each format (open_weights.h); files are opened, and read in the way that suits them, by
// WeightsFile (weights_file.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/store/element.h"

namespace plimsoll::store {

struct WeightTensor {
  std::string name;
  Element element = Element::kF32;  // decoded
  std::vector<std::uint64_t> dims;
  std::string form;  // how the file holds it: "raw", "q8_0", "Q4_K", "deflated"
  std::uint64_t bytes = 0;
  std::uint64_t stored_bytes = 0;
  std::size_t index = 0;  // in the file's reader
  // Its values where they lie in the file as they are; empty: they must be read.
  std::span<const std::byte> mapped;
  // What is read for them, of the file; empty: several parts of it.
  std::span<const std::byte> in_file = {};
};

class WeightsReader {
 public:
  virtual ~WeightsReader() = default;
  // All values of a tensor in order, in pieces of kChunkBytes (codec/weights/weight_codec.h) but
  // for the last, each aligned to 8 bytes or to its elements' size at least.
  using Visit = std::function<Status(std::span<const std::byte>)>;
  // Reads what a span of the file's mapping shows.
  using ReadPart = std::function<Status(std::span<const std::byte>, std::span<std::byte>)>;
  virtual Status for_chunks(const WeightTensor& tensor, const Visit& visit,
                            const ReadPart& read) const = 0;
  virtual Status read_into(const WeightTensor& tensor, std::span<std::byte> out) const = 0;
  // The same in two steps: a part of the file is read to memory of `out`, then finish() makes the
  // values of it in place. Nothing: the format has no such way.
  struct FilePart {
    std::span<const std::byte> in_file;
    std::span<std::byte> to;
  };
  virtual std::optional<FilePart> part_of(const WeightTensor&, std::span<std::byte>) const {
    return std::nullopt;
  }
  virtual Status finish(const WeightTensor&, std::span<std::byte>) const { return {}; }
  // Where each so many bytes can be finished by themselves, how many; 0: only the whole.
  virtual std::size_t piece_bytes(const WeightTensor&) const { return 0; }
  virtual Status finish_piece(const WeightTensor&, std::span<std::byte>, std::size_t) const {
    return {};
  }
};

}  // namespace plimsoll::store
