#include "plimsoll/store/part_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "plimsoll/base/file.h"
#include "plimsoll/base/random.h"
#include "plimsoll/store/safetensors.h"
#include "plimsoll/store/testing/arrays.h"
#include "plimsoll/store/weights_file.h"

namespace plimsoll::store {
namespace {

std::filesystem::path file_of(const std::string& name, std::size_t bytes) {
  std::string content(bytes, '\0');
  Random random(1);
  for (std::size_t i = 0; i + 8 <= bytes; i += 8) {
    const std::uint64_t word = random.next();
    std::memcpy(content.data() + i, &word, 8);
  }
  auto path = std::filesystem::path(testing::TempDir()) / name;
  EXPECT_TRUE(write_file(path, content));
  return path;
}

TEST(PartReader, ReadsTheSameBytesInEveryWay) {
  constexpr std::size_t kBytes = (10 << 20) + 333;
  const auto path = file_of("parts.bin", kBytes);
  const auto content = read_file(path);
  ASSERT_TRUE(content);
  const auto reader = PartReader::open(path);
  ASSERT_TRUE(reader);
  for (const ReadMethod method : {ReadMethod::kCached, ReadMethod::kDirect, ReadMethod::kNetwork}) {
    for (const auto& [begin, end] :
         std::vector<std::pair<std::size_t, std::size_t>>{{0, kBytes},
                                                          {1, kBytes - 1},
                                                          {4095, 4097},
                                                          {4 << 20, 8 << 20},
                                                          {kBytes - 1, kBytes},
                                                          {(4 << 20) - 7, (8 << 20) + 9},
                                                          {5, 5}}) {
      std::vector<std::byte> out(end - begin, std::byte{0x55});
      const Status read = reader->read(begin, out, method);
      ASSERT_TRUE(read) << name(method) << ": " << read.error().message;
      const auto wanted = std::as_bytes(std::span(*content)).subspan(begin, end - begin);
      EXPECT_TRUE(std::equal(out.begin(), out.end(), wanted.begin(), wanted.end()))
          << name(method) << " " << begin;
    }
  }
}

// Parts that share blocks, lie in several, overlap, and are empty; memory at any address.
TEST(PartReader, ReadsManyPartsAsOneQueue) {
  constexpr std::size_t kBytes = (21 << 20) + 333;
  const auto path = file_of("many.bin", kBytes);
  const auto content = read_file(path);
  ASSERT_TRUE(content);
  const auto reader = PartReader::open(path);
  ASSERT_TRUE(reader);
  const std::vector<std::pair<std::size_t, std::size_t>> places = {
      {9 << 20, kBytes},   {3, 100},     {100, 4 << 20},      {(4 << 20) - 9, 9 << 20}, {77, 77},
      {8 << 20, 16 << 20}, {4096, 8192}, {kBytes - 5, kBytes}};
  for (const ReadMethod method : {ReadMethod::kCached, ReadMethod::kDirect, ReadMethod::kNetwork}) {
    for (const std::size_t shift : {0, 8, 1}) {
      for (const std::size_t staging : {0, 1, 5 << 20}) {
        SCOPED_TRACE(std::string(name(method)) + " " + std::to_string(shift) + " " +
                     std::to_string(staging));
        std::vector<std::vector<std::byte>> memory;
        std::vector<PartReader::Part> parts;
        for (const auto& [begin, end] : places) {
          memory.emplace_back(end - begin + shift + 1, std::byte{0x55});
          parts.push_back({begin, std::span(memory.back()).subspan(shift, end - begin)});
        }
        std::vector<int> done(parts.size());
        std::vector<std::byte> room(staging);
        const auto given = staging == 1 ? PartReader::Staging() : PartReader::Staging(room);
        const Status read = reader->read_all(
            parts, method,
            [&](std::size_t i, std::size_t) {
              ++done[i];
              return Status();
            },
            given);
        ASSERT_TRUE(read) << read.error().message;
        EXPECT_EQ(done, std::vector<int>(parts.size(), 1));
        for (std::size_t i = 0; i < parts.size(); ++i) {
          const auto wanted = std::as_bytes(std::span(*content))
                                  .subspan(places[i].first, places[i].second - places[i].first);
          EXPECT_TRUE(
              std::equal(parts[i].out.begin(), parts[i].out.end(), wanted.begin(), wanted.end()))
              << i;
          EXPECT_EQ(memory[i].back(), std::byte{0x55}) << i;
        }
      }
    }
  }
}

// Parts of all lengths that share pages, overlap or leave gaps, in any order, into memory that has
// its pages where the file has them and into memory that has not. Nothing beside them is written.
TEST(PartReader, WritesNothingBesideTheParts) {
  constexpr std::size_t kBytes = (6 << 20) + 333;
  constexpr std::size_t kFilePage = 4096;
  const auto path = file_of("straight.bin", kBytes);
  const auto content = read_file(path);
  ASSERT_TRUE(content);
  const auto reader = PartReader::open(path);
  ASSERT_TRUE(reader);
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<std::size_t> begins;
    std::vector<std::vector<std::byte>> memory;
    std::vector<PartReader::Part> parts;
    for (int i = 0; i < 10; ++i) {
      std::size_t begin = random.next() % (kBytes - 1);
      if (i % 3 != 0) begin = begin / kFilePage * kFilePage;
      const std::size_t most = std::min<std::size_t>(kBytes - begin, i % 2 == 0 ? 3 << 20 : 200000);
      const std::size_t bytes = 1 + random.next() % most;
      memory.emplace_back(bytes + 4 * kFilePage, std::byte{0x55});
      const auto address = reinterpret_cast<std::uintptr_t>(memory.back().data());
      std::size_t at = kFilePage + (begin - address) % kFilePage;
      if (i % 5 == 4) at += 8;
      begins.push_back(begin);
      parts.push_back({begin, std::span(memory.back()).subspan(at, bytes)});
    }
    const auto done = [](std::size_t, std::size_t) { return Status(); };
    ASSERT_TRUE(reader->read_all(parts, ReadMethod::kDirect, done));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::span<std::byte> out = parts[i].out;
      const auto wanted = std::as_bytes(std::span(*content)).subspan(begins[i], out.size());
      EXPECT_TRUE(std::equal(out.begin(), out.end(), wanted.begin(), wanted.end())) << i;
      const auto before = out.data() - memory[i].data();
      const auto is_untouched = [](std::byte byte) { return byte == std::byte{0x55}; };
      EXPECT_TRUE(std::all_of(memory[i].begin(), memory[i].begin() + before, is_untouched));
      EXPECT_TRUE(std::all_of(memory[i].begin() + before + static_cast<std::ptrdiff_t>(out.size()),
                              memory[i].end(), is_untouched));
    }
  }
}

// Pieces that blocks cut, at odd places; each is told once, and when it is there.
TEST(PartReader, TellsPiecesOfAPart) {
  constexpr std::size_t kBytes = (13 << 20) + 333;
  const auto path = file_of("pieces.bin", kBytes);
  const auto content = read_file(path);
  ASSERT_TRUE(content);
  const auto reader = PartReader::open(path);
  ASSERT_TRUE(reader);
  std::vector<std::byte> memory(kBytes, std::byte{0x55});
  const std::vector<PartReader::Part> parts = {
      {0, std::span(memory).first(1000)},
      {1000, std::span(memory).subspan(1000, (9 << 20) + 1), 1 << 20},
      {(9 << 20) + 1001, std::span(memory).subspan((9 << 20) + 1001), 5 << 20}};
  for (const ReadMethod method : {ReadMethod::kCached, ReadMethod::kDirect, ReadMethod::kNetwork}) {
    SCOPED_TRACE(name(method));
    std::fill(memory.begin(), memory.end(), std::byte{0x55});
    std::vector<std::vector<int>> told = {{0}, std::vector<int>(10), {0}};
    const Status read = reader->read_all(parts, method, [&](std::size_t i, std::size_t piece) {
      ++told[i].at(piece);
      const std::size_t size = parts[i].piece == 0 ? parts[i].out.size() : parts[i].piece;
      const auto there =
          parts[i].out.subspan(piece * size, std::min(size, parts[i].out.size() - piece * size));
      const auto wanted =
          std::as_bytes(std::span(*content)).subspan(parts[i].offset + piece * size, there.size());
      EXPECT_TRUE(std::equal(there.begin(), there.end(), wanted.begin(), wanted.end()));
      return Status();
    });
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(told, (std::vector<std::vector<int>>{{1}, std::vector<int>(10, 1), {1}}));
  }
}

TEST(PartReader, AnErrorOfOnePartEndsTheReadingOfMany) {
  const auto path = file_of("ends.bin", 9 << 20);
  const auto reader = PartReader::open(path);
  ASSERT_TRUE(reader);
  std::vector<std::byte> memory(9 << 20);
  const std::vector<PartReader::Part> parts = {{0, std::span(memory).first(5 << 20)},
                                               {5 << 20, std::span(memory).subspan(5 << 20)}};
  for (const ReadMethod method : {ReadMethod::kCached, ReadMethod::kDirect}) {
    int calls = 0;
    const Status read = reader->read_all(parts, method, [&](std::size_t, std::size_t) -> Status {
      ++calls;
      return bad_input("no code");
    });
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().message, "no code");
    EXPECT_EQ(calls, 1);
  }
}

TEST(PartReader, AFileThatWasJustWrittenIsCached) {
  const auto path = file_of("fresh.bin", (9 << 20) + 5);
  const auto file = MappedFile::open(path);
  const auto reader = PartReader::open(path);
  ASSERT_TRUE(file && reader);
  for (const std::size_t begin : {std::size_t{0}, std::size_t{4097}})
    EXPECT_EQ(reader->method_for(begin, file->bytes().subspan(begin), file->bytes().size()),
              ReadMethod::kCached);
}

TEST(PartReader, SaysThatAFileBecameShorter) {
  const auto path = file_of("short.bin", 9 << 20);
  const auto reader = PartReader::open(path);
  ASSERT_TRUE(reader);
  std::filesystem::resize_file(path, 5 << 20);
  std::vector<std::byte> out(9 << 20);
  for (const ReadMethod method : {ReadMethod::kCached, ReadMethod::kDirect}) {
    const Status read = reader->read(0, out, method);
    ASSERT_FALSE(read) << name(method);
    EXPECT_NE(read.error().message.find("it became shorter while it was read"), std::string::npos);
  }
}

TEST(PartReader, ACutFileIsAnErrorAndNoSignal) {
  std::vector<SafetensorsEntry> entries = {{"w", Element::kF32, {1 << 20}, 0, 0}};
  ASSERT_TRUE(place_safetensors(entries));
  const auto header = safetensors_header(entries, {});
  ASSERT_TRUE(header);
  const auto path = std::filesystem::path(testing::TempDir()) / "cut.safetensors";
  auto writer = SafetensorsWriter::create(path, *header);
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->write(std::vector<std::byte>(4 << 20, std::byte{1})));
  ASSERT_TRUE(writer->commit());
  const auto file = WeightsFile::open(path);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->read_method(*file->find("w")), ReadMethod::kCached);
  std::vector<std::byte> out(4 << 20);
  ASSERT_TRUE(file->read_into(*file->find("w"), out));
  EXPECT_EQ(out, std::vector<std::byte>(4 << 20, std::byte{1}));
  std::filesystem::resize_file(path, 1 << 20);
  EXPECT_FALSE(file->read_into(*file->find("w"), out));
}

}  // namespace
}  // namespace plimsoll::store
