// .plim: weights at rest, each in a form of its choice, in chunks that any thread may decode.
//
//   4096 bytes   "PLIMWGT1", version, bytes of a chunk, zeros
//   tensors      each from a multiple of 4096 on; its chunks one behind the other. A tensor stored
//                raw is its own bytes, so a mapping of the file is all that loading it takes
//   index        for each tensor: name, element, form, extents; for each of its chunks: stored
//                bytes (4), form (1), XXH64 (8). Then the header of the safetensors file that it
//                was made of, so that the way back gives that file byte by byte
//   64 bytes     "PLIMEND1", where the index is, its length and checksum, counts, length of the
//                file, checksum of these
//
// All numbers are little-endian. The index stands at the end because sizes are known only then, and
// files are written front to back (a pipe will do). Where a tensor lies is not written: it follows
// from the lengths before it, so nothing can overlap and nothing can be hidden.
//
// Reading checks lengths, counts and checksums of the index before anything is believed; a chunk's
// checksum when it is decoded. What the file says it holds is at most 1032 times its size and 256
// MiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/output_file.h"
#include "plimsoll/base/result.h"
#include "plimsoll/store/element.h"
#include "plimsoll/store/weight_form.h"

namespace plimsoll::store {

struct PlimChunk {
  std::uint64_t offset = 0;
  std::uint32_t stored = 0;
  Form form = Form::kRaw;
  std::uint64_t checksum = 0;
};

struct PlimTensor {
  std::string name;
  Element element = Element::kF32;
  Form form = Form::kRaw;  // as asked for; chunks may be raw
  std::vector<std::uint64_t> dims;
  std::uint64_t bytes = 0;  // decoded
  std::vector<PlimChunk> chunks;
  std::uint64_t stored_bytes() const;
  bool is_raw() const;  // all its chunks: its bytes are in the file as they are
};

struct PlimIndex {
  std::vector<PlimTensor> tensors;
  std::string source_header;  // of the safetensors file; empty: none
};

Result<PlimIndex> read_plim(std::span<const std::byte> file);
// Checksum and form; `out` has the chunk's decoded bytes.
Status decode_plim(std::span<const std::byte> file, const PlimTensor& tensor, std::uint64_t chunk,
                   std::span<std::byte> out);
// The same of the chunk's stored bytes alone.
Status decode_plim_chunk(std::span<const std::byte> stored, const PlimTensor& tensor,
                         std::uint64_t chunk, std::span<std::byte> out);
// Only whether they have the chunk's checksum.
Status check_plim_chunk(std::span<const std::byte> stored, const PlimTensor& tensor,
                        std::uint64_t chunk);

class PlimWriter {
 public:
  static Result<PlimWriter> create(const std::filesystem::path& path);
  // A tensor's chunks follow its beginning, in order, all of them.
  Status begin(std::string name, Element element, Form form, std::vector<std::uint64_t> dims);
  Status put(const Chunk& chunk);
  Status commit(std::string_view source_header);
  std::uint64_t bytes_written() const { return file_.bytes_written(); }

 private:
  Status pad_to(std::uint64_t alignment);
  OutputFile file_;
  PlimIndex index_;
};

}  // namespace plimsoll::store
