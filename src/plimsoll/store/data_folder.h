// The folder a model lives in, and the files of external data inside it.
//
// A model file names its external data by relative path, and that name is hostile: it may climb out
// with "..", be absolute, or be a symbolic link to somewhere else (ONNX's own checker has let all
// three pass). A DataFolder opens names below one folder and nothing else: the path is checked as
// text, then opened component by component without following links, and only regular files are
// mapped. Each file is mapped once, however many tensors lie in it, and never copied.
//
//   DataFolder folder("models/bert.onnx's folder");
//   PLIMSOLL_TRY(auto bytes, folder.open("bert.data", 4096, 1024));   // [4096, 5120) of it
//
// Caches of model hubs are made of symbolic links to blobs beside the folder; `follow_links` allows
// them for people who say so. ".." and absolute paths stay refused.
//
// The bytes stay valid as long as the folder (moving it keeps them). Not for use by two threads at
// once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "plimsoll/base/file.h"
#include "plimsoll/base/result.h"

namespace plimsoll::store {

class DataFolder {
 public:
  explicit DataFolder(std::filesystem::path folder, bool follow_links = false)
      : folder_(std::move(folder)), follow_links_(follow_links) {}

  // `length` bytes from `offset` (to the end when no length is given); an error when the file is
  // shorter.
  Result<std::span<const std::byte>> open(std::string_view name, std::int64_t offset,
                                          std::optional<std::int64_t> length);
  // What was opened so far, by name below the folder.
  const std::map<std::string, MappedFile, std::less<>>& files() const { return files_; }
  // As MappedFile::release, for bytes of any of the files.
  void release(std::span<const std::byte> part) const;

 private:
  Result<const MappedFile*> map(std::string_view name);

  std::filesystem::path folder_;
  bool follow_links_;
  std::map<std::string, MappedFile, std::less<>> files_;
};

}  // namespace plimsoll::store
