// numpy's archive of named arrays (.npz): a zip of .npy members, stored or deflated, of any size
// (zip64).
//
// An .npz file is hostile like any other. Opening one reads its directory and the header of every
// array, and nothing else: what is alive is the directory, whatever the arrays would be. Checked
// then, before memory is taken for any:
//   1. members lie inside the file and no two share a byte (one deflate stream under a thousand
//      names would multiply
//      it: 522 KB made 1.07 GB);
//   2. an array's header and elements are exactly as long as its member says;
//   3. no member says that it expands by more than deflate can, 1032 times.
// Elements are read one array at a time, into memory of the caller, who has compared name and type
// with what he wants: so what is inflated is bounded by what is asked for, not by what the file
// offers. Checksums are verified then.
//
// Writing goes member by member, so that no more than one array need be in memory, through
// base/output_file.h: whole or not at all, or down a pipe. Nothing is sought back to: an array's
// checksum is known before its header is written.
//
// Cost: opening is proportional to the number of arrays. A stored array is read by one copy from
// the mapped file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plimsoll/base/file.h"
#include "plimsoll/store/npy.h"

namespace plimsoll::store {

struct NpzEntry {
  std::string name;  // without ".npy"
  ir::TensorType type;
  // Where it lies, for NpzFile.
  bool fortran_order = false;
  bool deflated = false;
  std::uint32_t checksum = 0;
  std::size_t header = 0;
  std::span<const std::byte> packed;
};

// Of the elements of a stored entry, read piece by piece.
class NpzChecksum {
 public:
  explicit NpzChecksum(const NpzEntry& entry);
  void add(std::span<const std::byte> piece);
  Status check() const;  // once all were added

 private:
  std::uint32_t expected_;
  std::uint32_t found_;
};

class NpzFile {
 public:
  static Result<NpzFile> open(const std::filesystem::path& path);
  static Result<NpzFile> from_bytes(std::span<const std::byte> file);  // the bytes must outlive it

  const std::vector<NpzEntry>& entries() const { return entries_; }
  const NpzEntry* find(std::string_view name) const;  // nullptr: not there
  // The elements in row-major order; `out` has the bytes of the entry's type.
  Status read_into(const NpzEntry& entry, std::span<std::byte> out) const;
  Result<NamedTensor> read(const NpzEntry& entry) const;
  // The elements where they lie in the file, their checksum compared; nothing for an array that is
  // compressed or not in row-major order.
  Result<std::optional<std::span<const std::byte>>> elements_of(const NpzEntry& entry) const;
  std::size_t file_bytes() const { return bytes_.size(); }

 private:
  MappedFile file_;
  std::span<const std::byte> bytes_;
  std::vector<NpzEntry> entries_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
};

// Every array at once, for whoever wants whatever is there: refused where they are more than 16
// times the file and 256 MiB together.
Result<std::vector<NamedTensor>> read_npz(const std::filesystem::path& path);
Result<std::vector<NamedTensor>> read_npz_bytes(std::span<const std::byte> file);

// Stored, not deflated.
class NpzWriter {
 public:
  // Sizes and places from `narrow` on are written as 64 bits. Smaller than the default only in
  // tests.
  static constexpr std::uint64_t kNarrow = std::numeric_limits<std::uint32_t>::max();
  static Result<NpzWriter> create(const std::filesystem::path& path,
                                  std::uint64_t narrow = kNarrow);

  Status add(const std::string& name, const ir::TensorType& type,
             std::span<const std::byte> content);
  Status commit();

 private:
  OutputFile file_;
  std::string directory_;
  std::uint64_t count_ = 0;
  std::uint64_t narrow_ = kNarrow;
};

Status write_npz(const std::filesystem::path& path, std::span<const NamedTensor> arrays);

// At most so many bytes has an archive of arrays with these contents in all.
std::uint64_t npz_bytes_at_most(std::uint64_t content, std::size_t arrays,
                                std::size_t longest_name);

}  // namespace plimsoll::store
