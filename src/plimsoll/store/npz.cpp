// Reading: the directory, the headers, then arrays as they are asked for.
#include "plimsoll/store/npz.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "plimsoll/base/check.h"

namespace plimsoll::store {
namespace {

using Span = std::span<const std::byte>;

// Deflate expands by at most 1032; a member that says more is lying.
constexpr std::uint64_t kMostExpansion = 1032;
constexpr std::size_t kMostMembers = 1 << 20;

std::uint64_t load(Span bytes, std::size_t at, int width) {
  std::uint64_t out = 0;
  std::memcpy(&out, bytes.data() + at, static_cast<std::size_t>(width));
  return out;
}

struct Member {
  std::string_view name;
  std::uint64_t method = 0;
  std::uint64_t packed = 0;
  std::uint64_t size = 0;
  std::uint64_t offset = 0;  // of its local header
  std::uint32_t checksum = 0;
  Span packed_bytes;  // once located
};

struct Directory {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t count = 0;
};

Result<Directory> find_directory(Span file) {
  constexpr std::size_t kEnd = 22;
  if (file.size() < kEnd) return bad_input("not an npz file: too short");
  const std::size_t lowest = file.size() - std::min<std::size_t>(file.size(), kEnd + 65535);
  for (std::size_t at = file.size() - kEnd + 1; at-- > lowest;) {
    if (load(file, at, 4) != 0x06054b50) continue;
    Directory out{load(file, at + 16, 4), load(file, at + 12, 4), load(file, at + 10, 2)};
    const bool zip64 = at >= 20 && load(file, at - 20, 4) == 0x07064b50;
    if (zip64) {
      const std::uint64_t place = load(file, at - 12, 8);
      if (place > file.size() || file.size() - place < 56 || load(file, place, 4) != 0x06064b50) {
        return bad_input("its zip64 directory is malformed");
      }
      out = {load(file, place + 48, 8), load(file, place + 40, 8), load(file, place + 32, 8)};
    }
    if (out.offset > file.size() || out.size > file.size() - out.offset)
      return bad_input("its directory lies outside the file");
    if (out.count > kMostMembers) return bad_input("has more than {} members", kMostMembers);
    return out;
  }
  return bad_input("not an npz file: it has no zip directory");
}

// Sizes that do not fit 32 bits stand in an extra field, in this order, only those that did not
// fit.
Status read_wide_sizes(Span extra, Member& member) {
  while (extra.size() >= 4) {
    const std::size_t length = load(extra, 2, 2);
    if (length > extra.size() - 4) return bad_input("an extra field is cut off");
    if (load(extra, 0, 2) == 1) {
      Span wide = extra.subspan(4, length);
      for (std::uint64_t* field : {&member.size, &member.packed, &member.offset}) {
        if (*field != 0xffffffff) continue;
        if (wide.size() < 8) return bad_input("a zip64 size is missing");
        *field = load(wide, 0, 8);
        wide = wide.subspan(8);
      }
    }
    extra = extra.subspan(4 + length);
  }
  return {};
}

Result<std::vector<Member>> read_directory(Span file) {
  PLIMSOLL_TRY(const Directory directory, find_directory(file));
  Span rest = file.subspan(directory.offset, directory.size);
  std::vector<Member> out;
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    if (rest.size() < 46 || load(rest, 0, 4) != 0x02014b50)
      return bad_input("its directory is malformed");
    const std::size_t name = load(rest, 28, 2);
    const std::size_t extra = load(rest, 30, 2);
    const std::size_t comment = load(rest, 32, 2);
    if (rest.size() - 46 < name + extra + comment) return bad_input("its directory is cut off");
    Member member{{reinterpret_cast<const char*>(rest.data()) + 46, name},
                  load(rest, 10, 2),
                  load(rest, 20, 4),
                  load(rest, 24, 4),
                  load(rest, 42, 4),
                  static_cast<std::uint32_t>(load(rest, 16, 4)),
                  {}};
    if ((load(rest, 8, 2) & 1) != 0) return bad_input("a member is encrypted");
    PLIMSOLL_RETURN_IF_ERROR(read_wide_sizes(rest.subspan(46 + name, extra), member));
    out.push_back(member);
    rest = rest.subspan(46 + name + extra + comment);
  }
  return out;
}

// The bytes that a member takes of the file, its local header included.
Result<Span> locate(Span file, Member& member) {
  if (member.offset > file.size() || file.size() - member.offset < 30 ||
      load(file, member.offset, 4) != 0x04034b50) {
    return bad_input("it lies outside the file");
  }
  const std::uint64_t before =
      30 + load(file, member.offset + 26, 2) + load(file, member.offset + 28, 2);
  if (before > file.size() - member.offset || member.packed > file.size() - member.offset - before)
    return bad_input("it is cut off");
  member.packed_bytes = file.subspan(member.offset + before, member.packed);
  return file.subspan(member.offset, before + member.packed);
}

Status refuse_overlap(std::vector<std::pair<Span, std::string_view>> taken) {
  std::sort(taken.begin(), taken.end(),
            [](const auto& a, const auto& b) { return a.first.data() < b.first.data(); });
  for (std::size_t i = 1; i < taken.size(); ++i) {
    const auto& [bytes, name] = taken[i - 1];
    if (bytes.data() + bytes.size() > taken[i].first.data())
      return bad_input("'{}' and '{}' share bytes of the file", name, taken[i].second);
  }
  return {};
}

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

Result<NpzFile> NpzFile::from_bytes(std::span<const std::byte> file) {
  PLIMSOLL_TRY(std::vector<Member> members, read_directory(file));
  NpzFile out;
  out.bytes_ = file;
  out.entries_.reserve(members.size());
  std::vector<std::pair<Span, std::string_view>> taken;
  for (Member& member : members) {
    if (member.name.ends_with(".npy")) member.name.remove_suffix(4);
    const auto bytes = locate(file, member);
    if (!bytes) return forward(bytes, fmt::format("member '{}'", member.name));
    taken.emplace_back(*bytes, member.name);
  }
  PLIMSOLL_RETURN_IF_ERROR(refuse_overlap(std::move(taken)));
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
