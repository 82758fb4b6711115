#include "plimsoll/base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "plimsoll/base/file.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

mode_t mode_of(const fs::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

class OutputFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / fmt::format("plimsoll_output_{}", ::getpid());
    fs::create_directories(folder_);
  }
  void TearDown() override {
    fs::permissions(folder_, fs::perms::owner_all);
    fs::remove_all(folder_);
  }
  std::size_t names() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }

  // What a child that works on files leaves when `signal` reaches it while it waits inside `work`.
  template <typename Work>
  int end_by_signal(int signal, const Work& work) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(signal, SIG_DFL);  // nohup has SIGHUP ignored
      const auto wait_here = [&] {
        EXPECT_EQ(::write(ready[1], "x", 1), 1);
        while (true) ::pause();
      };
      work(wait_here);
      ::_exit(9);
    }
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::kill(child, signal);
    int status = 0;
    ::waitpid(child, &status, 0);
    ::close(ready[0]);
    ::close(ready[1]);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
  }

  fs::path folder_;
};

TEST_F(OutputFiles, ANewFileHasTheModeThatTheUmaskLeaves) {
  const mode_t before = ::umask(077);
  ASSERT_TRUE(write_file(folder_ / "private", "x"));
  ::umask(022);
  ASSERT_TRUE(write_file(folder_ / "public", "x"));
  ::umask(before);
  EXPECT_EQ(mode_of(folder_ / "private"), 0600u);
  EXPECT_EQ(mode_of(folder_ / "public"), 0644u);
}

TEST_F(OutputFiles, AnExistingFileKeepsItsMode) {
  for (const mode_t mode : {0600u, 0640u, 0666u, 0755u}) {
    ASSERT_TRUE(write_file(folder_ / "a", "old"));
    ASSERT_EQ(::chmod((folder_ / "a").c_str(), mode), 0);
    ASSERT_TRUE(write_file(folder_ / "a", "new"));
    EXPECT_EQ(mode_of(folder_ / "a"), mode);
    EXPECT_EQ(*read_file(folder_ / "a"), "new");
  }
  EXPECT_EQ(names(), 1u);
}

TEST_F(OutputFiles, LinksStayAndWhatTheyLeadToIsWritten) {
  fs::create_directories(folder_ / "far");
  ASSERT_TRUE(write_file(folder_ / "far" / "file", "old"));
  fs::create_symlink("far/file", folder_ / "one");
  fs::create_symlink("one", folder_ / "two");
  fs::create_symlink("far/made", folder_ / "dangling");
  ASSERT_TRUE(write_file(folder_ / "two", "new"));
  ASSERT_TRUE(write_file(folder_ / "dangling", "made"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "one") && fs::is_symlink(folder_ / "two") &&
              fs::is_symlink(folder_ / "dangling"));
  EXPECT_EQ(*read_file(folder_ / "far" / "file"), "new");
  EXPECT_EQ(*read_file(folder_ / "far" / "made"), "made");
  fs::create_symlink("round", folder_ / "round");
  EXPECT_NE(write_file(folder_ / "round", "x").error().message.find("round: cannot write"),
            std::string::npos);
}

TEST_F(OutputFiles, AStrangersLinkInAFolderOpenToAllIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a link that belongs to somebody else";
  ASSERT_TRUE(write_file(folder_ / "precious", "old"));
  fs::create_directories(folder_ / "open");
  ASSERT_EQ(::chmod((folder_ / "open").c_str(), 01777), 0);
  fs::create_symlink("../precious", folder_ / "open" / "link");
  ASSERT_TRUE(write_file(folder_ / "open" / "link", "mine"));
  ASSERT_EQ(::lchown((folder_ / "open" / "link").c_str(), 12345, 12345), 0);
  EXPECT_FALSE(write_file(folder_ / "open" / "link", "stolen"));
  EXPECT_EQ(*read_file(folder_ / "precious"), "mine");
}

TEST_F(OutputFiles, AFifoStaysAFifoAndItsReaderGetsTheBytes) {
  const fs::path fifo = folder_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  ASSERT_TRUE(check_writable(fifo));  // does not wait for the reader
  std::string got;
  std::thread reader([&] {
    const int from = ::open(fifo.c_str(), O_RDONLY);
    char piece[64];
    for (ssize_t n = 0; (n = ::read(from, piece, sizeof piece)) > 0;)
      got.append(piece, static_cast<std::size_t>(n));
    ::close(from);
  });
  EXPECT_TRUE(write_file(fifo, "through"));
  reader.join();
  EXPECT_EQ(got, "through");
  EXPECT_TRUE(fs::is_fifo(fifo));
  EXPECT_EQ(names(), 1u);
}

TEST_F(OutputFiles, DevicesAndDescriptorsAreWrittenThrough) {
  // Devices of our own where we may make them: a mistake here must not cost the machine its
  // /dev/null.
  if (::mknod((folder_ / "null").c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0 &&
      ::mknod((folder_ / "full").c_str(), S_IFCHR | 0600, makedev(1, 7)) == 0) {
    EXPECT_TRUE(write_file(folder_ / "null", "x"));
    EXPECT_TRUE(fs::is_character_file(folder_ / "null"));
    EXPECT_NE(write_file(folder_ / "full", "x").error().message.find("No space left"),
              std::string::npos);
    EXPECT_TRUE(fs::is_character_file(folder_ / "full"));
  }
  // What a shell appends to is appended to, not replaced.
  ASSERT_TRUE(write_file(folder_ / "log", "first "));
  const int log = ::open((folder_ / "log").c_str(), O_WRONLY | O_APPEND);
  EXPECT_TRUE(write_file(fmt::format("/dev/fd/{}", log), "second "));
  fs::create_symlink(fmt::format("/proc/self/fd/{}", log), folder_ / "link");
  EXPECT_TRUE(write_file(folder_ / "link", "third"));
  ::close(log);
  EXPECT_EQ(*read_file(folder_ / "log"), "first second third");
  EXPECT_FALSE(write_file(fmt::format("/dev/fd/{}", log), "closed"));
  EXPECT_FALSE(check_writable(fmt::format("/dev/fd/{}", log)));
}

TEST_F(OutputFiles, WhatCannotBeWrittenIsSaidBeforeAndNamesTheFile) {
  for (const fs::path& path : {folder_, folder_ / "no" / "where", folder_ / ""}) {
    const Status checked = check_writable(path);
    ASSERT_FALSE(checked) << path;
    EXPECT_EQ(checked.error().code, ErrorCode::kBadInput);
    EXPECT_NE(checked.error().message.find(path.string()), std::string::npos);
    EXPECT_FALSE(write_file(path, "x"));
  }
  EXPECT_TRUE(check_writable(folder_ / "new", 1));
  EXPECT_NE(
      check_writable(folder_ / "new", std::uint64_t{1} << 62).error().message.find("has room for"),
      std::string::npos);
  EXPECT_EQ(names(), 0u);
}

TEST_F(OutputFiles, AFileThatWeMayNotWriteIsNotReplaced) {
  ASSERT_TRUE(write_file(folder_ / "a", "old"));
  ASSERT_EQ(::chmod((folder_ / "a").c_str(), 0444), 0);
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  const uid_t before = ::geteuid();
  ASSERT_TRUE(before != 0 || ::seteuid(12345) == 0);  // root may write everything
  const Status written = write_file(folder_ / "a", "new");
  const Status beside = write_file(folder_ / "b", "new");
  ASSERT_TRUE(before != 0 || ::seteuid(0) == 0);
  EXPECT_FALSE(written);
  EXPECT_TRUE(beside);
  EXPECT_EQ(*read_file(folder_ / "a"), "old");
}

TEST_F(OutputFiles, ALongNameHasRoomForItsTemporaryOne) {
  const std::string longest(255, 'n');
  EXPECT_TRUE(write_file(folder_ / longest, "x"));
  EXPECT_EQ(*read_file(folder_ / longest), "x");
}

TEST_F(OutputFiles, WithoutCommitNothingHasHappened) {
  ASSERT_TRUE(write_file(folder_ / "a", "old"));
  {
    auto file = OutputFile::create(folder_ / "a");
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->write(std::string_view("new")));
    EXPECT_EQ(file->bytes_written(), 3u);
    EXPECT_EQ(names(), 2u);
  }
  EXPECT_EQ(*read_file(folder_ / "a"), "old");
  EXPECT_EQ(names(), 1u);
}

TEST_F(OutputFiles, ASignalLeavesTheOldFileAndNothingElse) {
  ASSERT_TRUE(write_file(folder_ / "a", "old"));
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const int ended = end_by_signal(signal, [&](const auto& wait_here) {
      auto file = OutputFile::create(folder_ / "a");
      auto other = OutputFile::create(folder_ / "b");
      if (!file->write(std::string_view("half of")) || !other->write(std::string_view("it")))
        ::_exit(8);
      wait_here();
    });
    EXPECT_EQ(ended, signal);
    EXPECT_EQ(*read_file(folder_ / "a"), "old");
    EXPECT_EQ(names(), 1u);
  }
}

TEST_F(OutputFiles, HandlersOfOthersAreLeftAlone) {
  struct sigaction now {};
  {
    const auto file = OutputFile::create(folder_ / "a");
    ::sigaction(SIGTERM, nullptr, &now);
    EXPECT_NE(now.sa_handler, SIG_DFL);
  }
  ::sigaction(SIGTERM, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_DFL);
  std::signal(SIGTERM, SIG_IGN);
  {
    const auto file = OutputFile::create(folder_ / "a");
    ::sigaction(SIGTERM, nullptr, &now);
    EXPECT_EQ(now.sa_handler, SIG_IGN);
  }
  std::signal(SIGTERM, SIG_DFL);
}

class FileSets : public OutputFiles {
 protected:
  // Files "a", "b" and their index with this content, up to the commit.
  std::vector<OutputFile> written(const std::string& content) const {
    std::vector<OutputFile> out;
    for (const char* name : {"a", "b", "index"}) {
      out.push_back(OutputFile::create(folder_ / name).value());
      EXPECT_TRUE(out.back().write(content));
    }
    return out;
  }
  std::string contents() const {
    std::string out;
    for (const char* name : {"a", "b", "index"})
      out += read_file(folder_ / name).value_or("none") + " ";
    return out;
  }
};

TEST_F(FileSets, AreReplacedTogether) {
  for (const char* content : {"old", "new"}) {
    auto files = written(content);
    ASSERT_TRUE(commit_together(files));
  }
  EXPECT_EQ(contents(), "new new new ");
  EXPECT_EQ(names(), 3u);
}

TEST_F(FileSets, ARenameThatFailsIsUndoneWithThoseBeforeIt) {
  auto old = written("old");
  ASSERT_TRUE(commit_together(old));
  for (const std::string failing : {"a", "b", "index"}) {
    auto files = written("new");
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().filename().string().starts_with("." + failing)) fs::remove(entry.path());
    }
    const Status done = commit_together(files);
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find((folder_ / failing).string()), std::string::npos)
        << done.error().message;
    EXPECT_EQ(contents(), "old old old ");
  }
  EXPECT_EQ(names(), 3u);
}

TEST_F(FileSets, AFolderThatComesBetweenIsNotReplaced) {
  auto files = written("new");
  fs::create_directories(folder_ / "b" / "precious");
  EXPECT_FALSE(commit_together(files));
  files.clear();
  EXPECT_TRUE(fs::is_directory(folder_ / "b" / "precious"));
  EXPECT_EQ(names(), 1u);
}

TEST_F(FileSets, ASignalDuringTheWritingChangesNothing) {
  auto old = written("old");
  ASSERT_TRUE(commit_together(old));
  EXPECT_EQ(end_by_signal(SIGTERM,
                          [&](const auto& wait_here) {
                            auto files = written("new");
                            wait_here();
                          }),
            SIGTERM);
  EXPECT_EQ(contents(), "old old old ");
  EXPECT_EQ(names(), 3u);
}

TEST_F(FileSets, ASignalWaitsUntilTheNamesAreGiven) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto files = written("new");
    {
      const SignalsWait wait;
      ::raise(SIGTERM);
      if (!commit_together(files)) ::_exit(8);
      if (contents() != "new new new ") ::_exit(7);
    }
    ::_exit(9);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
  EXPECT_EQ(contents(), "new new new ");
  EXPECT_EQ(names(), 3u);
}

}  // namespace
}  // namespace plimsoll
