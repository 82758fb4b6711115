// The tensors of a .plim file (plim_file.h), read whole, in pieces, or as they are stored.
//
// part_of() has all stored chunks of a tensor read at once, to the end of the memory for its
// values: none is larger than what it decodes to, so finish(), which decodes from the front,
// overtakes none of them but the one in work, which is copied aside. Chunks that are as they should
// be need no more than their checksums, each when it is there: finish_piece().
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "plimsoll/codec/weights/weight_codec.h"
#include "plimsoll/store/plim_file.h"
#include "plimsoll/store/weights_reader.h"

namespace plimsoll::store {

class PlimReader : public WeightsReader {
 public:
  // `file` must outlive it.
  PlimReader(std::span<const std::byte> file, std::vector<PlimTensor> tensors)
      : file_(file), tensors_(std::move(tensors)) {}
  Status for_chunks(const WeightTensor& tensor, const Visit& visit,
                    const ReadPart& read) const override;
  Status read_into(const WeightTensor& tensor, std::span<std::byte> out) const override;
  std::optional<FilePart> part_of(const WeightTensor& tensor,
                                  std::span<std::byte> out) const override;
  Status finish(const WeightTensor& tensor, std::span<std::byte> out) const override;
  std::size_t piece_bytes(const WeightTensor& tensor) const override;
  Status finish_piece(const WeightTensor& tensor, std::span<std::byte> out,
                      std::size_t piece) const override;

  const PlimTensor& tensor(std::size_t index) const { return tensors_[index]; }
  Status read_one(const PlimTensor& from, std::uint64_t chunk, std::vector<std::byte>& out) const;
  // Of chunks that stay as they are stored: each compared with its checksum, and decoded once.
  Status check(const WeightTensor& tensor, std::span<const std::byte> stored) const;
  // Shares of zeros, in 64ths, that ternary chunks were written for.
  std::set<unsigned> ternary_zeros() const;

 private:
  std::span<const std::byte> file_;
  std::vector<PlimTensor> tensors_;
};

}  // namespace plimsoll::store
