// numpy's file of one array (.npy); npz.h is the archive of several.
//
// An .npy file is a magic number, a length, a Python literal such as
//   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
// and the elements. The literal is parsed as the three entries it may have and nothing else; no
// Python object is ever made of it ('descr' of an object array is refused by name). Big-endian
// arrays are refused.
#pragma once

#include <cstddef>
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

struct NpyHeader {
  ir::TensorType type;
  bool fortran_order = false;
  std::size_t size = 0;  // of everything before the elements
};

// numpy itself refuses headers of more than 10,000 bytes.
constexpr std::size_t kLongestNpyHeader = 16384;

// From the first bytes of a file; kLongestNpyHeader of them are always enough.
Result<NpyHeader> read_npy_header(std::span<const std::byte> first);
// What stands before the elements. bf16, fp8 and packed types have no numpy name: an error.
Result<std::string> npy_header(const ir::TensorType& type);
// Elements in column-major order, put in rows.
void put_in_rows(const ir::TensorType& type, std::span<const std::byte> columns,
                 std::span<std::byte> rows);

Result<NamedTensor> read_npy(std::span<const std::byte> file);

}  // namespace plimsoll::store
