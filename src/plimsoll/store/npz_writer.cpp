#include <zlib.h>

#include "plimsoll/store/npz.h"

namespace plimsoll::store {
namespace {

// in place of a size or a place: an extra field has it
constexpr std::uint64_t kIn64Bits = 0xffffffff;

void store(std::string& out, std::uint64_t value, int width) {
  out.append(reinterpret_cast<const char*>(&value), static_cast<std::size_t>(width));
}

// What the local header and the directory's entry say alike, from "version needed" to the lengths.
void store_description(std::string& out, std::uint32_t checksum, std::uint64_t size,
                       std::size_t name, std::size_t extra) {
  store(out, extra > 0 ? 45 : 20, 2);
  store(out, 0, 2);
  store(out, 0, 2);
  store(out, 0, 4);  // no time: the same arrays make the same file
  store(out, checksum, 4);
  store(out, size, 4);
  store(out, size, 4);
  store(out, name, 2);
  store(out, extra, 2);
}

// Sizes (and in the directory the place) in 64 bits.
std::string wide_fields(std::initializer_list<std::uint64_t> fields) {
  std::string out;
  store(out, 1, 2);
  store(out, 8 * fields.size(), 2);
  for (const std::uint64_t field : fields) store(out, field, 8);
  return out;
}

std::uint32_t checksum_of(std::string_view header, std::span<const std::byte> content) {
  auto out = crc32_z(0, reinterpret_cast<const Bytef*>(header.data()), header.size());
  if (!content.empty())
    out = crc32_z(out, reinterpret_cast<const Bytef*>(content.data()), content.size());
  return static_cast<std::uint32_t>(out);
}

}  // namespace

Result<NpzWriter> NpzWriter::create(const std::filesystem::path& path, std::uint64_t narrow) {
  NpzWriter out;
  out.narrow_ = narrow;
  PLIMSOLL_TRY(out.file_, OutputFile::create(path));
  return out;
}

Status NpzWriter::add(const std::string& array, const ir::TensorType& type,
                      std::span<const std::byte> content) {
  const auto npy = npy_header(type);
  if (!npy) return forward(npy, fmt::format("array '{}'", array));
  if (static_cast<std::int64_t>(content.size()) != ir::bytes_of(type).value) {
    return bad_input("array '{}': {} needs {} bytes, has {}", array, ir::to_string(type),
                     ir::bytes_of(type), content.size());
  }
  const std::string name = array + ".npy";
  if (name.size() > 0xffff)
    return bad_input("array '{}...': a name of {} bytes, an archive holds 65535",
                     array.substr(0, 40), name.size());
  const std::uint64_t size = npy->size() + content.size();
  const std::uint64_t place = file_.bytes_written();
  const std::uint32_t checksum = checksum_of(*npy, content);
  const bool wide_size = size >= narrow_;
  const bool wide = wide_size || place >= narrow_;
  const std::string beside = wide_size ? wide_fields({size, size}) : "";
  const std::string extra = wide ? wide_fields({size, size, place}) : "";

  std::string header;
  store(header, 0x04034b50, 4);
  store_description(header, checksum, wide_size ? kIn64Bits : size, name.size(), beside.size());
  PLIMSOLL_RETURN_IF_ERROR(file_.write(header + name + beside + *npy));
  PLIMSOLL_RETURN_IF_ERROR(file_.write(content));

  store(directory_, 0x02014b50, 4);
  store(directory_, wide ? 45 : 20, 2);
  store_description(directory_, checksum, wide ? kIn64Bits : size, name.size(), extra.size());
  store(directory_, 0, 2 + 2 + 2);  // no comment, on this disk
  store(directory_, 0, 4);
  store(directory_, wide ? kIn64Bits : place, 4);
  directory_ += name + extra;
  ++count_;
  return {};
}

Status NpzWriter::commit() {
  const std::uint64_t place = file_.bytes_written();
  const std::uint64_t size = directory_.size();
  const bool wide = place >= narrow_ || size >= narrow_ || count_ >= 0xffff;
  std::string end;
  if (wide) {
    store(end, 0x06064b50, 4);
    store(end, 44, 8);  // bytes of this record that follow
    store(end, 45, 2);
    store(end, 45, 2);
    store(end, 0, 4 + 4);
    store(end, count_, 8);
    store(end, count_, 8);
    store(end, size, 8);
    store(end, place, 8);
    store(end, 0x07064b50, 4);
    store(end, 0, 4);
    store(end, place + size, 8);
    store(end, 1, 4);
  }
  store(end, 0x06054b50, 4);
  store(end, 0, 4);
  store(end, wide ? 0xffff : count_, 2);
  store(end, wide ? 0xffff : count_, 2);
  store(end, wide ? kIn64Bits : size, 4);
  store(end, wide ? kIn64Bits : place, 4);
  store(end, 0, 2);
  PLIMSOLL_RETURN_IF_ERROR(file_.write(directory_ + end));
  return file_.commit();
}

Status write_npz(const std::filesystem::path& path, std::span<const NamedTensor> arrays) {
  PLIMSOLL_TRY(NpzWriter out, NpzWriter::create(path));
  for (const NamedTensor& array : arrays)
    PLIMSOLL_RETURN_IF_ERROR(out.add(array.name, array.type, array.bytes));
  return out.commit();
}

std::uint64_t npz_bytes_at_most(std::uint64_t content, std::size_t arrays,
                                std::size_t longest_name) {
  // headers, and a shape of 64 extents
  constexpr std::uint64_t kPerArray = 30 + 20 + 46 + 28 + 128 + 64 * 22;
  constexpr std::uint64_t kEnd = 56 + 20 + 22;
  return content + arrays * (kPerArray + 2 * (longest_name + 4)) + kEnd;
}

}  // namespace plimsoll::store
