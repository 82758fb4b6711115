#include "plimsoll/store/weights_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "plimsoll/base/check.h"
#include "plimsoll/base/utf8.h"
#include "plimsoll/codec/weights/encoded_matrix.h"
#include "plimsoll/codec/weights/weight_codec.h"
#include "plimsoll/store/gguf.h"
#include "plimsoll/store/npz.h"
#include "plimsoll/store/plim_file.h"
#include "plimsoll/store/safetensors.h"
#include "plimsoll/store/torch_file.h"

namespace plimsoll::store {
namespace {

using FileBytes = std::span<const std::byte>;

// In pieces, each copied to where it is aligned: a safetensors file promises nothing.
Status in_chunks(FileBytes values, const WeightsReader::Visit& visit) {
  std::vector<std::byte> piece;
  for (std::size_t at = 0; at < values.size(); at += codec::kChunkBytes) {
    const FileBytes part = values.subspan(at, std::min(codec::kChunkBytes, values.size() - at));
    piece.assign(part.begin(), part.end());
    PLIMSOLL_RETURN_IF_ERROR(visit(piece));
  }
  return {};
}

// Everything is where it should be.
class MappedReader : public WeightsReader {
 public:
  Status for_chunks(const WeightTensor& tensor, const Visit& visit) const override {
    return in_chunks(tensor.mapped, visit);
  }
  Status read_into(const WeightTensor& tensor, std::span<std::byte> out) const override {
    std::copy(tensor.mapped.begin(), tensor.mapped.end(), out.begin());
    return {};
  }
  std::optional<Status> read_by_parts(const WeightTensor& tensor, std::span<std::byte> out,
                                      const ReadPart& read) const override {
    return read(tensor.mapped, out);
  }
};

// Formats whose tensors are read whole.
class WholeReader : public WeightsReader {
 public:
  Status for_chunks(const WeightTensor& tensor, const Visit& visit) const override {
    std::vector<std::byte> all(tensor.bytes);
    PLIMSOLL_RETURN_IF_ERROR(read_into(tensor, all));
    return in_chunks(all, visit);
  }
};

class GgufFileReader : public WholeReader {
 public:
  explicit GgufFileReader(std::vector<GgufTensor> tensors) : tensors_(std::move(tensors)) {}
  Status read_into(const WeightTensor& tensor, std::span<std::byte> out) const override {
    return decode_gguf(tensors_[tensor.index], out);
  }
  std::optional<Status> read_by_parts(const WeightTensor& tensor, std::span<std::byte> out,
                                      const ReadPart& read) const override {
    if (tensors_[tensor.index].in_blocks) return std::nullopt;
    return read(tensor.mapped, out);
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
  std::optional<Status> read_by_parts(const WeightTensor& tensor, std::span<std::byte> out,
                                      const ReadPart& read) const override {
    if (!tensors_[tensor.index].contiguous) return std::nullopt;
    return read(tensor.mapped, out);
  }

 private:
  std::vector<TorchTensor> tensors_;
};

class NpzFileReader : public WholeReader {
 public:
  explicit NpzFileReader(NpzFile file) : file_(std::move(file)) {}
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

constexpr std::size_t kPlimRead = 4 << 20;

class PlimFileReader : public WeightsReader {
 public:
  PlimFileReader(FileBytes file, std::vector<PlimTensor> tensors)
      : file_(file), tensors_(std::move(tensors)) {}
  Status for_chunks(const WeightTensor& tensor, const Visit& visit) const override {
    const PlimTensor& from = tensors_[tensor.index];
    std::vector<std::byte> piece;
    for (std::uint64_t i = 0; i < from.chunks.size(); ++i) {
      PLIMSOLL_RETURN_IF_ERROR(read_one(from, i, piece));
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
  // 4 MiB of stored chunks at a time: a chunk alone is too little for a disk.
  std::optional<Status> read_by_parts(const WeightTensor& tensor, std::span<std::byte> out,
                                      const ReadPart& read) const override {
    const PlimTensor& from = tensors_[tensor.index];
    if (reinterpret_cast<std::uintptr_t>(out.data()) % 8 != 0) return std::nullopt;
    std::vector<std::byte> stored;
    for (std::uint64_t first = 0; first < from.chunks.size();) {
      std::uint64_t last = first;
      std::size_t bytes = 0;
      while (last < from.chunks.size() && bytes + from.chunks[last].stored <= kPlimRead)
        bytes += from.chunks[last++].stored;
      stored.resize(bytes);
      const std::uint64_t begin = from.chunks[first].offset;
      if (const Status done = read(file_.subspan(begin, bytes), stored); !done) return done;
      for (; first < last; ++first) {
        const PlimChunk& chunk = from.chunks[first];
        const Status done = decode_plim_chunk(
            std::span(stored).subspan(chunk.offset - begin, chunk.stored), from, first,
            out.subspan(first * codec::kChunkBytes, chunk_bytes(from.bytes, first)));
        if (!done) return done;
      }
    }
    return Status{};
  }
  Status read_one(const PlimTensor& from, std::uint64_t chunk, std::vector<std::byte>& out) const {
    out.resize(chunk_bytes(from.bytes, chunk));
    return decode_plim(file_, from, chunk, out);
  }
  const PlimTensor& tensor(std::size_t index) const { return tensors_[index]; }

 private:
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
                           entry.deflated ? "deflated" : "raw",
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
  return open_safetensors(file);
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

Status WeightsFile::read_into(const WeightTensor& tensor, std::span<std::byte> out) const {
  PLIMSOLL_CHECK(out.size() == tensor.bytes, "memory of another tensor than '{}'", tensor.name);
  if (parts_) {
    const std::byte* begin = file_->bytes().data();
    const auto read = [&](FileBytes part, std::span<std::byte> to) {
      return parts_->read(static_cast<std::uint64_t>(part.data() - begin), to, method_of(part));
    };
    if (out.empty()) return {};
    if (const std::optional<Status> done = reader_->read_by_parts(tensor, out, read)) return *done;
  }
  PLIMSOLL_RETURN_IF_ERROR(reader_->read_into(tensor, out));
  // Pages of the file would stand in memory beside the copy.
  if (file_) file_->release(tensor.mapped.empty() ? tensor.in_file : tensor.mapped);
  return {};
}

std::optional<ReadMethod> WeightsFile::read_method(const WeightTensor& tensor) const {
  const FileBytes part = tensor.mapped.empty() ? tensor.in_file : tensor.mapped;
  if (!parts_ || (tensor.mapped.empty() && format_ != "plim")) return std::nullopt;
  return method_of(part);
}

ReadMethod WeightsFile::method_of(std::span<const std::byte> part) const {
  return asked_ ? *asked_ : parts_->method_for(part);
}

Result<std::unique_ptr<FilePages>> WeightsFile::lay_over(const WeightTensor& tensor,
                                                         std::span<std::byte> out) const {
  PLIMSOLL_CHECK(out.size() == tensor.bytes, "memory of another tensor than '{}'", tensor.name);
  if (!parts_ || tensor.mapped.empty()) return std::unique_ptr<FilePages>();
  const ReadMethod method = method_of(tensor.mapped);
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

Status WeightsFile::read_encoded(const WeightTensor& tensor, std::span<std::byte> out) const {
  PLIMSOLL_CHECK(encoded_bytes(tensor) == out.size() && !out.empty(),
                 "memory of another form than that of '{}'", tensor.name);
  const PlimTensor& from = dynamic_cast<const PlimFileReader*>(reader_.get())->tensor(tensor.index);
  std::vector<codec::EncodedChunk> chunks;
  for (const PlimChunk& chunk : from.chunks)
    chunks.push_back({static_cast<std::uint8_t>(chunk.form), chunk.stored});
  const std::size_t table = codec::encoded_table_bytes(chunks.size());
  codec::write_encoded_table(chunks, {reinterpret_cast<std::uint8_t*>(out.data()), table});
  const std::span<std::byte> stored = out.subspan(table);
  if (parts_) {
    const auto offset = static_cast<std::uint64_t>(tensor.in_file.data() - file_->bytes().data());
    PLIMSOLL_RETURN_IF_ERROR(parts_->read(offset, stored, method_of(tensor.in_file)));
  } else {
    std::copy(tensor.in_file.begin(), tensor.in_file.end(), stored.begin());
  }
  std::vector<std::byte> decoded;
  for (std::uint64_t i = 0; i < from.chunks.size(); ++i) {
    const PlimChunk& chunk = from.chunks[i];
    decoded.resize(chunk_bytes(from.bytes, i));
    PLIMSOLL_RETURN_IF_ERROR(decode_plim_chunk(
        stored.subspan(chunk.offset - from.chunks[0].offset, chunk.stored), from, i, decoded));
  }
  return {};
}

Status WeightsFile::for_chunks(const WeightTensor& tensor,
                               const WeightsReader::Visit& visit) const {
  return reader_->for_chunks(tensor, visit);
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
    return plim->read_one(plim->tensor(tensor.index), chunk, out);
  std::uint64_t at = 0;
  return reader_->for_chunks(tensor, [&](std::span<const std::byte> piece) -> Status {
    if (at++ == chunk) out.assign(piece.begin(), piece.end());
    return {};
  });
}

}  // namespace plimsoll::store
