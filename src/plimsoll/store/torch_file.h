// PyTorch's files (.pt, .pth, .bin of torch.save since 1.6): a zip of stored members, one a pickle
// that describes tensors, the others their storages.
//
// A pickle is a program. This runs none: a fixed set of opcodes builds plain values (dictionaries,
// lists, tuples, numbers, texts), and of everything a pickle can name, four things mean something:
// OrderedDict, torch's storage types, _rebuild_tensor_v2 and _rebuild_parameter. Any other name is
// a value that is nothing, and calling it gives nothing: no code is looked up, imported or called.
// An opcode outside the set is refused.
//
// Found are all tensors in dictionaries, lists, tuples and the state of objects (modules of
// TorchScript), however nested; a tensor's name is its
// path, joined by points: {"model": {"fc.weight": t}} has "model.fc.weight".
//
// A tensor may be any strided part of its storage, and several may share one (tied weights): each
// is gathered when it is read. Refused are tensors that reach beyond their storage, that have more
// elements than it (expanded ones), storages of other devices' byte orders, deflated members, and
// files whose tensors together have more than 16 times the file's bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/store/element.h"
#include "plimsoll/store/zip_directory.h"

namespace plimsoll::store {

struct TorchTensor {
  std::string name;
  Element element = Element::kF32;
  std::vector<std::uint64_t> dims;
  std::vector<std::uint64_t> strides;  // in elements
  std::span<const std::byte> storage;  // from its first element on
  bool contiguous = false;             // then its bytes are the first of `storage`
};

Result<std::vector<TorchTensor>> read_torch(std::span<const std::byte> file);
// In row-major order; `out` has the tensor's bytes.
void gather_torch(const TorchTensor& tensor, std::span<std::byte> out);

}  // namespace plimsoll::store
