// Every interleaving of threads that send blocks home with the owner that takes them.
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
  void store(T to, std::memory_order) {
    Scheduler::pause();
    value_ = to;
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

// One experiment: senders have one parcel each, for two blocks. Nodes are small integers, `next[n]`
// is a node's link: 1 to 7 are blocks that go alone, 8 + i is the parcel of sender i.
struct Experiment {
  using TestParcel = Parcel<SteppedAtomic, 2>;
  RemoteList<SteppedAtomic> list;
  std::vector<TestParcel> parcels = std::vector<TestParcel>(2);
  std::uintptr_t next[10] = {};
  std::multiset<std::uintptr_t> home;
  unsigned parcels_sent = 0;

  // As Pool::send: in the sender's parcel if it is at home, otherwise each block by itself.
  void give(unsigned sender, const std::vector<std::uintptr_t>& blocks) {
    TestParcel& parcel = parcels[sender];
    std::vector<std::uintptr_t> nodes = blocks;
    if (parcel.take_out()) {
      parcel.blocks[0] = blocks[0];
      parcel.blocks[1] = blocks.size() > 1 ? blocks[1] : 0;
      nodes = {8 + sender};
      ++parcels_sent;
    }
    for (std::size_t i = 0; i + 1 < nodes.size(); ++i) next[nodes[i]] = nodes[i + 1];
    list.push(nodes.front(), [&](std::uintptr_t behind) { next[nodes.back()] = behind; });
  }
  void take() {
    std::uintptr_t node = list.take();
    while (node != 0) {
      const std::uintptr_t behind = next[node];
      if (node < 8) {
        home.insert(node);
      } else {
        TestParcel& parcel = parcels[node - 8];
        for (const std::uintptr_t block : parcel.blocks) {
          if (block != 0) home.insert(block);
          if (block == 0) break;
        }
        parcel.give_back();
      }
      node = behind;
    }
  }
};

// Sanitizers do not follow fibers; TSan looks at the same lists in threads_test.cpp.
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

void expect_all_home(const Experiment& e) {
  EXPECT_EQ(e.home, (std::multiset<std::uintptr_t>{1, 2, 3}));
}

TEST(RemoteList, LosesNothingInAnyInterleavingOfTwoSendersAndTheOwner) {
  SKIP_FIBERS();
  const auto make = [](Experiment& e) -> std::vector<std::function<void()>> {
    return {[&e] { e.give(0, {1, 2}); }, [&e] { e.give(1, {3}); }, [&e] { e.take(); }};
  };
  const std::size_t tried = try_all(make, expect_all_home);
  EXPECT_GT(tried, 1000u);
  RecordProperty("interleavings", static_cast<int>(tried));
}

// The second time the parcel may be at home again or not: both happen.
TEST(RemoteList, LosesNothingWhenAParcelIsSentAgain) {
  SKIP_FIBERS();
  const auto make = [](Experiment& e) -> std::vector<std::function<void()>> {
    return {[&e] { e.give(0, {1}), e.give(0, {2, 3}); }, [&e] { e.take(), e.take(); }};
  };
  std::set<unsigned> sent;
  const std::size_t tried = try_all(make, [&](const Experiment& e) {
    expect_all_home(e);
    sent.insert(e.parcels_sent);
  });
  EXPECT_GT(tried, 100u);
  EXPECT_EQ(sent, (std::set<unsigned>{1, 2}));
}

TEST(SlowRemoteList, LosesNothingWhenAParcelIsSentAgainBesideABlockAlone) {
  SKIP_FIBERS();
  const auto make = [](Experiment& e) -> std::vector<std::function<void()>> {
    e.parcels[1].take_out();  // the other sender has none at home
    return {[&e] { e.give(0, {1}), e.give(0, {2}); }, [&e] { e.give(1, {3}); }, [&e] { e.take(); }};
  };
  const std::size_t tried = try_all(make, expect_all_home);
  EXPECT_GT(tried, 10000u);
}

}  // namespace
}  // namespace plimsoll::heap
