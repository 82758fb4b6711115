#include "plimsoll/store/npy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "plimsoll/base/file.h"
#include "plimsoll/base/random.h"

namespace plimsoll::store {
namespace {

NamedTensor floats(std::string name, const ir::Shape& shape, std::vector<float> values) {
  NamedTensor out{std::move(name), {ir::DType::kF32, shape, {}}, {}};
  out.bytes.resize(values.size() * 4);
  if (!values.empty()) std::memcpy(out.bytes.data(), values.data(), out.bytes.size());
  return out;
}

std::filesystem::path temporary(const std::string& name) {
  return std::filesystem::temp_directory_path() / fmt::format("plimsoll_{}_{}", ::getpid(), name);
}

std::vector<std::byte> bytes_of(std::string_view text) {
  std::vector<std::byte> out(text.size());
  if (!out.empty()) std::memcpy(out.data(), text.data(), text.size());
  return out;
}

TEST(Npz, ReadsBackWhatItWrote) {
  const std::vector<NamedTensor> arrays = {floats("x", {2, 3}, {1, 2, 3, 4, 5, 6}), floats("scalar", {}, {7}),
                                           floats("empty", {0, 4}, {})};
  const auto path = temporary("round.npz");
  ASSERT_TRUE(write_npz(path, arrays));
  const auto read = read_npz(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, arrays);
}

TEST(Npy, TurnsFortranOrder) {
  const std::string header = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }          \n";
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size());
  file += '\0';
  file += header;
  const float columns[] = {1, 4, 2, 5, 3, 6};
  file.append(reinterpret_cast<const char*>(columns), sizeof(columns));
  const auto read = read_npy(bytes_of(file));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->bytes, floats("", {2, 3}, {1, 2, 3, 4, 5, 6}).bytes);
}

TEST(Npy, RefusesObjectsAndImpossibleShapes) {
  for (const std::string header : {"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
                                   "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
                                   "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 16), }",
                                   "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000,), }", "{", "{'descr'", ""}) {
    std::string file("\x93NUMPY\x01\x00", 8);
    file += static_cast<char>(header.size());
    file += '\0';
    file += header;
    EXPECT_FALSE(read_npy(bytes_of(file))) << header;
  }
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
    for (int k = 0; k < 3; ++k) damaged[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(damaged.size())))] = static_cast<char>(random.below(256));
    (void)read_npz_bytes(bytes_of(damaged));
  }
}

}  // namespace
}  // namespace plimsoll::store
