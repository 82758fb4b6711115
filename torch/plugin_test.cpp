// The C interface on the fake device: one process, one device, so the tests share its state and
// each leaves nothing live behind.
#include "plugin.h"

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace {

constexpr std::int64_t kCapacity = std::int64_t{1} << 30;

class Plugin : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { plimsoll_use_fake_device(kCapacity); }
  void TearDown() override {
    EXPECT_EQ(plimsoll_count(0, 0), 0);
    plimsoll_reset();
    EXPECT_EQ(plimsoll_count(0, 2), 0);
  }
  static std::string text(char* owned) {
    std::string out = owned;
    plimsoll_free_text(owned);
    return out;
  }
};

PlimsollStream stream(std::uintptr_t number) {
  return reinterpret_cast<PlimsollStream>(number);
}

// Ends as this program does when it is started anew for these tests, which are disabled else.
[[noreturn]] void end_as_process_of(const std::string& tests) {
  const pid_t child = ::fork();
  if (child != 0) {
    int status = 0;
    ::waitpid(child, &status, 0);
    std::exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  ::execl("/proc/self/exe", "torch_test", ("--gtest_filter=" + tests).c_str(),
          "--gtest_also_run_disabled_tests", "--gtest_brief=1", nullptr);
  std::exit(9);
}

TEST_F(Plugin, CountsWhatIsAllocated) {
  void* a = plimsoll_device_alloc(1000, 0, stream(0));
  EXPECT_EQ(plimsoll_count(0, 0), 1024);
  EXPECT_EQ(plimsoll_count(0, 2), 2 << 20);
  EXPECT_NE(text(plimsoll_statistics(0)).find("\"requested_bytes.all.current\":1000"),
            std::string::npos);
  plimsoll_device_free(a, 1000, 0, stream(0));
}

TEST_F(Plugin, ThrowsInsteadOfReturningNull) {
  try {
    plimsoll_device_alloc(2 * kCapacity, 0, stream(0));
    FAIL() << "expected an exception";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()).rfind("CUDA out of memory. ", 0), 0u) << error.what();
  }
  void* a = plimsoll_device_alloc(kCapacity / 2, 0, stream(0));
  EXPECT_NE(a, nullptr);
  plimsoll_device_free(a, kCapacity / 2, 0, stream(0));
}

// PyTorch is not here, but a library with its classes and its name is.
TEST_F(Plugin, ThrowsTheErrorOfPyTorchWhereItIsLoaded) {
  void* c10 = dlopen(C10_STAND_IN, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(c10, nullptr) << dlerror();
  const auto catches =
      reinterpret_cast<int (*)(void (*)(), const char*)>(dlsym(c10, "c10_catches"));
  const auto alive = reinterpret_cast<int (*)()>(dlsym(c10, "c10_errors_alive"));
  ASSERT_TRUE(catches != nullptr && alive != nullptr);
  EXPECT_EQ(
      catches([] { plimsoll_device_alloc(2 * kCapacity, 0, stream(0)); }, "CUDA out of memory. "),
      1);
  EXPECT_EQ(alive(), 0);
  dlclose(c10);
}

TEST_F(Plugin, KeepsTheMemoryFraction) {
  plimsoll_memory_fraction(0.25, 0);
  EXPECT_THROW(plimsoll_device_alloc(kCapacity / 2, 0, stream(0)), std::runtime_error);
  plimsoll_memory_fraction(1.0, 0);
  plimsoll_device_free(plimsoll_device_alloc(kCapacity / 2, 0, stream(0)), 0, 0, stream(0));
}

TEST_F(Plugin, SpillsBlocksToTheHostAndBack) {
  EXPECT_EQ(text(plimsoll_spill_refusal(0)), "");
  void* a = plimsoll_device_alloc(64 << 20, 0, stream(0));
  EXPECT_EQ(plimsoll_to_be_pinned(0, &a, 1), 64 << 20);
  EXPECT_EQ(text(plimsoll_spill(0, &a, 1)), R"({"moved":67108864,"stays":0,"problem":""})");
  EXPECT_EQ(plimsoll_count(0, 0), 64 << 20) << "still allocated";
  EXPECT_EQ(plimsoll_count(0, 2), 0) << "not of the device";
  EXPECT_EQ(plimsoll_count(0, 7), 64 << 20);
  EXPECT_EQ(text(plimsoll_restore(0, &a, 1)), R"({"moved":67108864,"stays":0,"problem":""})");
  EXPECT_EQ(plimsoll_to_be_pinned(0, &a, 1), 0) << "what was pinned is kept for the next time";
  EXPECT_EQ(plimsoll_count(0, 7), 0);
  plimsoll_device_free(a, 64 << 20, 0, stream(0));
  void* gone = a;
  EXPECT_NE(text(plimsoll_spill(0, &gone, 1)).find("no live block begins at"), std::string::npos);
}

TEST_F(Plugin, PoolsTakeWhatTheFilterSays) {
  plimsoll_begin_pool(0, {1, 7}, [](PlimsollStream which) { return which == stream(5); });
  void* inside = plimsoll_device_alloc(4096, 0, stream(5));
  plimsoll_end_pool(0, {1, 7});
  EXPECT_NE(text(plimsoll_snapshot(0)).find("\"segment_pool_id\":[1,7]"), std::string::npos);
  plimsoll_device_free(inside, 4096, 0, stream(5));
  plimsoll_release_pool(0, {1, 7});
}

TEST_F(Plugin, RecordsHistoryOnlyWhenAsked) {
  plimsoll_device_free(plimsoll_device_alloc(512, 0, stream(0)), 512, 0, stream(0));
  EXPECT_NE(text(plimsoll_snapshot(0)).find("\"trace\":[]"), std::string::npos);
  plimsoll_record_history(0, 1, 100);
  plimsoll_device_free(plimsoll_device_alloc(512, 0, stream(0)), 512, 0, stream(0));
  plimsoll_record_history(0, 0, 0);
  const std::string snapshot = text(plimsoll_snapshot(0));
  EXPECT_NE(snapshot.find("\"action\":\"alloc\""), std::string::npos);
  EXPECT_NE(snapshot.find("\"action\":\"free_completed\""), std::string::npos);
}

TEST_F(Plugin, FindsTheBaseOfAPointerInside) {
  auto* a = static_cast<char*>(plimsoll_device_alloc(100000, 0, stream(0)));
  std::size_t size = 0;
  EXPECT_EQ(plimsoll_base_alloc(a + 5000, &size), a);
  EXPECT_EQ(size, 100352u);
  plimsoll_record_stream(a, stream(3));
  plimsoll_device_free(a, 100000, 0, stream(0));
}

TEST_F(Plugin, AForkedChildFreesNothingAndSaysWhyItCannotAllocate) {
  void* a = plimsoll_device_alloc(4096, 0, stream(0));
  EXPECT_EXIT(
      {
        plimsoll_device_free(a, 4096, 0, stream(0));
        plimsoll_record_stream(a, stream(1));
        plimsoll_reset();
        try {
          plimsoll_device_alloc(4096, 0, stream(0));
        } catch (const std::runtime_error& error) {
          std::fputs(error.what(), stderr);
          std::exit(7);
        }
        std::exit(0);
      },
      ::testing::ExitedWithCode(7), "forked process");
  plimsoll_device_free(a, 4096, 0, stream(0));
}

TEST_F(Plugin, BlocksMayBeFreedWhileTheProgramEnds) {
  EXPECT_EXIT(end_as_process_of("PluginAtExit.*"), ::testing::ExitedWithCode(0), "");
}

// The capacity is read when the device is opened, so this needs a process of its own too.
TEST_F(Plugin, HoldsItsCapacityWhateverTheFraction) {
  EXPECT_EXIT(end_as_process_of("PluginCapacity.*"), ::testing::ExitedWithCode(0), "");
}

TEST(PluginCapacity, DISABLED_Holds) {
  plimsoll_use_fake_device(kCapacity);
  plimsoll_set_capacity(64 << 20);
  EXPECT_THROW(plimsoll_device_alloc(65 << 20, 0, stream(0)), std::runtime_error);
  plimsoll_memory_fraction(1.0, 0);
  EXPECT_THROW(plimsoll_device_alloc(65 << 20, 0, stream(0)), std::runtime_error);
  void* a = plimsoll_device_alloc(60 << 20, 0, stream(0));
  plimsoll_device_free(plimsoll_device_alloc(4 << 20, 0, stream(0)), 0, 0, stream(0));
  plimsoll_free_text(plimsoll_spill(0, &a, 1));
  void* b = plimsoll_device_alloc(60 << 20, 0, stream(0));
  EXPECT_EQ(plimsoll_count(0, 0), 120 << 20) << "more is in use than the device may hold";
  plimsoll_device_free(b, 0, 0, stream(0));
  plimsoll_device_free(a, 0, 0, stream(0));
}

void* left_at_exit = nullptr;

// Run in a process of its own by the test above.
TEST(PluginAtExit, DISABLED_FreesInAnExitHandler) {
  plimsoll_use_fake_device(kCapacity);
  left_at_exit = plimsoll_device_alloc(1 << 20, 0, stream(0));
  ASSERT_NE(left_at_exit, nullptr);
  ASSERT_EQ(std::atexit([] { plimsoll_device_free(left_at_exit, 1 << 20, 0, stream(0)); }), 0);
}

}  // namespace
