// numpy's files: one array (.npy), and arrays by name in a zip archive (.npz, stored or deflated).
//
// An .npy file is a magic number, a length, a Python literal such as
//   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
// and the elements. The literal is parsed as the three entries it may have and nothing else; no
// Python object is ever made of it ('descr' of an object array is refused by name).
//
// An .npz file is hostile like any other: the archive's directory is checked against the file's size, names
// against what they repeat, a member's declared size against its array's shape and against what deflate can at
// most expand, all before memory is taken for it. Big-endian arrays are refused; Fortran order is turned.
//
// Cost: reading copies every array once (inflating is the copy for a compressed one).
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/tensor_type.h"

namespace plimsoll::store {

struct NamedTensor {
  std::string name;  // of a member of an archive, without ".npy"
  ir::TensorType type;
  std::vector<std::byte> bytes;
  bool operator==(const NamedTensor&) const = default;
};

Result<NamedTensor> read_npy(std::span<const std::byte> file);
// bf16, fp8 and packed types have no numpy name: an error.
Result<std::vector<std::byte>> write_npy(const ir::TensorType& type, std::span<const std::byte> content);

Result<std::vector<NamedTensor>> read_npz(const std::filesystem::path& path);
Result<std::vector<NamedTensor>> read_npz_bytes(std::span<const std::byte> file);
// Stored, not deflated; whole or not at all.
Status write_npz(const std::filesystem::path& path, std::span<const NamedTensor> arrays);

}  // namespace plimsoll::store
