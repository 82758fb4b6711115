#include "plimsoll/store/open_weights.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "plimsoll/base/utf8.h"
#include "plimsoll/codec/weights/weight_codec.h"
#include "plimsoll/store/gguf.h"
#include "plimsoll/store/npz.h"
#include "plimsoll/store/plim_file.h"
#include "plimsoll/store/plim_reader.h"
#include "plimsoll/store/safetensors.h"
#include "plimsoll/store/torch_file.h"
#include "plimsoll/store/zip_directory.h"

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

Result<OpenedWeights> open_safetensors(FileBytes file) {
  PLIMSOLL_TRY(SafetensorsHeader header, read_safetensors(file));
  OpenedWeights out{"safetensors", std::make_unique<MappedReader>(), {}, std::string(header.text)};
  for (SafetensorsEntry& entry : header.entries) {
    const std::uint64_t bytes = entry.end - entry.begin;
    out.tensors.push_back({std::move(entry.name), entry.element, std::move(entry.dims), "raw",
                           bytes, bytes, out.tensors.size(),
                           file.subspan(header.data_begin + entry.begin, bytes)});
  }
  return out;
}
Result<OpenedWeights> open_plim(FileBytes file) {
  PLIMSOLL_TRY(PlimIndex index, read_plim(file));
  OpenedWeights out{"plim", nullptr, {}, std::move(index.source_header)};
  for (const PlimTensor& tensor : index.tensors) {
    const bool raw = tensor.is_raw() && tensor.bytes > 0;
    out.tensors.push_back({tensor.name, tensor.element, tensor.dims, std::string(name(tensor.form)),
                           tensor.bytes, tensor.stored_bytes(), out.tensors.size(),
                           raw ? file.subspan(tensor.chunks[0].offset, tensor.bytes) : FileBytes{},
                           tensor.chunks.empty()
                               ? FileBytes{}
                               : file.subspan(tensor.chunks[0].offset, tensor.stored_bytes())});
  }
  out.reader = std::make_unique<PlimReader>(file, std::move(index.tensors));
  return out;
}
Result<OpenedWeights> open_gguf(FileBytes file) {
  PLIMSOLL_TRY(std::vector<GgufTensor> tensors, read_gguf(file));
  OpenedWeights out{"gguf", nullptr, {}, ""};
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
Result<OpenedWeights> open_torch(FileBytes file) {
  PLIMSOLL_TRY(std::vector<TorchTensor> tensors, read_torch(file));
  OpenedWeights out{"torch", nullptr, {}, ""};
  for (const TorchTensor& tensor : tensors) {
    const std::uint64_t bytes = *bytes_of(tensor.element, tensor.dims);
    out.tensors.push_back({tensor.name, tensor.element, tensor.dims,
                           tensor.contiguous ? "raw" : "strided", bytes, bytes, out.tensors.size(),
                           tensor.contiguous ? tensor.storage.first(bytes) : FileBytes{}});
  }
  out.reader = std::make_unique<TorchFileReader>(std::move(tensors));
  return out;
}
Result<OpenedWeights> open_npz(FileBytes file) {
  PLIMSOLL_TRY(NpzFile archive, NpzFile::from_bytes(file));
  OpenedWeights out{"npz", nullptr, {}, ""};
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

}  // namespace

Result<OpenedWeights> open_weights(std::span<const std::byte> file) {
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

Result<OpenedWeights> open_weight_source(WeightSource source, std::string format) {
  OpenedWeights out{std::move(format), nullptr, {}, ""};
  auto reader = std::make_unique<SourceReader>(std::move(source));
  for (const auto& [name, entry] : reader->source().entries()) {
    const auto element = element_of(entry.type.dtype);
    if (!element)
      return bad_input("weight '{}': {} has no form in weight files", printable(name),
                       ir::to_string(entry.type));
    const std::vector<std::uint64_t> dims(entry.type.shape.begin(), entry.type.shape.end());
    out.tensors.push_back(
        {name, *element, dims, "raw", entry.bytes.size(), entry.bytes.size(), 0, entry.bytes});
  }
  std::sort(out.tensors.begin(), out.tensors.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  out.reader = std::move(reader);
  return out;
}

}  // namespace plimsoll::store
