// safetensors: named tensors behind a header of JSON.
//
//   8 bytes   length N of the header, little-endian
//   N bytes   {"__metadata__": {"format": "pt"},
//              "w": {"dtype": "F32", "shape": [50257, 768], "data_offsets": [0, 154389504]}, ...}
//   the rest  the tensors' bytes; data_offsets counts from here
//
// The reader has the same verdict on every file as the reference (the Rust crate `safetensors`,
// 0.8), which is stricter than JSON in some places and laxer in others:
//   - N is at most 100,000,000; the header is UTF-8, one object, with white space around it;
//   - in order of offsets each tensor begins where the one before ends, the first at 0, the last
//     ends with the file: no holes, no overlap, nothing behind; each has exactly the bytes that its
//     shape and type need, and a whole number of them;
//   - a tensor's description may have more fields, which are skipped; it may be an array of the
//     three values; dtype may be {"F32": null}. Of two tensors with one name the last counts;
//   - numbers of shapes and offsets are whole, without sign, point or exponent, and fit 64 bits;
//   - values nest at most 127 deep.
// safetensors_verdicts.txt, beside the tests, has verdicts of the reference on hostile files
// (tools/references/safetensors_verdicts.py).
//
// The header is parsed in one pass into the list of entries, without a tree: 6,336 tensors take
// under 5 ms (bench/weights). Nothing of the tensors is touched.
//
// The writer sorts as the reference does (types by alignment, largest first, then names) and so
// writes the same bytes for the same tensors. It writes through base/output_file.h: whole or not at
// all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plimsoll/base/output_file.h"
#include "plimsoll/base/result.h"
#include "plimsoll/store/element.h"

namespace plimsoll::store {

using Metadata = std::vector<std::pair<std::string, std::string>>;

struct SafetensorsEntry {
  std::string name;
  Element element = Element::kF32;
  std::vector<std::uint64_t> dims;
  std::uint64_t begin = 0;  // of its bytes, behind the header
  std::uint64_t end = 0;
  bool operator==(const SafetensorsEntry&) const = default;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // by offset
  Metadata metadata;
  std::string_view text;         // of the header, in the file
  std::uint64_t data_begin = 0;  // where offsets count from
};

Result<SafetensorsHeader> read_safetensors(std::span<const std::byte> file);
// The JSON alone; entries in order of offsets, checked against each other.
Result<SafetensorsHeader> read_safetensors_header(std::string_view text);

// Places the tensors, whose offsets it sets, in the order they are written.
Status place_safetensors(std::vector<SafetensorsEntry>& entries);
// The header for tensors that are placed, padded so that their bytes begin at a multiple of 8.
Result<std::string> safetensors_header(std::span<const SafetensorsEntry> entries,
                                       const Metadata& metadata);

class SafetensorsWriter {
 public:
  // `header` comes from safetensors_header(), or is that of a file that is written again.
  static Result<SafetensorsWriter> create(const std::filesystem::path& path,
                                          std::string_view header);
  // The tensors one after the other, in order of offsets, in any pieces.
  Status write(std::span<const std::byte> bytes) { return file_.write(bytes); }
  Status commit() { return file_.commit(); }
  std::uint64_t bytes_written() const { return file_.bytes_written(); }

 private:
  OutputFile file_;
};

}  // namespace plimsoll::store
