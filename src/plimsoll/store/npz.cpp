// The zip archive around .npy members; see npy.h.
#include <zlib.h>

#include <cstring>
#include <set>

#include "plimsoll/base/file.h"
#include "plimsoll/store/npy.h"

namespace plimsoll::store {
namespace {

using Span = std::span<const std::byte>;

// Deflate expands by at most 1032; a member that says more is lying.
constexpr std::uint64_t kMostExpansion = 1100;
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
    if (out.offset > file.size() || out.size > file.size() - out.offset) return bad_input("its directory lies outside the file");
    if (out.count > kMostMembers) return bad_input("has more than {} members", kMostMembers);
    return out;
  }
  return bad_input("not an npz file: it has no zip directory");
}

// Sizes that do not fit 32 bits stand in an extra field, in this order, only those that did not fit.
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
    if (rest.size() < 46 || load(rest, 0, 4) != 0x02014b50) return bad_input("its directory is malformed");
    const std::size_t name = load(rest, 28, 2);
    const std::size_t extra = load(rest, 30, 2);
    const std::size_t comment = load(rest, 32, 2);
    if (rest.size() - 46 < name + extra + comment) return bad_input("its directory is cut off");
    Member member{{reinterpret_cast<const char*>(rest.data()) + 46, name}, load(rest, 10, 2), load(rest, 20, 4),
                  load(rest, 24, 4), load(rest, 42, 4)};
    if ((load(rest, 8, 2) & 1) != 0) return bad_input("a member is encrypted");
    PLIMSOLL_RETURN_IF_ERROR(read_wide_sizes(rest.subspan(46 + name, extra), member));
    out.push_back(member);
    rest = rest.subspan(46 + name + extra + comment);
  }
  return out;
}

Result<std::vector<std::byte>> inflate_member(Span packed, std::uint64_t size) {
  if (size > packed.size() * kMostExpansion + 64) return bad_input("says it has {} bytes in {} packed ones", size, packed.size());
  std::vector<std::byte> out(size);
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return fail(ErrorCode::kInternal, "zlib does not start");
  std::size_t taken = 0;
  std::size_t made = 0;
  int status = Z_OK;
  constexpr std::size_t kChunk = 1U << 30;
  while (status == Z_OK) {
    const std::size_t in = std::min(packed.size() - taken, kChunk);
    const std::size_t room = std::min(out.size() - made, kChunk);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data() + taken));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + made);
    stream.avail_out = static_cast<uInt>(room);
    status = inflate(&stream, Z_NO_FLUSH);
    taken += in - stream.avail_in;
    made += room - stream.avail_out;
    if (status == Z_OK && in == stream.avail_in && room == stream.avail_out) break;
  }
  inflateEnd(&stream);
  if (status != Z_STREAM_END || made != size) return bad_input("its packed bytes are damaged");
  return out;
}

Result<NamedTensor> read_member(Span file, const Member& member) {
  if (member.offset > file.size() || file.size() - member.offset < 30 || load(file, member.offset, 4) != 0x04034b50) {
    return bad_input("it lies outside the file");
  }
  const std::uint64_t begin = member.offset + 30 + load(file, member.offset + 26, 2) + load(file, member.offset + 28, 2);
  if (begin > file.size() || member.packed > file.size() - begin) return bad_input("it is cut off");
  const Span packed = file.subspan(begin, member.packed);
  if (member.method == 0) {
    if (member.size != member.packed) return bad_input("its sizes disagree");
    return read_npy(packed);
  }
  if (member.method != 8) return bad_input("compression method {} is not supported", member.method);
  PLIMSOLL_TRY(const std::vector<std::byte> bytes, inflate_member(packed, member.size));
  return read_npy(bytes);
}

void store(std::string& out, std::uint64_t value, int width) {
  out.append(reinterpret_cast<const char*>(&value), static_cast<std::size_t>(width));
}

// What the local header and the directory's entry say alike, from "version needed" to the lengths.
void store_description(std::string& out, std::uint32_t crc, std::uint64_t size, std::size_t name) {
  store(out, 20, 2);
  store(out, 0, 2);
  store(out, 0, 2);
  store(out, 0, 4);  // no time: the same arrays make the same file
  store(out, crc, 4);
  store(out, size, 4);
  store(out, size, 4);
  store(out, name, 2);
  store(out, 0, 2);
}

}  // namespace

Result<std::vector<NamedTensor>> read_npz_bytes(std::span<const std::byte> file) {
  PLIMSOLL_TRY(const std::vector<Member> members, read_directory(file));
  std::vector<NamedTensor> out;
  std::set<std::string_view> names;
  for (const Member& member : members) {
    std::string_view name = member.name;
    if (name.ends_with(".npy")) name.remove_suffix(4);
    if (!names.insert(name).second) return bad_input("has two members called '{}'", name);
    auto array = read_member(file, member);
    if (!array) return forward(array, fmt::format("member '{}'", name));
    array->name = name;
    out.push_back(std::move(*array));
  }
  return out;
}

Result<std::vector<NamedTensor>> read_npz(const std::filesystem::path& path) {
  PLIMSOLL_TRY(const MappedFile file, MappedFile::open(path));
  auto arrays = read_npz_bytes(file.bytes());
  if (!arrays) return forward(arrays, path.string());
  return arrays;
}

Status write_npz(const std::filesystem::path& path, std::span<const NamedTensor> arrays) {
  std::string file;
  std::string directory;
  for (const NamedTensor& array : arrays) {
    auto npy = write_npy(array.type, array.bytes);
    if (!npy) return forward(npy, fmt::format("array '{}'", array.name));
    const std::string name = array.name + ".npy";
    if (npy->size() + file.size() > 0xfffffff0ULL || name.size() > 0xffff || arrays.size() > 0xfffe) {
      return bad_input("array '{}': an archive of more than 4 GiB is not supported", array.name);
    }
    const auto crc = static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(npy->data()), npy->size()));
    store(directory, 0x02014b50, 4);
    store(directory, 20, 2);
    store_description(directory, crc, npy->size(), name.size());
    store(directory, 0, 2 + 2 + 2);
    store(directory, 0, 4);
    store(directory, file.size(), 4);
    directory += name;
    store(file, 0x04034b50, 4);
    store_description(file, crc, npy->size(), name.size());
    file += name;
    file.append(reinterpret_cast<const char*>(npy->data()), npy->size());
  }
  const std::uint64_t offset = file.size();
  file += directory;
  store(file, 0x06054b50, 4);
  store(file, 0, 4);
  store(file, arrays.size(), 2);
  store(file, arrays.size(), 2);
  store(file, directory.size(), 4);
  store(file, offset, 4);
  store(file, 0, 2);
  return write_file(path, file);
}

}  // namespace plimsoll::store
