// A file of weights in any format that is read: named tensors, and their values.
//
//   safetensors   safetensors.h    mapped
//   .plim         plim_file.h      mapped where raw, else decoded chunk by chunk
//   GGUF          gguf.h           mapped, or decoded from blocks
//   torch.save    torch_file.h     mapped where contiguous, else gathered
//   .npz          npz.h            read, and inflated where deflated
//
// What a file is is seen from its first bytes, not from its name. Opening checks all that can be
// checked without reading the tensors; nothing is taken for them before somebody asks:
//
//   PLIMSOLL_TRY(const WeightsFile file, WeightsFile::open("model.safetensors"));
//   if (const WeightTensor* tensor = file.find("wte.weight"))
//     PLIMSOLL_RETURN_IF_ERROR(file.read_into(*tensor, memory));   // memory: tensor->bytes of it
//
// read_into() of values that lie in the file as they are, and of .plim files in every form, reads
// (part_reader.h): a file that is cold or lies on a network is read in large blocks, and one that
// somebody cuts meanwhile is an error. All else goes through the mapping, where that raises SIGBUS,
// as with any mapping (base/file.h). Reading is const: several threads may read at once.
//
// What reading takes for itself is bounded: reading_bytes() says by how much.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plimsoll/base/file.h"
#include "plimsoll/base/result.h"
#include "plimsoll/store/element.h"
#include "plimsoll/store/part_reader.h"
#include "plimsoll/store/weight_form.h"
#include "plimsoll/store/weight_source.h"
#include "plimsoll/store/weights_reader.h"

namespace plimsoll::store {

struct OpenedWeights;

class WeightsFile {
 public:
  static Result<WeightsFile> open(const std::filesystem::path& path);
  static Result<WeightsFile> from_bytes(std::span<const std::byte> file);  // must outlive it
  // Weights that a model's own file brought (an .onnx file's initialisers).
  static Result<WeightsFile> from_source(WeightSource source, std::string format,
                                         std::uint64_t file_bytes);

  const std::string& format() const { return format_; }  // "safetensors", "plim", "gguf", "torch"
  const std::vector<WeightTensor>& tensors() const { return tensors_; }
  const WeightTensor* find(std::string_view name) const;  // nullptr: not there
  std::uint64_t file_bytes() const { return file_bytes_; }
  // Of the safetensors file that it is or was made of; empty: none.
  const std::string& source_header() const { return source_header_; }

  // `staging`: memory for blocks of cold files (part_reader.h).
  Status read_into(const WeightTensor& tensor, std::span<std::byte> out,
                   const PartReader::Staging& staging = std::nullopt) const;
  // Many at once, which a cold file wants: as one queue of blocks (part_reader.h).
  struct Wanted {
    const WeightTensor* tensor = nullptr;
    std::span<std::byte> out;
    bool encoded = false;  // as read_encoded() does
  };
  Status read_all(std::span<const Wanted> wanted,
                  const PartReader::Staging& staging = std::nullopt) const;
  // How read_into() would read it now, or read_all() of the whole file; nothing: through the
  // mapping.
  std::optional<ReadMethod> read_method(const WeightTensor& tensor, bool with_others = false) const;
  // From now on by this method, whatever is cached; nothing: as found best part by part.
  void set_read_method(std::optional<ReadMethod> method) { asked_ = method; }
  // Without a copy: the file's own pages over `out` (file_pages.h). Null: the values do not lie in
  // the file as they are, or not where pages could be laid, or reading was found or asked to be
  // better; nothing was done then.
  Result<std::unique_ptr<FilePages>> lay_over(const WeightTensor& tensor,
                                              std::span<std::byte> out) const;
  // Of tensors that are in the file as they are and begin with one of its pages.
  std::uint64_t bytes_on_pages() const;
  // As codec/weights/encoded_matrix.h has it, for whoever computes with a tensor in the form that
  // the file stores: how many bytes that takes (0: it has no such form, or is raw), and the bytes,
  // every chunk compared with its checksum and decoded once.
  std::uint64_t encoded_bytes(const WeightTensor& tensor) const;
  Status read_encoded(const WeightTensor& tensor, std::span<std::byte> out,
                      const PartReader::Staging& staging = std::nullopt) const;
  // The same of a tensor that the file has plain, for whoever wants it in memory in another form:
  // what it would take in each of these forms (0: not a twentieth less than it has), and the bytes,
  // encoded on the way, with what they lose.
  Result<std::vector<std::uint64_t>> bytes_in_forms(const WeightTensor& tensor,
                                                    std::span<const Form> forms) const;
  Status encode_into(const WeightTensor& tensor, Form form, std::span<std::byte> out,
                     FormError& error) const;
  // At most so much is taken beside `out` while a tensor is read or stays encoded, with staging
  // given; through for_chunks(), while it is read so; by encode_into(), more than for_chunks()
  // takes. (runtime/weights_memory_test.cpp measures them.)
  std::uint64_t reading_bytes(const WeightTensor& tensor) const;
  std::uint64_t visiting_bytes(const WeightTensor& tensor) const;
  std::uint64_t encoding_bytes(const WeightTensor& tensor) const;
  // Makes what decoding of some forms looks things up in, which then stays, and says its bytes.
  std::uint64_t prepare_decoding() const;
  Status for_chunks(const WeightTensor& tensor, const WeightsReader::Visit& visit) const;
  // Chunk number `chunk` alone; of a tensor that is neither mapped nor chunked all before it too.
  Status read_chunk(const WeightTensor& tensor, std::uint64_t chunk,
                    std::vector<std::byte>& out) const;

 private:
  static Result<WeightsFile> of(OpenedWeights opened, std::uint64_t file_bytes);
  Status index_names();
  ReadMethod method_of(std::span<const std::byte> part, std::uint64_t together) const;
  std::optional<WeightsReader::FilePart> part_of(const Wanted& wanted) const;
  Status finish(const Wanted& wanted) const;
  void write_table(const WeightTensor& tensor, std::span<std::byte> out) const;
  Status naming_file(Status status) const;
  std::string path_;  // empty: of no file
  std::optional<ReadMethod> asked_;
  std::string format_;
  std::string source_header_;
  std::uint64_t file_bytes_ = 0;
  std::unique_ptr<MappedFile> file_;
  std::unique_ptr<PartReader> parts_;
  std::unique_ptr<WeightsReader> reader_;
  std::vector<WeightTensor> tensors_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
};

}  // namespace plimsoll::store
