#include "plimsoll/store/npz.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "plimsoll/base/file.h"
#include "plimsoll/base/random.h"
#include "plimsoll/store/testing/arrays.h"
#include "plimsoll/store/testing/zip_pieces.h"

namespace plimsoll::store {
namespace {

std::filesystem::path temporary(const std::string& name) {
  return std::filesystem::temp_directory_path() / fmt::format("plimsoll_{}_{}", ::getpid(), name);
}

std::string refusal(const std::string& file) {
  const auto read = NpzFile::from_bytes(bytes_of(file));
  return read ? "accepted" : read.error().message;
}

TEST(Npz, ReadsBackWhatItWrote) {
  const std::vector<NamedTensor> arrays = {floats("x", {2, 3}, {1, 2, 3, 4, 5, 6}),
                                           floats("scalar", {}, {7}), floats("empty", {0, 4}, {})};
  const auto path = temporary("round.npz");
  ASSERT_TRUE(write_npz(path, arrays));
  const auto read = read_npz(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, arrays);
}

// Sizes and places that do not fit 32 bits, made of small ones by a lower limit: members from the
// first, from the second, and only the directory's end.
TEST(Npz, WritesAndReads64BitSizesAndPlaces) {
  const std::vector<NamedTensor> arrays = {floats("x", {2, 3}, {1, 2, 3, 4, 5, 6}),
                                           floats("y", {}, {7}),
                                           floats("z", {300}, std::vector<float>(300, 8))};
  const auto path = temporary("wide.npz");
  std::vector<std::string> files;
  for (const std::uint64_t narrow : {std::uint64_t{0}, std::uint64_t{160}, std::uint64_t{400},
                                     std::uint64_t{1600}, NpzWriter::kNarrow}) {
    auto out = NpzWriter::create(path, narrow);
    ASSERT_TRUE(out);
    for (const NamedTensor& array : arrays)
      ASSERT_TRUE(out->add(array.name, array.type, array.bytes));
    ASSERT_TRUE(out->commit());
    const auto read = read_npz(path);
    ASSERT_TRUE(read) << narrow << ": " << read.error().message;
    EXPECT_EQ(*read, arrays) << narrow;
    files.push_back(*read_file(path));
  }
  std::filesystem::remove(path);
  for (std::size_t i = 0; i + 1 < files.size(); ++i)
    EXPECT_GT(files[i].size(), files[i + 1].size()) << "a lower limit writes more in 64 bits";
  EXPECT_LE(files[0].size(), npz_bytes_at_most(4 * (6 + 1 + 300), 3, 1));
}

TEST(Npz, WritesManyArrays) {
  const auto path = temporary("many.npz");
  auto out = NpzWriter::create(path);
  ASSERT_TRUE(out);
  constexpr std::size_t kArrays = 70000;  // more than 16 bits count
  for (std::size_t i = 0; i < kArrays; ++i)
    ASSERT_TRUE(out->add(fmt::format("a{}", i), {ir::DType::kU8, {}, {}}, bytes_of("x")));
  ASSERT_TRUE(out->commit());
  const auto read = NpzFile::open(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->entries().size(), kArrays);
  EXPECT_NE(read->find("a69999"), nullptr);
}

TEST(Npz, ReadsDeflatedArraysOneByOne) {
  const std::string npy = zip_pieces::npy_header("(2, 3)") + std::string(24, 'a');
  const std::string zeros = zip_pieces::npy_header("(1000,)");
  const std::string file = zip_pieces::zip_of(
      {{"x.npy", zip_pieces::deflated(npy), npy.size(), 8, zip_pieces::checksum(npy)},
       {"z.npy", zip_pieces::deflated(zeros, 4000), zeros.size() + 4000, 8,
        zip_pieces::checksum(zeros + std::string(4000, '\0'))}});
  const std::vector<std::byte> bytes = bytes_of(file);
  const auto read = NpzFile::from_bytes(bytes);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_NE(read->find("x"), nullptr);
  EXPECT_EQ(read->read(*read->find("x"))->bytes, bytes_of(std::string(24, 'a')));
  EXPECT_EQ(read->read(*read->find("z"))->bytes, bytes_of(std::string(4000, '\0')));
  EXPECT_EQ(read->find("y"), nullptr);
}

TEST(Npz, MembersThatShareBytesAreRefused) {
  const std::string npy = zip_pieces::npy_header("(1000000,)");
  zip_pieces::Part first{"a.npy", zip_pieces::deflated(npy, 4000000), npy.size() + 4000000};
  zip_pieces::Part second = first;
  second.name = "b.npy";
  second.place = 0;
  second.packed_there = first.packed.size();
  EXPECT_NE(refusal(zip_pieces::zip_of({first, second})).find("share bytes"), std::string::npos);
  second.place = 5;  // a header inside the other
  EXPECT_NE(refusal(zip_pieces::zip_of({first, second})), "accepted");
}

TEST(Npz, WhatAMemberSaysIsCheckedBeforeItIsInflated) {
  const std::string npy = zip_pieces::npy_header("(8,)");
  const std::string packed = zip_pieces::deflated(npy, 32);
  EXPECT_NE(refusal(zip_pieces::zip_of({{"a.npy", packed, npy.size() + 28}}))
                .find("needs 32 bytes, the file has 28"),
            std::string::npos);
  EXPECT_NE(
      refusal(zip_pieces::zip_of({{"a.npy", packed, std::uint64_t{1} << 31}})).find("packed ones"),
      std::string::npos);
  EXPECT_NE(refusal(zip_pieces::zip_of({{"a.npy", packed, 20}})), "accepted");
  const std::string lying = zip_pieces::npy_header("(3000000000, 3000000000, 4)");
  EXPECT_NE(refusal(zip_pieces::zip_of({zip_pieces::stored("a.npy", lying)})), "accepted");
}

TEST(Npz, ArraysThatNobodyAskedForAreBounded) {
  const std::string npy = zip_pieces::npy_header("(75000000,)");
  const std::string file =
      zip_pieces::zip_of({{"a.npy", zip_pieces::deflated(npy, 300000000), npy.size() + 300000000}});
  const std::vector<std::byte> bytes = bytes_of(file);
  EXPECT_TRUE(NpzFile::from_bytes(bytes));
  EXPECT_NE(read_npz_bytes(bytes).error().message.find("at most"), std::string::npos);
}

TEST(Npz, ADamagedArrayIsNoticed) {
  const std::string npy = zip_pieces::npy_header("(2,)") + "abcdefgh";
  std::string file = zip_pieces::zip_of({zip_pieces::stored("a.npy", npy)});
  EXPECT_TRUE(read_npz_bytes(bytes_of(file)));
  file[file.find("cdef")] ^= 1;
  EXPECT_NE(read_npz_bytes(bytes_of(file)).error().message.find("checksum"), std::string::npos);
}

// Every truncation and many flipped bytes: an error or an array, never a crash.
TEST(Npz, SurvivesDamage) {
  const auto path = temporary("damage.npz");
  ASSERT_TRUE(write_npz(path, std::vector{floats("x", {4}, {1, 2, 3, 4}), floats("y", {1}, {5})}));
  const auto whole = read_file(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(whole);
  for (std::size_t size = 0; size < whole->size(); ++size) {
    EXPECT_FALSE(read_npz_bytes(bytes_of(whole->substr(0, size)))) << size;
  }
  Random random(7);
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = *whole;
    for (int k = 0; k < 3; ++k)
      damaged[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(damaged.size())))] =
          static_cast<char>(random.below(256));
    (void)read_npz_bytes(bytes_of(damaged));
  }
}

}  // namespace
}  // namespace plimsoll::store
