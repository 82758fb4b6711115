#include "plimsoll/store/weights_file.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "plimsoll/base/check.h"
#include "plimsoll/base/utf8.h"
#include "plimsoll/codec/weights/encoded_matrix.h"
#include "plimsoll/codec/weights/ternary.h"
#include "plimsoll/codec/weights/weight_codec.h"
#include "plimsoll/store/gguf.h"
#include "plimsoll/store/npz.h"
#include "plimsoll/store/plim_file.h"
#include "plimsoll/store/safetensors.h"
#include "plimsoll/store/torch_file.h"

namespace plimsoll::store {
namespace {

using FileBytes = std::span<const std::byte>;

Status copy_part(FileBytes part, std::span<std::byte> out) {
  std::copy(part.begin(), part.end(), out.begin());
  return {};
}

// In pieces, each copied to where it is aligned: a safetensors file promises nothing.
Status in_chunks(FileBytes values, const WeightsReader::Visit& visit,
                 const WeightsReader::ReadPart& read) {
  std::vector<std::byte> piece(std::min(codec::kChunkBytes, values.size()));
  for (std::size_t at = 0; at < values.size(); at += codec::kChunkBytes) {
    const FileBytes part = values.subspan(at, std::min(codec::kChunkBytes, values.size() - at));
    const std::span<std::byte> here = std::span(piece).first(part.size());
    PLIMSOLL_RETURN_IF_ERROR(read(part, here));
    PLIMSOLL_RETURN_IF_ERROR(visit(here));
  }
  return {};
}

// Everything is where it should be.
class MappedReader : public WeightsReader {
 public:
  Status for_chunks(const WeightTensor& tensor, const Visit& visit,
                    const ReadPart& read) const override {
    return in_chunks(tensor.mapped, visit, read);
  }
  Status read_into(const WeightTensor& tensor, std::span<std::byte> out) const override {
    std::copy(tensor.mapped.begin(), tensor.mapped.end(), out.begin());
    return {};
  }
  std::optional<FilePart> part_of(const WeightTensor& tensor,
                                  std::span<std::byte> out) const override {
    return FilePart{tensor.mapped, out};
  }
};

// Formats whose tensors are read whole, but for those that lie in the file as they are.
class WholeReader : public WeightsReader {
 public:
  Status for_chunks(const WeightTensor& tensor, const Visit& visit,
                    const ReadPart& read) const override {
    if (!tensor.mapped.empty()) return in_chunks(tensor.mapped, visit, read);
    std::vector<std::byte> all(tensor.bytes);
    PLIMSOLL_RETURN_IF_ERROR(read_into(tensor, all));
    return in_chunks(all, visit, copy_part);
  }
};

class GgufFileReader : public WholeReader {
 public:
  explicit GgufFileReader(std::vector<GgufTensor> tensors) : tensors_(std::move(tensors)) {}
  Status read_into(const WeightTensor& tensor, std::span<std::byte> out) const override {
    return decode_gguf(tensors_[tensor.index], out);
  }
  std::optional<FilePart> part_of(const WeightTensor& tensor,
                                  std::span<std::byte> out) const override {
    if (tensors_[tensor.index].in_blocks) return std::nullopt;
    return FilePart{tensor.mapped, out};
  }

 private:
  std::vector<GgufTensor> tensors_;
};

class TorchFileReader : public WholeReader {
 public:
  explicit TorchFileReader(std::vector<TorchTensor> tensors) : tensors_(std::move(tensors)) {}
  Status read_into(const WeightTensor& tensor, std::span<std::byte> out) const override {
    gather_torch(tensors_[tensor.index], out);
    return {};
  }
  std::optional<FilePart> part_of(const WeightTensor& tensor,
                                  std::span<std::byte> out) const override {
    if (!tensors_[tensor.index].contiguous) return std::nullopt;
    return FilePart{tensor.mapped, out};
  }

 private:
  std::vector<TorchTensor> tensors_;
};

class NpzFileReader : public WholeReader {
 public:
  explicit NpzFileReader(NpzFile file) : file_(std::move(file)) {}
  // What is neither packed nor turned needs no copy of the whole.
  Status for_chunks(const WeightTensor& tensor, const Visit& visit,
                    const ReadPart& read) const override {
    const NpzEntry& entry = file_.entries()[tensor.index];
    if (entry.deflated || entry.fortran_order) return WholeReader::for_chunks(tensor, visit, read);
    NpzChecksum checksum(entry);
    PLIMSOLL_RETURN_IF_ERROR(in_chunks(
        entry.packed.subspan(entry.header),
        [&](std::span<const std::byte> piece) -> Status {
          checksum.add(piece);
          return visit(piece);
        },
        read));
    return checksum.check();
  }
  Status read_into(const WeightTensor& tensor, std::span<std::byte> out) const override {
    return file_.read_into(file_.entries()[tensor.index], out);
  }

 private:
  NpzFile file_;
};

class SourceReader : public MappedReader {
 public:
  explicit SourceReader(WeightSource source) : source_(std::move(source)) {}
  const WeightSource& source() const { return source_; }

 private:
  WeightSource source_;
};

class PlimFileReader : public WeightsReader {
 public:
  PlimFileReader(FileBytes file, std::vector<PlimTensor> tensors)
      : file_(file), tensors_(std::move(tensors)) {}
  Status for_chunks(const WeightTensor& tensor, const Visit& visit,
                    const ReadPart& read) const override {
    const PlimTensor& from = tensors_[tensor.index];
    std::vector<std::byte> stored(largest_chunk(from));
    std::vector<std::byte> piece;
    for (std::uint64_t i = 0; i < from.chunks.size(); ++i) {
      const PlimChunk& chunk = from.chunks[i];
      const std::span<std::byte> one = std::span(stored).first(chunk.stored);
      PLIMSOLL_RETURN_IF_ERROR(read(file_.subspan(chunk.offset, chunk.stored), one));
      piece.resize(chunk_bytes(from.bytes, i));
      PLIMSOLL_RETURN_IF_ERROR(decode_plim_chunk(one, from, i, piece));
      PLIMSOLL_RETURN_IF_ERROR(visit(piece));
    }
    return {};
  }
  Status read_into(const WeightTensor& tensor, std::span<std::byte> out) const override {
    const PlimTensor& from = tensors_[tensor.index];
    const bool aligned = reinterpret_cast<std::uintptr_t>(out.data()) % 8 == 0;
    std::vector<std::byte> piece;
    for (std::uint64_t i = 0; i < from.chunks.size(); ++i) {
      const auto part = out.subspan(i * codec::kChunkBytes, chunk_bytes(from.bytes, i));
      if (aligned) {
        PLIMSOLL_RETURN_IF_ERROR(decode_plim(file_, from, i, part));
        continue;
      }
      PLIMSOLL_RETURN_IF_ERROR(read_one(from, i, piece));
      std::copy(piece.begin(), piece.end(), part.begin());
    }
    return {};
  }
  // All stored chunks at once, to the end of `out`: none is larger than what it decodes to, so
  // decoding from the front overtakes none of them but the one in work, which is copied aside.
  std::optional<FilePart> part_of(const WeightTensor& tensor,
                                  std::span<std::byte> out) const override {
    const PlimTensor& from = tensors_[tensor.index];
    if (reinterpret_cast<std::uintptr_t>(out.data()) % 8 != 0) return std::nullopt;
    const std::span<std::byte> stored = out.last(from.stored_bytes());
    return FilePart{file_.subspan(from.chunks[0].offset, stored.size()), stored};
  }
  Status finish(const WeightTensor& tensor, std::span<std::byte> out) const override {
    const PlimTensor& from = tensors_[tensor.index];
    const std::span<std::byte> stored = out.last(from.stored_bytes());
    std::vector<std::byte> one;
    for (std::uint64_t i = 0; i < from.chunks.size(); ++i) {
      const PlimChunk& chunk = from.chunks[i];
      const std::span<std::byte> here =
          stored.subspan(chunk.offset - from.chunks[0].offset, chunk.stored);
      const std::span<std::byte> values =
          out.subspan(i * codec::kChunkBytes, chunk_bytes(from.bytes, i));
      if (chunk.form == Form::kRaw && here.data() == values.data() &&
          here.size() == values.size()) {
        PLIMSOLL_RETURN_IF_ERROR(check_plim_chunk(here, from, i));
        continue;
      }
      one.reserve(largest_chunk(from));
      one.assign(here.begin(), here.end());
      PLIMSOLL_RETURN_IF_ERROR(decode_plim_chunk(one, from, i, values));
    }
    return {};
  }
  // Chunks that are as they should be need no more than their checksums, each when it is there.
  std::size_t piece_bytes(const WeightTensor& tensor) const override {
    return tensors_[tensor.index].is_raw() ? kPieceChunks * codec::kChunkBytes : 0;
  }
  Status finish_piece(const WeightTensor& tensor, std::span<std::byte> out,
                      std::size_t piece) const override {
    const PlimTensor& from = tensors_[tensor.index];
    const std::size_t end = std::min((piece + 1) * kPieceChunks, from.chunks.size());
    for (std::size_t i = piece * kPieceChunks; i < end; ++i)
      PLIMSOLL_RETURN_IF_ERROR(check_plim_chunk(
          out.subspan(i * codec::kChunkBytes, chunk_bytes(from.bytes, i)), from, i));
    return {};
  }
  // Of chunks that stay as they are stored: each compared with its checksum, and decoded once.
  Status check(const WeightTensor& tensor, std::span<const std::byte> stored) const {
    const PlimTensor& from = tensors_[tensor.index];
    std::vector<std::byte> decoded;
    for (std::uint64_t i = 0; i < from.chunks.size(); ++i) {
      const PlimChunk& chunk = from.chunks[i];
      decoded.resize(chunk_bytes(from.bytes, i));
      PLIMSOLL_RETURN_IF_ERROR(decode_plim_chunk(
          stored.subspan(chunk.offset - from.chunks[0].offset, chunk.stored), from, i, decoded));
    }
    return {};
  }
  Status read_one(const PlimTensor& from, std::uint64_t chunk, std::vector<std::byte>& out) const {
    out.resize(chunk_bytes(from.bytes, chunk));
    return decode_plim(file_, from, chunk, out);
  }
  const PlimTensor& tensor(std::size_t index) const { return tensors_[index]; }
  // Shares of zeros, in 64ths, that ternary chunks were written for.
  std::set<unsigned> ternary_zeros() const {
    std::set<unsigned> out;
    for (const PlimTensor& tensor : tensors_) {
      for (const PlimChunk& chunk : tensor.chunks) {
        if (name(chunk.form) != codec::kTernaryWeights.name || chunk.stored == 0) continue;
        const auto first = static_cast<std::uint8_t>(file_[chunk.offset]);
        if (const unsigned zeros = codec::zeros_of_ternary({&first, 1}); zeros > 0)
          out.insert(zeros);
      }
    }
    return out;
  }

 private:
  static constexpr std::size_t kPieceChunks = 16;
  static std::size_t largest_chunk(const PlimTensor& tensor) {
    std::uint32_t out = 0;
    for (const PlimChunk& chunk : tensor.chunks) out = std::max(out, chunk.stored);
    return out;
  }
  FileBytes file_;
  std::vector<PlimTensor> tensors_;
};

struct Opened {
  std::string format;
  std::unique_ptr<WeightsReader> reader;
  std::vector<WeightTensor> tensors;
  std::string source_header;
};

Result<Opened> open_safetensors(FileBytes file) {
  PLIMSOLL_TRY(SafetensorsHeader header, read_safetensors(file));
  Opened out{"safetensors", std::make_unique<MappedReader>(), {}, std::string(header.text)};
  for (SafetensorsEntry& entry : header.entries) {
    const std::uint64_t bytes = entry.end - entry.begin;
    out.tensors.push_back({std::move(entry.name), entry.element, std::move(entry.dims), "raw",
                           bytes, bytes, out.tensors.size(),
                           file.subspan(header.data_begin + entry.begin, bytes)});
  }
  return out;
}
Result<Opened> open_plim(FileBytes file) {
  PLIMSOLL_TRY(PlimIndex index, read_plim(file));
  Opened out{"plim", nullptr, {}, std::move(index.source_header)};
  for (const PlimTensor& tensor : index.tensors) {
    const bool raw = tensor.is_raw() && tensor.bytes > 0;
    out.tensors.push_back({tensor.name, tensor.element, tensor.dims, std::string(name(tensor.form)),
                           tensor.bytes, tensor.stored_bytes(), out.tensors.size(),
                           raw ? file.subspan(tensor.chunks[0].offset, tensor.bytes) : FileBytes{},
                           tensor.chunks.empty()
                               ? FileBytes{}
                               : file.subspan(tensor.chunks[0].offset, tensor.stored_bytes())});
  }
  out.reader = std::make_unique<PlimFileReader>(file, std::move(index.tensors));
  return out;
}
Result<Opened> open_gguf(FileBytes file) {
  PLIMSOLL_TRY(std::vector<GgufTensor> tensors, read_gguf(file));
  Opened out{"gguf", nullptr, {}, ""};
  for (const GgufTensor& tensor : tensors) {
    out.tensors.push_back({tensor.name, tensor.element, tensor.dims,
                           tensor.in_blocks ? std::string(tensor.kind) : "raw",
                           *bytes_of(tensor.element, tensor.dims), tensor.bytes.size(),
                           out.tensors.size(), tensor.in_blocks ? FileBytes{} : tensor.bytes,
                           tensor.bytes});
  }
  out.reader = std::make_unique<GgufFileReader>(std::move(tensors));
  return out;
}
Result<Opened> open_torch(FileBytes file) {
  PLIMSOLL_TRY(std::vector<TorchTensor> tensors, read_torch(file));
  Opened out{"torch", nullptr, {}, ""};
  for (const TorchTensor& tensor : tensors) {
    const std::uint64_t bytes = *bytes_of(tensor.element, tensor.dims);
    out.tensors.push_back({tensor.name, tensor.element, tensor.dims,
                           tensor.contiguous ? "raw" : "strided", bytes, bytes, out.tensors.size(),
                           tensor.contiguous ? tensor.storage.first(bytes) : FileBytes{}});
  }
  out.reader = std::make_unique<TorchFileReader>(std::move(tensors));
  return out;
}
Result<Opened> open_npz(FileBytes file) {
  PLIMSOLL_TRY(NpzFile archive, NpzFile::from_bytes(file));
  Opened out{"npz", nullptr, {}, ""};
  for (const NpzEntry& entry : archive.entries()) {
    const auto element = element_of(entry.type.dtype);
    if (!element)
      return bad_input("array '{}': {} is not read here", entry.name, ir::to_string(entry.type));
    const std::vector<std::uint64_t> dims(entry.type.shape.begin(), entry.type.shape.end());
    out.tensors.push_back({entry.name,
                           *element,
                           dims,
                           entry.deflated        ? "deflated"
                           : entry.fortran_order ? "turned"
                                                 : "raw",
                           static_cast<std::uint64_t>(ir::bytes_of(entry.type).value),
                           entry.packed.size(),
                           out.tensors.size(),
                           {},
                           entry.packed});
  }
  out.reader = std::make_unique<NpzFileReader>(std::move(archive));
  return out;
}

bool begins_with(FileBytes file, std::string_view text) {
  return file.size() >= text.size() && std::memcmp(file.data(), text.data(), text.size()) == 0;
}
Result<Opened> open_any(FileBytes file) {
  if (begins_with(file, "PLIMWGT1")) return open_plim(file);
  if (begins_with(file, "GGUF")) return open_gguf(file);
  if (begins_with(file, std::string_view("PK\x03\x04", 4)) ||
      begins_with(file, std::string_view("PK\x05\x06", 4))) {
    PLIMSOLL_TRY(const std::vector<ZipMember> members, read_zip_directory(file, "a zip archive"));
    const bool torch = std::any_of(members.begin(), members.end(), [](const ZipMember& member) {
      return member.name == "data.pkl" || member.name.ends_with("/data.pkl");
    });
    return torch ? open_torch(file) : open_npz(file);
  }
  if (begins_with(file, std::string_view("\x80\x02", 2)) && file.size() > 16 &&
      begins_with(file.subspan(2), "\x8a\x0al\xfc\x9c"))
    return bad_input("a file of torch.save before PyTorch 1.6: load it and save it again");
  auto out = open_safetensors(file);
  // What does not even begin with a header was not meant as one.
  constexpr std::size_t kBrace = 8;
  if (!out && (file.size() <= kBrace || file[kBrace] != std::byte{'{'}))
    return bad_input(
        "not a weight file that is read here: .safetensors, .plim, .gguf, .pt, .npz or .onnx ({})",
        out.error().message);
  return out;
}

}  // namespace

Status WeightsFile::index_names() {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!by_name_.emplace(tensors_[i].name, i).second)
      return bad_input("there are two tensors called '{}'", excerpt(tensors_[i].name));
  }
  return {};
}

Result<WeightsFile> WeightsFile::from_bytes(std::span<const std::byte> file) {
  PLIMSOLL_TRY(Opened opened, open_any(file));
  WeightsFile out;
  out.format_ = std::move(opened.format);
  out.source_header_ = std::move(opened.source_header);
  out.file_bytes_ = file.size();
  out.reader_ = std::move(opened.reader);
  out.tensors_ = std::move(opened.tensors);
  PLIMSOLL_RETURN_IF_ERROR(out.index_names());
  return out;
}

Result<WeightsFile> WeightsFile::open(const std::filesystem::path& path) {
  PLIMSOLL_TRY(MappedFile mapped, MappedFile::open(path));
  auto file = std::make_unique<MappedFile>(std::move(mapped));
  auto out = from_bytes(file->bytes());
  if (!out) return forward(out, path.string());
  PLIMSOLL_TRY(PartReader parts, PartReader::open(path));
  out->path_ = path.string();
  out->parts_ = std::make_unique<PartReader>(std::move(parts));
  out->file_ = std::move(file);
  return out;
}

Result<WeightsFile> WeightsFile::from_source(WeightSource source, std::string format,
                                             std::uint64_t file_bytes) {
  WeightsFile out;
  out.format_ = std::move(format);
  out.file_bytes_ = file_bytes;
  auto reader = std::make_unique<SourceReader>(std::move(source));
  for (const auto& [name, entry] : reader->source().entries()) {
    const auto element = element_of(entry.type.dtype);
    if (!element)
      return bad_input("weight '{}': {} has no form in weight files", printable(name),
                       ir::to_string(entry.type));
    const std::vector<std::uint64_t> dims(entry.type.shape.begin(), entry.type.shape.end());
    out.tensors_.push_back(
        {name, *element, dims, "raw", entry.bytes.size(), entry.bytes.size(), 0, entry.bytes});
  }
  std::sort(out.tensors_.begin(), out.tensors_.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  out.reader_ = std::move(reader);
  PLIMSOLL_RETURN_IF_ERROR(out.index_names());
  return out;
}

const WeightTensor* WeightsFile::find(std::string_view name) const {
  const auto place = by_name_.find(name);
  return place == by_name_.end() ? nullptr : &tensors_[place->second];
}

Status WeightsFile::read_into(const WeightTensor& tensor, std::span<std::byte> out,
                              const PartReader::Staging& staging) const {
  PLIMSOLL_CHECK(out.size() == tensor.bytes, "memory of another tensor than '{}'", tensor.name);
  if (out.empty()) return {};
  const Wanted wanted{&tensor, out, false};
  if (const auto part = part_of(wanted)) {
    const auto offset = static_cast<std::uint64_t>(part->in_file.data() - file_->bytes().data());
    PLIMSOLL_RETURN_IF_ERROR(
        parts_->read(offset, part->to, method_of(part->in_file, part->in_file.size()), staging));
    return finish(wanted);
  }
  PLIMSOLL_RETURN_IF_ERROR(naming_file(reader_->read_into(tensor, out)));
  // Pages of the file would stand in memory beside the copy.
  if (file_) file_->release(tensor.mapped.empty() ? tensor.in_file : tensor.mapped);
  return {};
}

// Nothing: it is not read in parts.
std::optional<WeightsReader::FilePart> WeightsFile::part_of(const Wanted& wanted) const {
  if (!parts_ || wanted.out.empty()) return std::nullopt;
  if (!wanted.encoded) return reader_->part_of(*wanted.tensor, wanted.out);
  const std::span<const std::byte> stored = wanted.tensor->in_file;
  return WeightsReader::FilePart{stored, wanted.out.last(stored.size())};
}

Status WeightsFile::finish(const Wanted& wanted) const {
  if (!wanted.encoded) return naming_file(reader_->finish(*wanted.tensor, wanted.out));
  const auto* plim = dynamic_cast<const PlimFileReader*>(reader_.get());
  return naming_file(plim->check(*wanted.tensor, wanted.out.last(wanted.tensor->in_file.size())));
}

// Errors of a file's content say of which file; those of reading it do already.
Status WeightsFile::naming_file(Status status) const {
  if (status || path_.empty() || status.error().message.starts_with(path_)) return status;
  return forward(status, path_);
}

Status WeightsFile::read_all(std::span<const Wanted> wanted,
                             const PartReader::Staging& staging) const {
  std::uint64_t together = 0;
  for (const Wanted& one : wanted) together += one.tensor->stored_bytes;
  struct Queued {
    std::vector<PartReader::Part> parts;
    std::vector<const Wanted*> whose;
  };
  std::map<ReadMethod, Queued> queues;
  for (const Wanted& one : wanted) {
    const auto part = part_of(one);
    if (!part) {
      PLIMSOLL_RETURN_IF_ERROR(one.encoded ? read_encoded(*one.tensor, one.out, staging)
                                           : read_into(*one.tensor, one.out, staging));
      continue;
    }
    PLIMSOLL_CHECK(one.out.size() == (one.encoded ? encoded_bytes(*one.tensor) : one.tensor->bytes),
                   "memory of another tensor than '{}'", one.tensor->name);
    if (one.encoded) write_table(*one.tensor, one.out);
    Queued& queue = queues[method_of(part->in_file, together)];
    queue.parts.push_back({static_cast<std::uint64_t>(part->in_file.data() - file_->bytes().data()),
                           part->to, one.encoded ? 0 : reader_->piece_bytes(*one.tensor)});
    queue.whose.push_back(&one);
  }
  for (const auto& [method, queue] : queues)
    PLIMSOLL_RETURN_IF_ERROR(parts_->read_all(
        queue.parts, method,
        [&](std::size_t i, std::size_t piece) {
          if (queue.parts[i].piece == 0) return finish(*queue.whose[i]);
          const Wanted& one = *queue.whose[i];
          return naming_file(reader_->finish_piece(*one.tensor, one.out, piece));
        },
        staging));
  return {};
}

std::optional<ReadMethod> WeightsFile::read_method(const WeightTensor& tensor,
                                                   bool with_others) const {
  const FileBytes part = tensor.mapped.empty() ? tensor.in_file : tensor.mapped;
  if (!parts_ || (tensor.mapped.empty() && format_ != "plim")) return std::nullopt;
  return method_of(part, with_others ? file_bytes_ : part.size());
}

ReadMethod WeightsFile::method_of(std::span<const std::byte> part, std::uint64_t together) const {
  if (asked_) return *asked_;
  return parts_->method_for(static_cast<std::uint64_t>(part.data() - file_->bytes().data()), part,
                            together);
}

Result<std::unique_ptr<FilePages>> WeightsFile::lay_over(const WeightTensor& tensor,
                                                         std::span<std::byte> out) const {
  PLIMSOLL_CHECK(out.size() == tensor.bytes, "memory of another tensor than '{}'", tensor.name);
  if (!parts_ || tensor.mapped.empty()) return std::unique_ptr<FilePages>();
  const ReadMethod method = method_of(tensor.mapped, tensor.mapped.size());
  if (method != ReadMethod::kMapped && (asked_ || method != ReadMethod::kCached))
    return std::unique_ptr<FilePages>();
  return parts_->lay(static_cast<std::uint64_t>(tensor.mapped.data() - file_->bytes().data()), out);
}

std::uint64_t WeightsFile::bytes_on_pages() const {
  constexpr std::ptrdiff_t kFilePage = 4096;
  std::uint64_t out = 0;
  for (const WeightTensor& tensor : tensors_)
    if (file_ && !tensor.mapped.empty() &&
        (tensor.mapped.data() - file_->bytes().data()) % kFilePage == 0)
      out += tensor.bytes;
  return out;
}

std::uint64_t WeightsFile::encoded_bytes(const WeightTensor& tensor) const {
  const auto* plim = dynamic_cast<const PlimFileReader*>(reader_.get());
  const bool floats = tensor.element == Element::kF32 || tensor.element == Element::kF16 ||
                      tensor.element == Element::kBF16;
  if (plim == nullptr || !floats || !tensor.mapped.empty() || tensor.dims.size() < 2 ||
      tensor.bytes == 0)
    return 0;
  const PlimTensor& from = plim->tensor(tensor.index);
  for (const PlimChunk& chunk : from.chunks)
    if (chunk.form != Form::kRaw && !stays_in_memory(chunk.form)) return 0;
  return codec::encoded_table_bytes(from.chunks.size()) + from.stored_bytes();
}

// Of a tensor of fp32 that is read: a chunk as it is stored, or decoded to see whether it can be;
// of other floats also as fp32, twice their size; of an archive also its byte planes and the tables
// of zstd. One that is raw is read to its place.
std::uint64_t WeightsFile::reading_bytes(const WeightTensor& tensor) const {
  constexpr std::uint64_t kInflating = 64 << 10;
  constexpr std::uint64_t kFilePage = 4096;
  const std::uint64_t seen = std::max<std::uint64_t>(tensor.bytes, tensor.stored_bytes) / kFilePage;
  if (format_ != "plim") return seen + kInflating;
  const bool is_fp32 = tensor.element == Element::kF32 && tensor.form != "archive";
  const std::uint64_t chunks = !tensor.mapped.empty() ? 0 : is_fp32 ? 1 : 3;
  return seen + chunks * codec::kChunkBytes;
}

// Beside that, the chunk that is shown.
std::uint64_t WeightsFile::visiting_bytes(const WeightTensor& tensor) const {
  const bool whole =
      tensor.mapped.empty() && format_ != "plim" && !(format_ == "npz" && tensor.form == "raw");
  const bool stored_too = format_ == "plim" && !tensor.mapped.empty();
  return reading_bytes(tensor) + (stored_too ? 2 : 1) * codec::kChunkBytes +
         (whole ? tensor.bytes : 0);
}

// A chunk as it is encoded, and decoded again to measure what it lost; of floats other than fp32
// also as fp32.
std::uint64_t WeightsFile::encoding_bytes(const WeightTensor& tensor) const {
  return tensor.element == Element::kF32 ? codec::kChunkBytes * 5 / 2 : codec::kChunkBytes * 5;
}

std::uint64_t WeightsFile::prepare_decoding() const {
  const auto* plim = dynamic_cast<const PlimFileReader*>(reader_.get());
  std::uint64_t out = 0;
  if (plim == nullptr) return out;
  for (const unsigned zeros : plim->ternary_zeros()) out += codec::RunDictionary::of(zeros).bytes();
  return out;
}

// Which form and how many bytes each chunk has, in front of what is stored.
void WeightsFile::write_table(const WeightTensor& tensor, std::span<std::byte> out) const {
  const PlimTensor& from = dynamic_cast<const PlimFileReader*>(reader_.get())->tensor(tensor.index);
  std::vector<codec::EncodedChunk> chunks;
  for (const PlimChunk& chunk : from.chunks)
    chunks.push_back({static_cast<std::uint8_t>(chunk.form), chunk.stored});
  const std::size_t table = codec::encoded_table_bytes(chunks.size());
  codec::write_encoded_table(chunks, {reinterpret_cast<std::uint8_t*>(out.data()), table});
}

Status WeightsFile::read_encoded(const WeightTensor& tensor, std::span<std::byte> out,
                                 const PartReader::Staging& staging) const {
  PLIMSOLL_CHECK(encoded_bytes(tensor) == out.size() && !out.empty(),
                 "memory of another form than that of '{}'", tensor.name);
  write_table(tensor, out);
  const Wanted wanted{&tensor, out, true};
  if (const auto part = part_of(wanted)) {
    const auto offset = static_cast<std::uint64_t>(part->in_file.data() - file_->bytes().data());
    PLIMSOLL_RETURN_IF_ERROR(
        parts_->read(offset, part->to, method_of(part->in_file, part->in_file.size()), staging));
  } else {
    const std::span<std::byte> stored = out.last(tensor.in_file.size());
    std::copy(tensor.in_file.begin(), tensor.in_file.end(), stored.begin());
  }
  return finish(wanted);
}

Result<std::vector<std::uint64_t>> WeightsFile::bytes_in_forms(const WeightTensor& tensor,
                                                               std::span<const Form> forms) const {
  constexpr double kWorthwhile = 0.95;
  const std::uint64_t table = codec::encoded_table_bytes(chunks_of(tensor.bytes));
  std::vector<std::uint64_t> out(forms.size(), table);
  std::vector<bool> pays(forms.size(), true);
  const auto is_small = [&](std::uint64_t bytes, std::uint64_t of) {
    return static_cast<double>(bytes) < kWorthwhile * static_cast<double>(of);
  };
  std::uint64_t chunk = 0;
  PLIMSOLL_RETURN_IF_ERROR(for_chunks(tensor, [&](std::span<const std::byte> values) -> Status {
    for (std::size_t f = 0; f < forms.size(); ++f) {
      if (!pays[f]) continue;
      const Chunk coded = encode_chunk(forms[f], tensor.element, tensor.dims, chunk, values);
      out[f] += coded.bytes.size();
      pays[f] = chunk > 0 || is_small(coded.bytes.size(), values.size());
    }
    ++chunk;
    return {};
  }));
  for (std::size_t f = 0; f < forms.size(); ++f)
    if (!pays[f] || !is_small(out[f], tensor.bytes)) out[f] = 0;
  return out;
}

Status WeightsFile::encode_into(const WeightTensor& tensor, Form form, std::span<std::byte> out,
                                FormError& error) const {
  const std::size_t table = codec::encoded_table_bytes(chunks_of(tensor.bytes));
  const auto changed = [&] {
    return bad_input("tensor '{}': as {} it takes other bytes than when it was planned",
                     printable(tensor.name), name(form));
  };
  if (out.size() < table) return changed();
  std::vector<codec::EncodedChunk> chunks;
  std::vector<std::byte> again;
  std::size_t at = table;
  PLIMSOLL_RETURN_IF_ERROR(for_chunks(tensor, [&](std::span<const std::byte> values) -> Status {
    const Chunk coded = encode_chunk(form, tensor.element, tensor.dims, chunks.size(), values);
    if (coded.bytes.size() > out.size() - at) return changed();
    std::copy(coded.bytes.begin(), coded.bytes.end(),
              out.begin() + static_cast<std::ptrdiff_t>(at));
    at += coded.bytes.size();
    if (!is_lossless(coded.form)) {
      again.resize(values.size());
      PLIMSOLL_CHECK(
          decode_chunk(coded.form, tensor.element, tensor.dims, chunks.size(), coded.bytes, again),
          "'{}' was encoded wrongly", tensor.name);
      error.add(tensor.element, values, again);
    }
    chunks.push_back(
        {static_cast<std::uint8_t>(coded.form), static_cast<std::uint32_t>(coded.bytes.size())});
    return {};
  }));
  if (at != out.size()) return changed();
  codec::write_encoded_table(chunks, {reinterpret_cast<std::uint8_t*>(out.data()), table});
  return {};
}

Status WeightsFile::for_chunks(const WeightTensor& tensor,
                               const WeightsReader::Visit& visit) const {
  if (tensor.bytes == 0) return {};
  if (!parts_) return reader_->for_chunks(tensor, visit, copy_part);
  const std::byte* begin = file_->bytes().data();
  const FileBytes all = tensor.mapped.empty() ? tensor.in_file : tensor.mapped;
  if (!all.empty()) parts_->expect(static_cast<std::uint64_t>(all.data() - begin), all.size());
  // What the visitor says is no fault of the file's.
  Status visited;
  const Status read = reader_->for_chunks(
      tensor,
      [&](std::span<const std::byte> piece) {
        visited = visit(piece);
        return visited;
      },
      [&](FileBytes part, std::span<std::byte> to) {
        return parts_->read(static_cast<std::uint64_t>(part.data() - begin), to,
                            ReadMethod::kCached);
      });
  return visited ? naming_file(read) : visited;
}

Status WeightsFile::read_chunk(const WeightTensor& tensor, std::uint64_t chunk,
                               std::vector<std::byte>& out) const {
  if (!tensor.mapped.empty()) {
    const auto part =
        tensor.mapped.subspan(chunk * codec::kChunkBytes, chunk_bytes(tensor.bytes, chunk));
    out.assign(part.begin(), part.end());
    return {};
  }
  if (const auto* plim = dynamic_cast<const PlimFileReader*>(reader_.get()))
    return naming_file(plim->read_one(plim->tensor(tensor.index), chunk, out));
  std::uint64_t at = 0;
  return for_chunks(tensor, [&](std::span<const std::byte> piece) -> Status {
    if (at++ == chunk) out.assign(piece.begin(), piece.end());
    return {};
  });
}

}  // namespace plimsoll::store
