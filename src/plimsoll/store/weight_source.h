// The content of weights by name, without holding it twice: spans into mapped files, and buffers of
// its own for the few that had to be converted.
//
// A graph says of a weight only that it comes from a file (ir::Init::Kind::kFile); whoever runs the
// graph asks here for the bytes, once, and copies them to where the plan wants them, releasing as
// it goes: otherwise the file's pages would stand in memory beside the copy.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plimsoll/base/file.h"
#include "plimsoll/ir/tensor_type.h"
#include "plimsoll/store/data_folder.h"

namespace plimsoll::store {

class WeightSource {
 public:
  struct Entry {
    ir::TensorType type;               // row-major
    std::span<const std::byte> bytes;  // exactly the type's; any alignment
  };

  // Null when there is no such weight.
  const Entry* find(std::string_view name) const;
  std::size_t size() const { return entries_.size(); }
  const std::unordered_map<std::string, Entry>& entries() const { return entries_; }

  // The files behind it: those kept by name, then those of folders by their name there. Entries
  // that were computed at import come from no file of their own.
  struct SourceFile {
    std::string name;
    const MappedFile* file;
    bool in_folder;  // external data, named below the model's folder
  };
  std::vector<SourceFile> files() const;

  // Says that bytes of an entry were copied and are not needed soon: pages of mapped files go back
  // to the system.
  void release(std::span<const std::byte> bytes) const;

  // The bytes must live as long as the source: in a file or buffer kept here.
  void add(std::string name, const ir::TensorType& type, std::span<const std::byte> bytes);
  void add_owned(std::string name, const ir::TensorType& type, std::vector<std::byte> bytes);
  void keep(std::string name, MappedFile file) {
    files_.push_back(std::make_unique<NamedFile>(std::move(name), std::move(file)));
  }
  void keep(DataFolder folder) {
    folders_.push_back(std::make_unique<DataFolder>(std::move(folder)));
  }

 private:
  using NamedFile = std::pair<std::string, MappedFile>;

  std::unordered_map<std::string, Entry> entries_;
  std::vector<std::unique_ptr<NamedFile>> files_;
  std::vector<std::unique_ptr<DataFolder>> folders_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> buffers_;
};

}  // namespace plimsoll::store
