#include "plimsoll/device/cpu/swap_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <random>
#include <span>
#include <vector>

namespace plimsoll::device {
namespace {

std::filesystem::path fresh_folder(const char* name) {
  auto folder = std::filesystem::path(testing::TempDir()) / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  return folder;
}

TEST(SwapFile, GivesBackWhatWasWrittenAndLeavesNoName) {
  const auto folder = fresh_folder("swap_file_test");
  for (const auto& path : {folder, folder / "swap"}) {
    const auto file = SwapFile::make(path, Bytes(4096));
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_TRUE(std::filesystem::is_empty(folder));
    const std::vector<std::byte> bytes(100, std::byte{7});
    std::vector<std::byte> back(100);
    ASSERT_TRUE(file->write(Offset(50), bytes));
    ASSERT_TRUE(file->read(Offset(50), back));
    EXPECT_EQ(back, bytes);
  }
}

std::vector<std::byte> noise(std::size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> out(bytes);
  for (std::byte& byte : out) byte = static_cast<std::byte>(random());
  return out;
}

// Neighbours that share a block, at addresses and offsets of every kind, some beyond a bounce
// buffer: each must come back as it was written last, whether a block went directly or not.
TEST(SwapFile, KeepsLargeValuesApartThatShareABlock) {
  const auto file = SwapFile::make(testing::TempDir(), Bytes(16 << 20));
  ASSERT_TRUE(file) << file.error().message;
  struct Value {
    std::int64_t at;
    std::size_t bytes, shift;
  };
  const std::vector<Value> values = {{0, (1 << 20) + 100, 0},
                                     {(1 << 20) + 100, 3'000'001, 64},
                                     {(1 << 20) + 3'000'101, 256, 0},
                                     {(1 << 20) + 3'000'357, 2'500'000, 256},
                                     {8 << 20, 4 << 20, 0}};
  for (const unsigned round : {1U, 2U}) {
    std::vector<std::vector<std::byte>> written;
    for (std::size_t v = 0; v < values.size(); ++v) {
      written.push_back(noise(values[v].bytes + values[v].shift, 10 * round + unsigned(v)));
      ASSERT_TRUE(
          file->write(Offset(values[v].at), std::span(written[v]).subspan(values[v].shift)));
    }
    for (std::size_t v = 0; v < values.size(); ++v) {
      std::vector<std::byte> back(written[v].size());
      std::copy_n(written[v].begin(), values[v].shift, back.begin());
      ASSERT_TRUE(file->read(Offset(values[v].at), std::span(back).subspan(values[v].shift)));
      EXPECT_EQ(back, written[v]) << "value " << v << ", round " << round;
    }
    // What lies over all of them next has other borders.
    const std::vector<std::byte> over = noise(9 << 20, round);
    std::vector<std::byte> back(over.size());
    ASSERT_TRUE(file->write(Offset(12'345), over));
    ASSERT_TRUE(file->read(Offset(12'345), back));
    EXPECT_EQ(back, over);
  }
}

// How many pages of the open file of that size which has no name are in the page cache; -1: none.
int cached_pages_of_nameless_file(std::int64_t bytes) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (!std::filesystem::read_symlink(entry, gone).string().ends_with("(deleted)")) continue;
    const int file = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (::fstat(file, &status) != 0 || status.st_size != bytes) {
      ::close(file);
      continue;
    }
    const auto size = static_cast<std::size_t>(bytes);
    void* const pages = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
    ::close(file);
    std::vector<unsigned char> there(size / 4096);
    EXPECT_EQ(::mincore(pages, size, there.data()), 0);
    ::munmap(pages, size);
    return static_cast<int>(
        std::ranges::count_if(there, [](unsigned char page) { return page & 1; }));
  }
  return -1;
}

TEST(SwapFile, LeavesThePageCacheAlone) {
  const auto file = SwapFile::make(testing::TempDir(), Bytes(32 << 20));
  ASSERT_TRUE(file);
  if (!file->is_direct()) GTEST_SKIP() << "the file system knows no O_DIRECT";
  ASSERT_TRUE(file->write(Offset(256), noise(16 << 20, 3)));
  std::vector<std::byte> back(16 << 20);
  ASSERT_TRUE(file->read(Offset(256), back));
  const int pages = cached_pages_of_nameless_file(32 << 20);
  ASSERT_GE(pages, 0) << "the file was not found among those that are open";
  EXPECT_LE(pages, 16) << "of 4,096";
}

TEST(SwapFile, RefusesAFileThatExistsAndAFolderThatDoesNot) {
  const auto folder = fresh_folder("swap_file_refuses");
  { SwapFile::make(folder / "kept", Bytes(1)).value(); }
  std::filesystem::create_directory(folder / "sub");
  EXPECT_EQ(SwapFile::make(folder / "none" / "swap", Bytes(1)).error().code, ErrorCode::kUsage);
  EXPECT_EQ(SwapFile::make(testing::internal::GetArgvs()[0], Bytes(1)).error().code,
            ErrorCode::kUsage);
}

TEST(SwapFile, ReadingBehindTheEndIsAnErrorThatSaysSo) {
  const auto file = SwapFile::make(testing::TempDir(), Bytes(10));
  ASSERT_TRUE(file);
  std::vector<std::byte> back(100);
  const Status read = file->read(Offset(0), back);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kDevice);
}

// A limit on file sizes stands in for a full disk.
TEST(SwapFile, NoRoomIsAnErrorBeforeAnythingIsWritten) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1 << 16;
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto file = SwapFile::make(testing::TempDir(), Bytes(1 << 20));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::kDevice);
}

}  // namespace
}  // namespace plimsoll::device
