#include "plimsoll/store/file_pages.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <vector>

namespace plimsoll::store {
namespace {

constexpr std::size_t kPage = 4096;

// Memory as an arena has it, and a file of numbered bytes.
class FilePagesTest : public ::testing::Test {
 public:
  ~FilePagesTest() override {
    ::munmap(memory_, 10 * kPage);
    ::close(descriptor_);
    std::filesystem::remove(path_);
  }

 protected:
  FilePagesTest() {
    path_ =
        std::filesystem::temp_directory_path() / ("file_pages_test." + std::to_string(::getpid()));
    std::vector<char> content(10 * kPage);
    for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i / 64 % 251);
    std::ofstream(path_, std::ios::binary).write(content.data(), 10 * kPage);
    descriptor_ = ::open(path_.c_str(), O_RDONLY);
    memory_ = static_cast<std::byte*>(
        ::mmap(nullptr, 10 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  static std::byte in_file(std::size_t at) { return static_cast<std::byte>(at / 64 % 251); }

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::byte* memory_ = nullptr;
};

TEST_F(FilePagesTest, LaysWholePagesAndLeavesTheEnds) {
  // From the middle of the file's page 1 to the middle of its page 4.
  const std::span<std::byte> to(memory_ + kPage / 2, 3 * kPage);
  std::fill(to.begin(), to.end(), std::byte{255});
  {
    const auto pages = FilePages::lay(descriptor_, kPage + kPage / 2, to);
    ASSERT_TRUE(pages);
    ASSERT_TRUE(*pages);
    EXPECT_EQ((*pages)->pages().data(), memory_ + kPage);
    EXPECT_EQ((*pages)->pages().size(), 2 * kPage);
    for (std::size_t i = 0; i < 2 * kPage; ++i)
      ASSERT_EQ(memory_[kPage + i], in_file(2 * kPage + i)) << i;
    EXPECT_EQ(memory_[kPage - 1], std::byte{255});
    EXPECT_EQ(memory_[3 * kPage], std::byte{255});
    EXPECT_FALSE((*pages)->was_cut());
  }
  // Plain memory again.
  EXPECT_EQ(memory_[kPage], std::byte{0});
  memory_[kPage] = std::byte{7};
  EXPECT_EQ(memory_[kPage], std::byte{7});
}

TEST_F(FilePagesTest, RefusesPlacesThatDoNotAgree) {
  const auto other = FilePages::lay(descriptor_, 64, {memory_, 4 * kPage});
  ASSERT_TRUE(other);
  EXPECT_EQ(*other, nullptr);
  const auto little = FilePages::lay(descriptor_, 100, {memory_ + 100, kPage});
  ASSERT_TRUE(little);
  EXPECT_EQ(*little, nullptr);
}

TEST_F(FilePagesTest, AFileThatIsCutReadsAsZeroAndIsSaid) {
  const auto pages = FilePages::lay(descriptor_, 0, {memory_, 10 * kPage});
  ASSERT_TRUE(pages && *pages);
  ASSERT_EQ(::truncate(path_.c_str(), 3 * kPage), 0);
  const volatile std::byte* at = memory_;
  const std::byte inside = at[2 * kPage];
  EXPECT_EQ(inside, in_file(2 * kPage));
  EXPECT_FALSE((*pages)->was_cut());
  const std::byte behind = at[8 * kPage + 5];
  EXPECT_EQ(behind, std::byte{0});
  EXPECT_TRUE((*pages)->was_cut());
}

TEST_F(FilePagesTest, OtherBusErrorsStillEndTheProgram) {
  const auto pages = FilePages::lay(descriptor_, 0, {memory_, kPage});
  ASSERT_TRUE(pages && *pages);
  void* mapped = ::mmap(nullptr, 2 * kPage, PROT_READ, MAP_PRIVATE, descriptor_, 8 * kPage);
  ASSERT_NE(mapped, MAP_FAILED);
  const auto read_behind_the_end = [&] {
    if (::truncate(path_.c_str(), 0) != 0) ::_exit(1);
    ::_exit(*static_cast<const volatile char*>(mapped));
  };
#ifdef PLIMSOLL_SANITIZED
  EXPECT_DEATH(read_behind_the_end(), "BUS");  // a sanitizer reports the signal and exits
#else
  EXPECT_EXIT(read_behind_the_end(), ::testing::KilledBySignal(SIGBUS), "");
#endif
  ::munmap(mapped, 2 * kPage);
}

}  // namespace
}  // namespace plimsoll::store
