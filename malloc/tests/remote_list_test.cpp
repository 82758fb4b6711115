// Every interleaving of threads that free blocks of one page with the owner that takes them home.
//
// The lists' atomics are replaced by ones that hand control back to a scheduler before each
// operation. Threads are fibers; a run is a sequence of choices among those that can go on. The
// test tries all sequences, depth first, by running the whole experiment again for each: the last
// choice that has an alternative is changed, everything behind it starts afresh.
#include "remote_list.h"

#include <gtest/gtest.h>
#include <ucontext.h>

#include <functional>
#include <memory>
#include <set>
#include <vector>

namespace plimsoll::heap {
namespace {

class Scheduler {
 public:
  static Scheduler* running;

  // Runs the fibers by the choices of `path`, and takes the first possible one behind its end.
  void run(const std::vector<std::function<void()>>& bodies, std::vector<unsigned>& path,
           std::vector<unsigned>& widths) {
    running = this;
    fibers_.clear();
    for (const auto& body : bodies) {
      auto fiber = std::make_unique<Fiber>();
      fiber->body = body;
      getcontext(&fiber->context);
      fiber->context.uc_stack.ss_sp = fiber->stack.data();
      fiber->context.uc_stack.ss_size = fiber->stack.size();
      fiber->context.uc_link = &back_;
      makecontext(&fiber->context, &Scheduler::enter, 0);
      fibers_.push_back(std::move(fiber));
    }
    widths.clear();
    for (std::size_t step = 0;; ++step) {
      std::vector<Fiber*> able;
      for (const auto& fiber : fibers_) {
        if (!fiber->done) able.push_back(fiber.get());
      }
      if (able.empty()) break;
      if (step == path.size()) path.push_back(0);
      widths.push_back(static_cast<unsigned>(able.size()));
      current_ = able[path[step]];
      swapcontext(&back_, &current_->context);
    }
    running = nullptr;
  }

  // Called inside a fiber before every atomic operation.
  static void pause() {
    if (running != nullptr) swapcontext(&running->current_->context, &running->back_);
  }

 private:
  struct Fiber {
    ucontext_t context{};
    std::vector<char> stack = std::vector<char>(64 << 10);
    std::function<void()> body;
    bool done = false;
  };
  static void enter() {
    Fiber* self = running->current_;
    self->body();
    self->done = true;
  }
  ucontext_t back_{};
  Fiber* current_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
};

Scheduler* Scheduler::running = nullptr;

template <typename T>
class SteppedAtomic {
 public:
  explicit constexpr SteppedAtomic(T value) : value_(value) {}
  T load(std::memory_order) const {
    Scheduler::pause();
    return value_;
  }
  T exchange(T to, std::memory_order) {
    Scheduler::pause();
    std::swap(to, value_);
    return to;
  }
  bool compare_exchange_weak(T& expected, T to, std::memory_order, std::memory_order) {
    Scheduler::pause();
    if (value_ != expected) {
      expected = value_;
      return false;
    }
    value_ = to;
    return true;
  }

 private:
  T value_;
};

struct TestPage {
  RemoteList<SteppedAtomic> remote;
  TestPage* next_pending = nullptr;
};

// One experiment: blocks are small integers, `next[b]` is a block's link.
struct Experiment {
  std::vector<TestPage> pages = std::vector<TestPage>(2);
  PendingStack<TestPage, SteppedAtomic> pending;
  std::uintptr_t next[8] = {};
  std::multiset<std::uintptr_t> home;
  unsigned counted = 0;

  void give(std::size_t page, std::vector<std::uintptr_t> blocks) {
    for (std::size_t i = 0; i + 1 < blocks.size(); ++i) next[blocks[i]] = blocks[i + 1];
    const auto link = [&](std::uintptr_t behind) { next[blocks.back()] = behind; };
    const Chain chain{blocks.front(), static_cast<unsigned>(blocks.size())};
    if (pages[page].remote.push(chain, link)) pending.push(&pages[page]);
  }
  void take() {
    pending.take([&](TestPage* page) {
      const Chain chain = page->remote.take();
      counted += chain.count;
      for (std::uintptr_t block = chain.head; block != 0; block = next[block]) home.insert(block);
    });
  }
};

// Sanitizers do not follow fibers; TSan looks at the same lists in heap_test.cpp.
#ifdef PLIMSOLL_SANITIZED
#define SKIP_FIBERS() GTEST_SKIP() << "fibers and sanitizers do not mix"
#else
#define SKIP_FIBERS()
#endif

// Tries every interleaving; returns their number.
template <typename Check>
std::size_t try_all(const std::function<std::vector<std::function<void()>>(Experiment&)>& make,
                    Check check) {
  std::vector<unsigned> path;
  std::vector<unsigned> widths;
  for (std::size_t tried = 1;; ++tried) {
    Experiment experiment;
    Scheduler().run(make(experiment), path, widths);
    experiment.take();  // what the owner missed while others still pushed
    check(experiment);
    if (testing::Test::HasFailure()) return tried;
    while (!path.empty() && path.back() + 1 == widths[path.size() - 1]) path.pop_back();
    if (path.empty()) return tried;
    ++path.back();
  }
}

TEST(RemoteList, LosesNothingInAnyInterleavingOfTwoChainsAndTheOwner) {
  SKIP_FIBERS();
  const auto make = [](Experiment& e) -> std::vector<std::function<void()>> {
    return {[&e] { e.give(0, {1, 2}); }, [&e] { e.give(0, {3}); }, [&e] { e.take(), e.take(); }};
  };
  const std::size_t tried = try_all(make, [](const Experiment& e) {
    EXPECT_EQ(e.home, (std::multiset<std::uintptr_t>{1, 2, 3}));
    EXPECT_EQ(e.counted, 3u);
  });
  EXPECT_GT(tried, 1000u);
  RecordProperty("interleavings", static_cast<int>(tried));
}

TEST(RemoteList, LosesNothingWhenAPageIsPushedAgainWhileItIsTaken) {
  SKIP_FIBERS();
  const auto make = [](Experiment& e) -> std::vector<std::function<void()>> {
    return {[&e] { e.give(0, {1}), e.give(0, {2}), e.give(1, {3}); }, [&e] { e.take(), e.take(); }};
  };
  const std::size_t tried = try_all(make, [](const Experiment& e) {
    EXPECT_EQ(e.home, (std::multiset<std::uintptr_t>{1, 2, 3}));
    EXPECT_EQ(e.counted, 3u);
  });
  EXPECT_GT(tried, 1000u);
}

TEST(SlowRemoteList, LosesNothingWhenAPageIsPushedAgainBesideAnother) {
  SKIP_FIBERS();
  const auto make = [](Experiment& e) -> std::vector<std::function<void()>> {
    return {[&e] { e.give(0, {1}), e.give(0, {2}); }, [&e] { e.give(1, {3}); }, [&e] { e.take(); }};
  };
  const std::size_t tried = try_all(make, [](const Experiment& e) {
    EXPECT_EQ(e.home, (std::multiset<std::uintptr_t>{1, 2, 3}));
    EXPECT_EQ(e.counted, 3u);
  });
  EXPECT_GT(tried, 1000u);
}

TEST(SlowRemoteList, LosesNothingWithTwoPagesAndThreeThreads) {
  SKIP_FIBERS();
  const auto make = [](Experiment& e) -> std::vector<std::function<void()>> {
    return {[&e] { e.give(0, {1}), e.give(1, {2}); }, [&e] { e.give(1, {3}); }, [&e] { e.take(); }};
  };
  const std::size_t tried = try_all(make, [](const Experiment& e) {
    EXPECT_EQ(e.home, (std::multiset<std::uintptr_t>{1, 2, 3}));
    EXPECT_EQ(e.counted, 3u);
  });
  EXPECT_GT(tried, 10000u);
}

}  // namespace
}  // namespace plimsoll::heap
