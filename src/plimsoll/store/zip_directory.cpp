#include "plimsoll/store/zip_directory.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace plimsoll::store {
namespace {

using Span = std::span<const std::byte>;

constexpr std::size_t kMostMembers = 1 << 20;

std::uint64_t zip_number(Span bytes, std::size_t at, int width) {
  std::uint64_t out = 0;
  std::memcpy(&out, bytes.data() + at, static_cast<std::size_t>(width));
  return out;
}

struct Directory {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t count = 0;
};

Result<Directory> find_directory(Span file, std::string_view what) {
  constexpr std::size_t kEnd = 22;
  if (file.size() < kEnd) return bad_input("not {}: too short", what);
  const std::size_t lowest = file.size() - std::min<std::size_t>(file.size(), kEnd + 65535);
  for (std::size_t at = file.size() - kEnd + 1; at-- > lowest;) {
    if (zip_number(file, at, 4) != 0x06054b50) continue;
    Directory out{zip_number(file, at + 16, 4), zip_number(file, at + 12, 4),
                  zip_number(file, at + 10, 2)};
    const bool zip64 = at >= 20 && zip_number(file, at - 20, 4) == 0x07064b50;
    if (zip64) {
      const std::uint64_t place = zip_number(file, at - 12, 8);
      if (place > file.size() || file.size() - place < 56 ||
          zip_number(file, place, 4) != 0x06064b50) {
        return bad_input("its zip64 directory is malformed");
      }
      out = {zip_number(file, place + 48, 8), zip_number(file, place + 40, 8),
             zip_number(file, place + 32, 8)};
    }
    if (out.offset > file.size() || out.size > file.size() - out.offset)
      return bad_input("its directory lies outside the file");
    if (out.count > kMostMembers) return bad_input("has more than {} members", kMostMembers);
    return out;
  }
  return bad_input("not {}: it has no zip directory", what);
}

// Sizes that do not fit 32 bits stand in an extra field, in this order, only those that did not
// fit.
Status read_wide_sizes(Span extra, ZipMember& member) {
  while (extra.size() >= 4) {
    const std::size_t length = zip_number(extra, 2, 2);
    if (length > extra.size() - 4) return bad_input("an extra field is cut off");
    if (zip_number(extra, 0, 2) == 1) {
      Span wide = extra.subspan(4, length);
      for (std::uint64_t* field : {&member.size, &member.packed, &member.offset}) {
        if (*field != 0xffffffff) continue;
        if (wide.size() < 8) return bad_input("a zip64 size is missing");
        *field = zip_number(wide, 0, 8);
        wide = wide.subspan(8);
      }
    }
    extra = extra.subspan(4 + length);
  }
  return {};
}

// The bytes that a member takes of the file, its local header included.
Result<Span> locate(Span file, ZipMember& member) {
  if (member.offset > file.size() || file.size() - member.offset < 30 ||
      zip_number(file, member.offset, 4) != 0x04034b50) {
    return bad_input("it lies outside the file");
  }
  const std::uint64_t before =
      30 + zip_number(file, member.offset + 26, 2) + zip_number(file, member.offset + 28, 2);
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

}  // namespace

Result<std::vector<ZipMember>> read_zip_directory(Span file, std::string_view what) {
  PLIMSOLL_TRY(const Directory directory, find_directory(file, what));
  Span rest = file.subspan(directory.offset, directory.size);
  std::vector<ZipMember> out;
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    if (rest.size() < 46 || zip_number(rest, 0, 4) != 0x02014b50)
      return bad_input("its directory is malformed");
    const std::size_t name = zip_number(rest, 28, 2);
    const std::size_t extra = zip_number(rest, 30, 2);
    const std::size_t comment = zip_number(rest, 32, 2);
    if (rest.size() - 46 < name + extra + comment) return bad_input("its directory is cut off");
    ZipMember member{{reinterpret_cast<const char*>(rest.data()) + 46, name},
                     zip_number(rest, 10, 2),
                     zip_number(rest, 20, 4),
                     zip_number(rest, 24, 4),
                     zip_number(rest, 42, 4),
                     static_cast<std::uint32_t>(zip_number(rest, 16, 4)),
                     {}};
    if ((zip_number(rest, 8, 2) & 1) != 0) return bad_input("a member is encrypted");
    PLIMSOLL_RETURN_IF_ERROR(read_wide_sizes(rest.subspan(46 + name, extra), member));
    out.push_back(member);
    rest = rest.subspan(46 + name + extra + comment);
  }
  return out;
}

Status locate_zip_members(Span file, std::span<ZipMember> members) {
  std::vector<std::pair<Span, std::string_view>> taken;
  taken.reserve(members.size());
  for (ZipMember& member : members) {
    const auto bytes = locate(file, member);
    if (!bytes) return forward(bytes, fmt::format("member '{}'", member.name));
    taken.emplace_back(*bytes, member.name);
  }
  return refuse_overlap(std::move(taken));
}

}  // namespace plimsoll::store
