// Archives made by hand, right or wrong, for tests of the .npz reader.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace plimsoll::store::zip_pieces {

inline void put(std::string& out, std::uint64_t value, int width) {
  for (int i = 0; i < width; ++i, value >>= 8) out += static_cast<char>(value & 0xff);
}

// Raw deflate of the text, then of `zeros` zero bytes, without ever holding them.
inline std::string deflated(const std::string& text, std::uint64_t zeros = 0) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
  std::string out;
  std::string buffer(1 << 16, '\0');
  const auto push = [&](const std::string& from, int flush) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(from.data()));
    stream.avail_in = static_cast<uInt>(from.size());
    do {
      stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream.avail_out = static_cast<uInt>(buffer.size());
      deflate(&stream, flush);
      out.append(buffer.data(), buffer.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  };
  push(text, Z_NO_FLUSH);
  const std::string piece(1 << 20, '\0');
  for (; zeros >= piece.size(); zeros -= piece.size()) push(piece, Z_NO_FLUSH);
  push(std::string(zeros, '\0'), Z_NO_FLUSH);
  push("", Z_FINISH);
  deflateEnd(&stream);
  return out;
}

inline std::string npy_header(const std::string& shape, const std::string& descr = "<f4") {
  std::string literal =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, shape);
  literal.resize((literal.size() + 10 + 63) / 64 * 64 - 10, ' ');
  std::string out("\x93NUMPY\x01\x00", 8);
  put(out, literal.size(), 2);
  return out + literal;
}

inline std::uint32_t checksum(const std::string& text) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size()));
}

struct Part {
  std::string name;
  std::string packed;
  std::uint64_t size = 0;  // as the directory says it
  int method = 8;
  std::uint32_t checksum = 0;
  // Another local header than its own, which is then left out, with as many packed bytes.
  std::optional<std::uint64_t> place = std::nullopt;
  std::uint64_t packed_there = 0;
};

inline Part stored(const std::string& name, const std::string& content) {
  return {name, content, content.size(), 0, checksum(content)};
}

inline std::string zip_of(const std::vector<Part>& parts) {
  std::string out;
  std::string directory;
  for (const Part& part : parts) {
    std::string description;
    put(description, 20, 2);
    put(description, 0, 2);
    put(description, static_cast<std::uint64_t>(part.method), 2);
    put(description, 0, 4);
    put(description, part.checksum, 4);
    put(description, part.place ? part.packed_there : part.packed.size(), 4);
    put(description, part.size, 4);
    put(description, part.name.size(), 2);
    put(description, 0, 2);
    put(directory, 0x02014b50, 4);
    put(directory, 20, 2);
    directory += description;
    put(directory, 0, 2 + 2 + 2 + 4);
    put(directory, part.place.value_or(out.size()), 4);
    directory += part.name;
    if (part.place) continue;
    put(out, 0x04034b50, 4);
    out += description + part.name + part.packed;
  }
  const std::uint64_t place = out.size();
  out += directory;
  put(out, 0x06054b50, 4);
  put(out, 0, 4);
  put(out, parts.size(), 2);
  put(out, parts.size(), 2);
  put(out, directory.size(), 4);
  put(out, place, 4);
  put(out, 0, 2);
  return out;
}

}  // namespace plimsoll::store::zip_pieces
