#include "plimsoll/store/data_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "plimsoll/base/file.h"

namespace plimsoll::store {
namespace {

namespace fs = std::filesystem;

class DataFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / fmt::format("plimsoll_data_{}", ::getpid());
    fs::create_directories(root_ / "model/sub");
    ASSERT_TRUE(write_file(root_ / "secret", "secret"));
    ASSERT_TRUE(write_file(root_ / "model/weights", "0123456789"));
    ASSERT_TRUE(write_file(root_ / "model/sub/more", "abc"));
    fs::create_symlink(root_ / "secret", root_ / "model/link");
    fs::create_directory_symlink(root_, root_ / "model/up");
  }
  void TearDown() override { fs::remove_all(root_); }
  fs::path root_;
};

TEST_F(DataFolderTest, GivesThePartAskedFor) {
  DataFolder folder(root_ / "model");
  const auto part = folder.open("weights", 2, 3);
  ASSERT_TRUE(part) << part.error().message;
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(part->data()), part->size()), "234");
  EXPECT_TRUE(folder.open("sub/more", 0, std::nullopt));
  EXPECT_TRUE(folder.open("./sub//more", 3, 0));
}

TEST_F(DataFolderTest, RefusesEveryWayOut) {
  DataFolder folder(root_ / "model");
  for (const char* name : {"../secret", "sub/../../secret", "/etc/hostname", "link", "up/secret",
                           "", ".", "..", "sub"}) {
    EXPECT_FALSE(folder.open(name, 0, 1)) << name;
  }
}

TEST_F(DataFolderTest, FollowsLinksOnlyWhenAllowed) {
  DataFolder folder(root_ / "model", true);
  EXPECT_TRUE(folder.open("link", 0, 6));
  EXPECT_FALSE(folder.open("../secret", 0, 6));
}

TEST_F(DataFolderTest, RefusesPartsOutsideTheFile) {
  DataFolder folder(root_ / "model");
  EXPECT_FALSE(folder.open("weights", 8, 3));
  EXPECT_FALSE(folder.open("weights", -1, 3));
  EXPECT_FALSE(folder.open("weights", 11, std::nullopt));
  EXPECT_FALSE(folder.open("weights", 1, INT64_MAX));
}

}  // namespace
}  // namespace plimsoll::store
