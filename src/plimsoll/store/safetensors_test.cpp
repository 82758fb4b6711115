#include "plimsoll/store/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "plimsoll/base/file.h"
#include "plimsoll/base/random.h"
#include "plimsoll/base/testing/test_paths.h"
#include "plimsoll/store/testing/arrays.h"

namespace plimsoll::store {
namespace {

const std::filesystem::path kData = test_source_dir() / "src/plimsoll/store/testdata";

std::vector<std::byte> from_hex(const std::string& digits) {
  std::vector<std::byte> out(digits.size() / 2);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<std::byte>(std::stoi(digits.substr(2 * i, 2), nullptr, 16));
  return out;
}

// tools/references/safetensors_verdicts.py asked the reference.
TEST(Safetensors, HasTheReferencesVerdictOnEveryHostileFile) {
  std::ifstream table(kData / "safetensors_verdicts.txt");
  int accepted = 0;
  int refused = 0;
  for (std::string line; std::getline(table, line);) {
    std::istringstream fields(line);
    std::string name, verdict, digits;
    std::getline(fields, name, '\t');
    std::getline(fields, verdict, '\t');
    std::getline(fields, digits, '\t');
    const auto file = from_hex(digits);
    const auto read = read_safetensors(file);
    EXPECT_EQ(read ? "accept" : "refuse", verdict)
        << name << (read ? "" : ": " + read.error().message);
    if (!read) {
      EXPECT_EQ(read.error().code, ErrorCode::kBadInput);
    }
    ++(verdict == "accept" ? accepted : refused);
  }
  EXPECT_GE(accepted, 20);
  EXPECT_GE(refused, 60);
}

// Read and written again, a file of the reference's writer is the same byte by byte.
TEST(Safetensors, WritesTheBytesThatTheReferenceWrites) {
  const auto file = MappedFile::open(kData / "types.safetensors");
  ASSERT_TRUE(file);
  auto header = read_safetensors(file->bytes());
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->entries.size(), 29u);
  std::vector<SafetensorsEntry> entries = header->entries;
  Random(3).shuffle(entries);
  ASSERT_TRUE(place_safetensors(entries));
  const auto text = safetensors_header(entries, header->metadata);
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, header->text);
  const auto path = std::filesystem::path(testing::TempDir()) / "again.safetensors";
  auto writer = SafetensorsWriter::create(path, *text);
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->write(file->bytes().subspan(header->data_begin)));
  ASSERT_TRUE(writer->commit());
  const auto again = read_file(path);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, file->text());
}

TEST(Safetensors, SaysWhatIsWrong) {
  const auto message = [](const std::string& header, std::size_t data) {
    std::string file(8, '\0');
    const std::uint64_t length = header.size();
    std::memcpy(file.data(), &length, 8);
    const auto read = read_safetensors(bytes_of(file + header + std::string(data, 'x')));
    return read ? "" : read.error().message;
  };
  EXPECT_EQ(message(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
            "tensor 'w': F32[2] needs 8 bytes, data_offsets give 4");
  EXPECT_EQ(message(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 3),
            "its tensors have 4 bytes, the file has 3 for them: it is cut off");
  EXPECT_EQ(message(R"({"w":{"dtype":"X","shape":[1],"data_offsets":[0,4]}})", 4),
            "tensor 'w': header, byte 17: there is no dtype 'X'");
}

TEST(Safetensors, RefusesToWriteWhatItCouldNotRead) {
  std::vector<SafetensorsEntry> twice = {{"a", Element::kF32, {1}, 0, 0},
                                         {"a", Element::kI8, {1}, 0, 0}};
  EXPECT_FALSE(place_safetensors(twice));
  EXPECT_FALSE(
      safetensors_header(std::vector<SafetensorsEntry>{{"\xff", Element::kF32, {1}, 0, 4}}, {}));
  EXPECT_FALSE(safetensors_header(
      std::vector<SafetensorsEntry>{{"__metadata__", Element::kF32, {1}, 0, 4}}, {}));
}

// Any edit of a right file is an error or a right file: no crash, nothing outside.
TEST(Safetensors, SurvivesEveryEdit) {
  const auto file = MappedFile::open(kData / "types.safetensors");
  ASSERT_TRUE(file);
  Random random(9);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::byte> bytes(file->bytes().begin(), file->bytes().end());
    for (std::int64_t i = random.between(1, 3); i > 0; --i)
      bytes[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(bytes.size())))] =
          static_cast<std::byte>(random.below(256));
    if (random.chance(0.1))
      bytes.resize(static_cast<std::size_t>(random.below(static_cast<std::int64_t>(bytes.size()))));
    const auto read = read_safetensors(bytes);
    refused += read ? 0 : 1;
    if (!read) continue;
    for (const auto& entry : read->entries) ASSERT_LE(read->data_begin + entry.end, bytes.size());
  }
  EXPECT_GE(refused, 1000);
}

}  // namespace
}  // namespace plimsoll::store
