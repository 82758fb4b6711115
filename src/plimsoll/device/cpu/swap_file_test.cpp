#include "plimsoll/device/cpu/swap_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
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
