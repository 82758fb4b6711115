// Reading: the directory, the headers, then arrays as they are asked for.
#include "plimsoll/store/npz.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "plimsoll/base/check.h"
#include "plimsoll/store/zip_directory.h"

namespace plimsoll::store {
namespace {

using Span = std::span<const std::byte>;

// Deflate expands by at most 1032; a member that says more is lying.
constexpr std::uint64_t kMostExpansion = 1032;

using Member = ZipMember;

// Inflates exactly as much as the parts hold, one after the other; with `whole`, that must be
// all there is.
Status inflate_into(Span packed, std::span<const std::span<std::byte>> parts, bool whole) {
  constexpr std::size_t kChunk = 1U << 30;
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return fail(ErrorCode::kInternal, "zlib does not start");
  int status = Z_OK;
  std::size_t taken = 0;
  const auto fill = [&](std::span<std::byte> target) {
    std::size_t made = 0;
    while (status == Z_OK && made < target.size()) {
      const std::size_t in = std::min(packed.size() - taken, kChunk);
      const std::size_t out = std::min(target.size() - made, kChunk);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data() + taken));
      stream.avail_in = static_cast<uInt>(in);
      stream.next_out = reinterpret_cast<Bytef*>(target.data() + made);
      stream.avail_out = static_cast<uInt>(out);
      status = inflate(&stream, Z_NO_FLUSH);
      taken += in - stream.avail_in;
      made += out - stream.avail_out;
    }
    return made;
  };
  bool right = true;
  for (const std::span<std::byte> part : parts) right = right && fill(part) == part.size();
  std::byte more{};
  if (whole) right = right && fill({&more, 1}) == 0 && status == Z_STREAM_END;
  inflateEnd(&stream);
  if (!right) return bad_input("its packed bytes are damaged");
  return {};
}

// The first bytes of a member, as many as a header may have at most.
Result<NpyHeader> read_header(const Member& member, std::vector<std::byte>& buffer) {
  if (member.method == 0) return read_npy_header(member.packed_bytes);
  constexpr std::size_t kUsual = 256;
  for (const std::size_t wanted : {kUsual, kLongestNpyHeader}) {
    buffer.resize(std::min<std::uint64_t>(wanted, member.size));
    const std::span<std::byte> part(buffer);
    PLIMSOLL_RETURN_IF_ERROR(inflate_into(member.packed_bytes, {&part, 1}, false));
    auto header = read_npy_header(buffer);
    if (header || buffer.size() < wanted || wanted == kLongestNpyHeader) return header;
  }
  return bad_input("its header is cut off");
}

Result<NpzEntry> read_entry(const Member& member, std::vector<std::byte>& buffer) {
  if (member.method != 0 && member.method != 8)
    return bad_input("compression method {} is not supported", member.method);
  if (member.method == 0 && member.size != member.packed) return bad_input("its sizes disagree");
  if (member.size > member.packed * kMostExpansion + 64)
    return bad_input("says it has {} bytes in {} packed ones", member.size, member.packed);
  PLIMSOLL_TRY(const NpyHeader header, read_header(member, buffer));
  const std::uint64_t content = member.size - header.size;
  if (header.size > member.size ||
      content != static_cast<std::uint64_t>(ir::bytes_of(header.type).value)) {
    return bad_input("{} needs {} bytes, the file has {}", ir::to_string(header.type),
                     ir::bytes_of(header.type), content);
  }
  return NpzEntry{
      "",          header.type,        header.fortran_order, member.method == 8, member.checksum,
      header.size, member.packed_bytes};
}

std::uint32_t checksum(std::uint32_t before, Span bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

Status check_stored(const NpzEntry& entry) {
  if (checksum(checksum(0, {}), entry.packed) != entry.checksum)
    return bad_input("its checksum is wrong: the file is damaged");
  return {};
}

// Header and elements as they are in the file.
Status unpack(const NpzEntry& entry, std::span<std::byte> out) {
  if (!entry.deflated) {
    PLIMSOLL_RETURN_IF_ERROR(check_stored(entry));
    std::copy_n(entry.packed.begin() + static_cast<std::ptrdiff_t>(entry.header), out.size(),
                out.begin());
    return {};
  }
  std::vector<std::byte> header(entry.header);
  const std::span<std::byte> parts[] = {header, out};
  PLIMSOLL_RETURN_IF_ERROR(inflate_into(entry.packed, parts, true));
  if (checksum(checksum(checksum(0, {}), header), out) != entry.checksum)
    return bad_input("its checksum is wrong: the file is damaged");
  return {};
}

}  // namespace

NpzChecksum::NpzChecksum(const NpzEntry& entry)
    : expected_(entry.checksum),
      found_(checksum(checksum(0, {}), entry.packed.first(entry.header))) {}
void NpzChecksum::add(std::span<const std::byte> piece) {
  found_ = checksum(found_, piece);
}
Status NpzChecksum::check() const {
  if (found_ != expected_) return bad_input("its checksum is wrong: the file is damaged");
  return {};
}

Result<NpzFile> NpzFile::from_bytes(std::span<const std::byte> file) {
  PLIMSOLL_TRY(std::vector<Member> members, read_zip_directory(file, "an npz file"));
  for (Member& member : members)
    if (member.name.ends_with(".npy")) member.name.remove_suffix(4);
  PLIMSOLL_RETURN_IF_ERROR(locate_zip_members(file, members));
  NpzFile out;
  out.bytes_ = file;
  out.entries_.reserve(members.size());
  std::vector<std::byte> buffer;
  for (const Member& member : members) {
    auto entry = read_entry(member, buffer);
    if (!entry) return forward(entry, fmt::format("member '{}'", member.name));
    entry->name = member.name;
    out.entries_.push_back(std::move(*entry));
  }
  for (std::size_t i = 0; i < out.entries_.size(); ++i) {
    if (!out.by_name_.emplace(out.entries_[i].name, i).second)
      return bad_input("has two members called '{}'", out.entries_[i].name);
  }
  return out;
}

Result<NpzFile> NpzFile::open(const std::filesystem::path& path) {
  PLIMSOLL_TRY(MappedFile file, MappedFile::open(path));
  auto out = from_bytes(file.bytes());
  if (!out) return forward(out, path.string());
  out->file_ = std::move(file);
  return out;
}

const NpzEntry* NpzFile::find(std::string_view name) const {
  const auto place = by_name_.find(name);
  return place == by_name_.end() ? nullptr : &entries_[place->second];
}

Status NpzFile::read_into(const NpzEntry& entry, std::span<std::byte> out) const {
  PLIMSOLL_CHECK(static_cast<std::int64_t>(out.size()) == ir::bytes_of(entry.type).value,
                 "memory of another array");
  std::vector<std::byte> columns(entry.fortran_order ? out.size() : 0);
  const Status done = unpack(entry, entry.fortran_order ? std::span<std::byte>(columns) : out);
  if (!done) return forward(done, fmt::format("array '{}'", entry.name));
  if (entry.fortran_order) put_in_rows(entry.type, columns, out);
  file_.release(entry.packed);
  return {};
}

Result<std::optional<std::span<const std::byte>>> NpzFile::elements_of(
    const NpzEntry& entry) const {
  std::optional<std::span<const std::byte>> out;
  if (entry.deflated || entry.fortran_order) return out;
  const Status whole = check_stored(entry);
  if (!whole) return forward(whole, fmt::format("array '{}'", entry.name));
  file_.release(entry.packed);
  out = entry.packed.subspan(entry.header);
  return out;
}

Result<NamedTensor> NpzFile::read(const NpzEntry& entry) const {
  NamedTensor out{entry.name, entry.type, {}};
  out.bytes.resize(static_cast<std::size_t>(ir::bytes_of(entry.type).value));
  PLIMSOLL_RETURN_IF_ERROR(read_into(entry, out.bytes));
  return out;
}

namespace {

Result<std::vector<NamedTensor>> read_all(const NpzFile& file) {
  const std::uint64_t most = (std::uint64_t{256} << 20) + 16 * std::uint64_t{file.file_bytes()};
  std::uint64_t total = 0;
  for (const NpzEntry& entry : file.entries())
    total += static_cast<std::uint64_t>(ir::bytes_of(entry.type).value);
  if (total > most)
    return bad_input("its arrays have {} bytes, at most {} are read from a file of {}", total, most,
                     file.file_bytes());
  std::vector<NamedTensor> out;
  for (const NpzEntry& entry : file.entries()) {
    PLIMSOLL_TRY(NamedTensor array, file.read(entry));
    out.push_back(std::move(array));
  }
  return out;
}

}  // namespace

Result<std::vector<NamedTensor>> read_npz_bytes(std::span<const std::byte> file) {
  PLIMSOLL_TRY(const NpzFile opened, NpzFile::from_bytes(file));
  return read_all(opened);
}

Result<std::vector<NamedTensor>> read_npz(const std::filesystem::path& path) {
  PLIMSOLL_TRY(const NpzFile file, NpzFile::open(path));
  auto arrays = read_all(file);
  if (!arrays) return forward(arrays, path.string());
  return arrays;
}

}  // namespace plimsoll::store
