#include "plimsoll/store/plim_file.h"

#include <cstring>
#include <unordered_set>

#include <fmt/format.h>

#include "plimsoll/base/check.h"
#include "plimsoll/base/checksum64.h"
#include "plimsoll/base/utf8.h"
#include "plimsoll/codec/weights/weight_codecs.h"

namespace plimsoll::store {
namespace {

constexpr std::uint64_t kPlimPage = 4096;
constexpr std::string_view kPlimMagic = "PLIMWGT1";
constexpr std::string_view kPlimEnd = "PLIMEND1";
constexpr std::uint32_t kPlimVersion = 2;
constexpr std::size_t kTrailer = 64;
constexpr std::size_t kChunkRecord = 13;
constexpr std::uint64_t kMostExpansionOfPlim = 1032;

template <typename T>
void put_number(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

std::string index_text(const PlimIndex& index) {
  std::string out;
  for (const PlimTensor& tensor : index.tensors) {
    put_number(out, static_cast<std::uint32_t>(tensor.name.size()));
    out += tensor.name;
    put_number(out, static_cast<std::uint8_t>(tensor.element));
    put_number(out, static_cast<std::uint8_t>(tensor.form));
    put_number(out, static_cast<std::uint8_t>(tensor.dims.size()));
    for (const std::uint64_t dim : tensor.dims) put_number(out, dim);
    for (const PlimChunk& chunk : tensor.chunks) {
      put_number(out, chunk.stored);
      put_number(out, static_cast<std::uint8_t>(chunk.form));
      put_number(out, chunk.checksum);
    }
  }
  put_number(out, static_cast<std::uint64_t>(index.source_header.size()));
  return out + index.source_header;
}

std::uint64_t rounded_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

class PlimIndexReader {
 public:
  PlimIndexReader(std::span<const std::byte> index, std::uint64_t end_of_data,
                  std::uint64_t file_bytes)
      : index_(index),
        end_of_data_(end_of_data),
        most_bytes_((std::uint64_t{256} << 20) + kMostExpansionOfPlim * file_bytes) {}

  Result<PlimIndex> read(std::uint64_t tensors) {
    constexpr std::size_t kLeastTensor = 7;
    if (tensors > index_.size() / kLeastTensor)
      return bad_input("says it has {} tensors in an index of {} bytes", tensors, index_.size());
    PlimIndex out;
    for (std::uint64_t i = 0; i < tensors; ++i) {
      const Status read = tensor(out.tensors.emplace_back());
      if (!read) return forward(read, fmt::format("tensor {}", i));
    }
    PLIMSOLL_TRY(const std::uint64_t header, number<std::uint64_t>());
    if (header != index_.size() - at_) return bad_input("its index has a wrong length");
    out.source_header.assign(reinterpret_cast<const char*>(index_.data()) + at_, header);
    if (next_ > end_of_data_ || end_of_data_ - next_ >= kPlimPage)
      return bad_input("its tensors end at {}, its index begins at {}", next_, end_of_data_);
    return out;
  }

 private:
  template <typename T>
  Result<T> number() {
    if (index_.size() - at_ < sizeof(T)) return bad_input("its index is cut off");
    T out;
    std::memcpy(&out, index_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return out;
  }
  Status tensor(PlimTensor& out) {
    PLIMSOLL_TRY(const std::uint32_t length, number<std::uint32_t>());
    if (length > index_.size() - at_) return bad_input("its name is cut off");
    out.name.assign(reinterpret_cast<const char*>(index_.data()) + at_, length);
    at_ += length;
    if (!names_.insert(out.name).second)
      return bad_input("there are two called '{}'", excerpt(out.name));
    PLIMSOLL_TRY(const std::uint8_t element, number<std::uint8_t>());
    PLIMSOLL_TRY(out.form, form());
    PLIMSOLL_TRY(const std::uint8_t rank, number<std::uint8_t>());
    if (element >= kElementCount) return bad_input("there is no element type {}", element);
    out.element = static_cast<Element>(element);
    for (int i = 0; i < rank; ++i) {
      PLIMSOLL_TRY(const std::uint64_t dim, number<std::uint64_t>());
      out.dims.push_back(dim);
    }
    const auto bytes = store::bytes_of(out.element, out.dims);
    if (!bytes || __builtin_add_overflow(total_, *bytes, &total_) || total_ > most_bytes_)
      return bad_input("'{}' {} is larger than the file can hold", excerpt(out.name),
                       to_string(out.element, out.dims));
    out.bytes = *bytes;
    return chunks(out);
  }
  Result<Form> form() {
    PLIMSOLL_TRY(const std::uint8_t number_of, number<std::uint8_t>());
    if (number_of > codec::weight_codecs().size())
      return bad_input("form {} is unknown: the file was written by a newer version", number_of);
    return static_cast<Form>(number_of);
  }
  Status chunks(PlimTensor& out) {
    const std::uint64_t count = chunks_of(out.bytes);
    if (count > (index_.size() - at_) / kChunkRecord) return bad_input("its chunks are cut off");
    out.chunks.resize(count);
    if (count > 0) next_ = rounded_up(next_, kPlimPage);
    for (std::uint64_t i = 0; i < count; ++i) {
      PlimChunk& chunk = out.chunks[i];
      PLIMSOLL_TRY(chunk.stored, number<std::uint32_t>());
      PLIMSOLL_TRY(chunk.form, form());
      PLIMSOLL_TRY(chunk.checksum, number<std::uint64_t>());
      chunk.offset = next_;
      const std::size_t decoded = chunk_bytes(out.bytes, i);
      const bool right = chunk.form == Form::kRaw
                             ? chunk.stored == decoded
                             : chunk.stored < decoded && takes(chunk.form, out.element, out.dims);
      if (!right)
        return bad_input("'{}', chunk {}: {} bytes as {} for {} of {}", excerpt(out.name), i,
                         chunk.stored, store::name(chunk.form), decoded, store::name(out.element));
      next_ += chunk.stored;
      if (next_ > end_of_data_)
        return bad_input("'{}' reaches beyond the file: it is cut off", excerpt(out.name));
    }
    return {};
  }

  std::span<const std::byte> index_;
  std::uint64_t end_of_data_;
  std::uint64_t most_bytes_;
  std::size_t at_ = 0;
  std::uint64_t next_ = kPlimPage;
  std::uint64_t total_ = 0;
  std::unordered_set<std::string> names_;
};

std::uint64_t number_at(std::span<const std::byte> bytes, std::size_t at) {
  std::uint64_t out;
  std::memcpy(&out, bytes.data() + at, 8);
  return out;
}

}  // namespace

std::uint64_t PlimTensor::stored_bytes() const {
  std::uint64_t out = 0;
  for (const PlimChunk& chunk : chunks) out += chunk.stored;
  return out;
}
bool PlimTensor::is_raw() const {
  for (const PlimChunk& chunk : chunks)
    if (chunk.form != Form::kRaw) return false;
  return true;
}

Result<PlimIndex> read_plim(std::span<const std::byte> file) {
  if (file.size() < kPlimPage + kTrailer ||
      std::memcmp(file.data(), kPlimMagic.data(), kPlimMagic.size()) != 0)
    return bad_input("not a .plim file, or cut off");
  std::uint32_t version;
  std::uint32_t bytes_of_chunk;
  std::memcpy(&version, file.data() + 8, 4);
  std::memcpy(&bytes_of_chunk, file.data() + 12, 4);
  if (version != kPlimVersion || bytes_of_chunk != codec::kChunkBytes)
    return bad_input(
        "a .plim file of version {} with chunks of {} bytes; version {} with {} is read", version,
        bytes_of_chunk, kPlimVersion, codec::kChunkBytes);
  const auto trailer = file.last(kTrailer);
  if (std::memcmp(trailer.data(), kPlimEnd.data(), kPlimEnd.size()) != 0 ||
      checksum64(trailer.first(kTrailer - 8)) != number_at(trailer, 56))
    return bad_input("its end is missing or damaged: it was not written whole");
  const std::uint64_t begin = number_at(trailer, 8);
  const std::uint64_t length = number_at(trailer, 16);
  if (number_at(trailer, 48) != file.size() || begin < kPlimPage ||
      begin > file.size() - kTrailer || length != file.size() - kTrailer - begin)
    return bad_input("its end says {} bytes, the file has {}", number_at(trailer, 48), file.size());
  const auto index = file.subspan(begin, length);
  if (checksum64(index) != number_at(trailer, 24)) return bad_input("its index is damaged");
  PLIMSOLL_TRY(PlimIndex out,
               PlimIndexReader(index, begin, file.size()).read(number_at(trailer, 32)));
  std::uint64_t chunks = 0;
  for (const PlimTensor& tensor : out.tensors) chunks += tensor.chunks.size();
  if (chunks != number_at(trailer, 40))
    return bad_input("its end says {} chunks, its index has {}", number_at(trailer, 40), chunks);
  return out;
}

Status decode_plim(std::span<const std::byte> file, const PlimTensor& tensor, std::uint64_t chunk,
                   std::span<std::byte> out) {
  const PlimChunk& record = tensor.chunks[chunk];
  return decode_plim_chunk(file.subspan(record.offset, record.stored), tensor, chunk, out);
}

Status check_plim_chunk(std::span<const std::byte> bytes, const PlimTensor& tensor,
                        std::uint64_t chunk) {
  if (checksum64(bytes) == tensor.chunks[chunk].checksum) return {};
  return bad_input("tensor '{}', chunk {}: its checksum is wrong: the file is damaged",
                   printable(tensor.name), chunk);
}

Status decode_plim_chunk(std::span<const std::byte> bytes, const PlimTensor& tensor,
                         std::uint64_t chunk, std::span<std::byte> out) {
  const PlimChunk& record = tensor.chunks[chunk];
  PLIMSOLL_RETURN_IF_ERROR(check_plim_chunk(bytes, tensor, chunk));
  if (!decode_chunk(record.form, tensor.element, tensor.dims, chunk, bytes, out))
    return bad_input("tensor '{}', chunk {}: no {} code", printable(tensor.name), chunk,
                     name(record.form));
  return {};
}

Result<PlimWriter> PlimWriter::create(const std::filesystem::path& path) {
  PlimWriter out;
  PLIMSOLL_TRY(out.file_, OutputFile::create(path));
  std::string page(kPlimMagic);
  put_number(page, kPlimVersion);
  put_number(page, static_cast<std::uint32_t>(codec::kChunkBytes));
  page.resize(kPlimPage, '\0');
  PLIMSOLL_RETURN_IF_ERROR(out.file_.write(page));
  return out;
}

Status PlimWriter::pad_to(std::uint64_t alignment) {
  const std::uint64_t at = file_.bytes_written();
  return file_.write(std::string(rounded_up(at, alignment) - at, '\0'));
}

Status PlimWriter::begin(std::string name, Element element, Form form,
                         std::vector<std::uint64_t> dims) {
  if (dims.size() > 255)
    return bad_input("tensor '{}': rank {}, a .plim file has at most 255", printable(name),
                     dims.size());
  PlimTensor tensor{std::move(name), element, form, std::move(dims), 0, {}};
  const auto bytes = store::bytes_of(tensor.element, tensor.dims);
  if (!bytes) return bad_input("tensor '{}' is too large", printable(tensor.name));
  tensor.bytes = *bytes;
  if (*bytes > 0) PLIMSOLL_RETURN_IF_ERROR(pad_to(kPlimPage));
  index_.tensors.push_back(std::move(tensor));
  return {};
}

Status PlimWriter::put(const Chunk& chunk) {
  PlimTensor& tensor = index_.tensors.back();
  PLIMSOLL_CHECK(tensor.chunks.size() < chunks_of(tensor.bytes), "more chunks than '{}' has",
                 tensor.name);
  tensor.chunks.push_back({file_.bytes_written(), static_cast<std::uint32_t>(chunk.bytes.size()),
                           chunk.form, checksum64(chunk.bytes)});
  return file_.write(chunk.bytes);
}

Status PlimWriter::commit(std::string_view source_header) {
  for (const PlimTensor& tensor : index_.tensors)
    PLIMSOLL_CHECK(tensor.chunks.size() == chunks_of(tensor.bytes), "'{}' is not whole",
                   tensor.name);
  index_.source_header = source_header;
  PLIMSOLL_RETURN_IF_ERROR(pad_to(8));
  const std::string index = index_text(index_);
  std::uint64_t chunks = 0;
  for (const PlimTensor& tensor : index_.tensors) chunks += tensor.chunks.size();
  std::string trailer(kPlimEnd);
  put_number(trailer, file_.bytes_written());
  put_number(trailer, static_cast<std::uint64_t>(index.size()));
  put_number(trailer, checksum64(std::as_bytes(std::span(index))));
  put_number(trailer, static_cast<std::uint64_t>(index_.tensors.size()));
  put_number(trailer, chunks);
  put_number(trailer, file_.bytes_written() + index.size() + kTrailer);
  put_number(trailer, checksum64(std::as_bytes(std::span(trailer))));
  PLIMSOLL_RETURN_IF_ERROR(file_.write(index));
  PLIMSOLL_RETURN_IF_ERROR(file_.write(trailer));
  return file_.commit();
}

}  // namespace plimsoll::store
