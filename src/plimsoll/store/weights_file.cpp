#include "plimsoll/store/weights_file.h"

#include <algorithm>
#include <map>
#include <utility>

#include "plimsoll/base/check.h"
#include "plimsoll/base/utf8.h"
#include "plimsoll/codec/weights/weight_codec.h"
#include "plimsoll/store/open_weights.h"
#include "plimsoll/store/plim_reader.h"

namespace plimsoll::store {
namespace {

// What a file has is said at its begin or at its end. Of a cold file both are asked for at once: a
// disk takes as long to answer one question as to read a megabyte.
void expect_ends(const PartReader& parts, std::uint64_t file_bytes) {
  constexpr std::uint64_t kHead = 64 << 10;
  const std::uint64_t tail =
      std::min<std::uint64_t>(file_bytes, (64 << 10) + file_bytes / (16 << 10));
  parts.expect(file_bytes - tail, tail);
  parts.expect(0, std::min(file_bytes, kHead));
}

Status copy_of_part(std::span<const std::byte> part, std::span<std::byte> out) {
  std::copy(part.begin(), part.end(), out.begin());
  return {};
}

}  // namespace

Status WeightsFile::index_names() {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!by_name_.emplace(tensors_[i].name, i).second)
      return bad_input("there are two tensors called '{}'", excerpt(tensors_[i].name));
  }
  return {};
}

Result<WeightsFile> WeightsFile::of(OpenedWeights opened, std::uint64_t file_bytes) {
  WeightsFile out;
  out.format_ = std::move(opened.format);
  out.source_header_ = std::move(opened.source_header);
  out.file_bytes_ = file_bytes;
  out.reader_ = std::move(opened.reader);
  out.tensors_ = std::move(opened.tensors);
  PLIMSOLL_RETURN_IF_ERROR(out.index_names());
  return out;
}

Result<WeightsFile> WeightsFile::from_bytes(std::span<const std::byte> file) {
  PLIMSOLL_TRY(OpenedWeights opened, open_weights(file));
  return of(std::move(opened), file.size());
}

Result<WeightsFile> WeightsFile::from_source(WeightSource source, std::string format,
                                             std::uint64_t file_bytes) {
  PLIMSOLL_TRY(OpenedWeights opened, open_weight_source(std::move(source), std::move(format)));
  return of(std::move(opened), file_bytes);
}

Result<WeightsFile> WeightsFile::open(const std::filesystem::path& path) {
  PLIMSOLL_TRY(MappedFile mapped, MappedFile::open(path));
  auto file = std::make_unique<MappedFile>(std::move(mapped));
  PLIMSOLL_TRY(PartReader parts, PartReader::open(path));
  expect_ends(parts, file->bytes().size());
  auto out = from_bytes(file->bytes());
  if (!out) return forward(out, path.string());
  out->path_ = path.string();
  out->parts_ = std::make_unique<PartReader>(std::move(parts));
  out->file_ = std::move(file);
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
  const auto* plim = dynamic_cast<const PlimReader*>(reader_.get());
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
  const std::span<const std::byte> part = tensor.mapped.empty() ? tensor.in_file : tensor.mapped;
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

Status WeightsFile::for_chunks(const WeightTensor& tensor,
                               const WeightsReader::Visit& visit) const {
  if (tensor.bytes == 0) return {};
  if (!parts_) return reader_->for_chunks(tensor, visit, copy_of_part);
  const std::byte* begin = file_->bytes().data();
  const std::span<const std::byte> all = tensor.mapped.empty() ? tensor.in_file : tensor.mapped;
  if (!all.empty()) parts_->expect(static_cast<std::uint64_t>(all.data() - begin), all.size());
  // What the visitor says is no fault of the file's.
  Status visited;
  const Status read = reader_->for_chunks(
      tensor,
      [&](std::span<const std::byte> piece) {
        visited = visit(piece);
        return visited;
      },
      [&](std::span<const std::byte> part, std::span<std::byte> to) {
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
  if (const auto* plim = dynamic_cast<const PlimReader*>(reader_.get()))
    return naming_file(plim->read_one(plim->tensor(tensor.index), chunk, out));
  std::uint64_t at = 0;
  return for_chunks(tensor, [&](std::span<const std::byte> piece) -> Status {
    if (at++ == chunk) out.assign(piece.begin(), piece.end());
    return {};
  });
}

}  // namespace plimsoll::store
