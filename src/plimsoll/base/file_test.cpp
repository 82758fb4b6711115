#include "plimsoll/base/file.h"

#include <filesystem>

#include <gtest/gtest.h>

namespace plimsoll {
namespace {

class Files : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) / "plimsoll_file_test";
};

TEST_F(Files, WrittenFileReadsBackAndLeavesNoTemporary) {
  ASSERT_TRUE(write_file(folder_ / "a", "hello"));
  ASSERT_TRUE(write_file(folder_ / "a", "again"));
  EXPECT_EQ(*read_file(folder_ / "a"), "again");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(Files, ErrorsNameTheFile) {
  EXPECT_NE(read_file(folder_ / "none").error().message.find("none"), std::string::npos);
  EXPECT_EQ(read_file(folder_).error().code, ErrorCode::kBadInput);
  EXPECT_FALSE(write_file(folder_ / "no" / "where", "x"));
}

TEST_F(Files, EmptyFileMapsToNoBytes) {
  ASSERT_TRUE(write_file(folder_ / "empty", ""));
  EXPECT_TRUE(MappedFile::open(folder_ / "empty")->bytes().empty());
}

}  // namespace
}  // namespace plimsoll
