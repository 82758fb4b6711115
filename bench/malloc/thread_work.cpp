// Workloads of small objects on several threads.
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "work.h"

namespace malloc_work {
namespace {

void run_threads(long count, auto body) {
  std::vector<std::thread> threads;
  for (long i = 0; i < count; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

// ---- In the spirit of larson: a server whose connections outlive the threads that serve them.
std::int64_t server(Arguments arguments) {
  const long threads = argument(arguments, 0, 2);
  const long rounds = argument(arguments, 1, 40);
  const long steps = argument(arguments, 2, 200000);
  constexpr std::size_t kSlots = 5000;
  std::vector<std::vector<char*>> slots(static_cast<std::size_t>(threads),
                                        std::vector<char*>(kSlots));
  for (long round = 0; round < rounds; ++round) {
    run_threads(threads, [&](long id) {
      // The slots that another thread filled in the round before.
      std::vector<char*>& mine = slots[static_cast<std::size_t>(id + round) % slots.size()];
      Random random(static_cast<std::uint64_t>(round * threads + id));
      for (long step = 0; step < steps; ++step) {
        char*& slot = mine[random.below(kSlots)];
        std::free(slot);
        const std::size_t bytes = 8 + random.below(992);
        slot = static_cast<char*>(std::malloc(bytes));
        slot[0] = slot[bytes - 1] = 1;
      }
    });
  }
  for (auto& group : slots) {
    for (char* block : group) std::free(block);
  }
  return 0;
}

// ---- In the spirit of xmalloc-test: some threads only allocate, others only free.
struct Batch {
  Batch* next;
  void* objects[120];
};

class Exchange {
 public:
  void put(Batch* batch) {
    pthread_mutex_lock(&mutex_);
    while (count_ >= 64) pthread_cond_wait(&room_, &mutex_);
    batch->next = head_;
    head_ = batch;
    ++count_;
    pthread_cond_signal(&work_);
    pthread_mutex_unlock(&mutex_);
  }
  Batch* take() {
    pthread_mutex_lock(&mutex_);
    while (count_ == 0) pthread_cond_wait(&work_, &mutex_);
    Batch* out = head_;
    head_ = out->next;
    --count_;
    pthread_cond_signal(&room_);
    pthread_mutex_unlock(&mutex_);
    return out;
  }

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t work_ = PTHREAD_COND_INITIALIZER;
  pthread_cond_t room_ = PTHREAD_COND_INITIALIZER;
  Batch* head_ = nullptr;
  int count_ = 0;
};

std::int64_t handoff(Arguments arguments) {
  const long threads = argument(arguments, 0, 2);  // half produce, half consume
  const long batches = argument(arguments, 1, 300000);
  const std::size_t bytes = static_cast<std::size_t>(argument(arguments, 2, 64));
  Exchange exchange;
  run_threads(threads, [&](long id) {
    for (long i = 0; i < batches; ++i) {
      if (id % 2 == 0) {
        auto* batch = static_cast<Batch*>(std::malloc(sizeof(Batch)));
        for (void*& object : batch->objects) {
          object = std::malloc(bytes);
          std::memset(object, 1, 16);
        }
        exchange.put(batch);
      } else {
        Batch* batch = exchange.take();
        for (void* object : batch->objects) std::free(object);
        std::free(batch);
      }
    }
  });
  return 0;
}

// ---- In the spirit of sh6bench: rising sizes, freed newest first, oldest first, or every second
// one.
void batch_round(std::vector<void*>& blocks, Random& random, long round) {
  std::size_t filled = 0;
  while (filled < blocks.size()) {
    const std::size_t bytes = 1 + random.below(20) * random.below(50);
    for (int same = 0; same < 10 && filled < blocks.size(); ++same) {
      blocks[filled] = std::malloc(bytes);
      *static_cast<volatile char*>(blocks[filled++]) = 1;
    }
  }
  const auto drop = [&](std::size_t at) {
    std::free(blocks[at]);
    blocks[at] = nullptr;
  };
  switch (round % 3) {
    case 0:
      for (std::size_t i = blocks.size(); i-- > 0;) drop(i);
      break;
    case 1:
      for (std::size_t i = 0; i < blocks.size(); ++i) drop(i);
      break;
    default:
      for (std::size_t i = 0; i < blocks.size(); i += 2) drop(i);
      for (std::size_t i = 1; i < blocks.size(); i += 2) drop(i);
  }
}

std::int64_t batches(Arguments arguments) {
  const long threads = argument(arguments, 0, 1);
  const long rounds = argument(arguments, 1, 100);
  const auto count = static_cast<std::size_t>(argument(arguments, 2, 300000));
  run_threads(threads, [&](long id) {
    std::vector<void*> blocks(count);
    Random random(static_cast<std::uint64_t>(id));
    for (long round = 0; round < rounds; ++round) batch_round(blocks, random, round);
  });
  return 0;
}

// ---- In the spirit of sh8bench: the same with half of the blocks freed by another thread.
std::int64_t swaps(Arguments arguments) {
  const long threads = argument(arguments, 0, 2);
  const long rounds = argument(arguments, 1, 400);
  const auto count = static_cast<std::size_t>(argument(arguments, 2, 40000));
  std::vector<std::atomic<std::vector<void*>*>> offered(1);
  run_threads(threads, [&](long id) {
    auto mine = std::make_unique<std::vector<void*>>(count);
    Random random(static_cast<std::uint64_t>(id) + 11);
    for (long round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t bytes = 8 + random.below(random.below(16) == 0 ? 2000 : 120);
        std::free((*mine)[i]);
        (*mine)[i] = std::malloc(bytes);
        *static_cast<volatile char*>((*mine)[i]) = 1;
      }
      std::vector<void*>* other = offered[0].exchange(mine.release());
      mine.reset(other != nullptr ? other : new std::vector<void*>(count));
    }
    for (void* block : *mine) std::free(block);
  });
  std::unique_ptr<std::vector<void*>> last(offered[0].load());
  if (last != nullptr) {
    for (void* block : *last) std::free(block);
  }
  return 0;
}

// ---- In the spirit of mstress: threads come and go, and hand objects on through a common table.
std::int64_t stress(Arguments arguments) {
  const long threads = argument(arguments, 0, 2);
  const long rounds = argument(arguments, 1, 100);
  const long steps = argument(arguments, 2, 60000);
  constexpr std::size_t kTable = 1000;
  std::vector<std::atomic<char*>> table(kTable);
  for (long round = 0; round < rounds; ++round) {
    run_threads(threads, [&](long id) {
      Random random(static_cast<std::uint64_t>(round * 64 + id));
      std::vector<char*> kept;
      std::size_t oldest = 0;
      for (long step = 0; step < steps; ++step) {
        const std::uint64_t what = random.below(100);
        if (what < 50 || oldest == kept.size()) {
          const int doublings = __builtin_ctzll(random.next() | 1ull << 11);
          const std::size_t bytes = 8 + random.below(16u << doublings);
          auto* block = static_cast<char*>(std::malloc(bytes));
          block[0] = block[bytes - 1] = static_cast<char>(id);
          kept.push_back(block);
        } else if (what < 90) {
          std::free(kept[oldest++]);
        } else {
          std::free(table[random.below(kTable)].exchange(kept[oldest++]));
        }
      }
      while (oldest < kept.size()) std::free(kept[oldest++]);
    });
  }
  for (auto& entry : table) std::free(entry.load());
  return 0;
}

constexpr Work kWorks[] = {
    {"server", "THREADS ROUNDS STEPS: connections outlive threads (spirit of larson)", server},
    {"handoff", "THREADS BATCHES BYTES: producers and consumers (spirit of xmalloc-test)", handoff},
    {"batches", "THREADS ROUNDS BLOCKS: bursts freed in three orders (spirit of sh6bench)",
     batches},
    {"swaps", "THREADS ROUNDS BLOCKS: blocks freed by other threads (spirit of sh8bench)", swaps},
    {"stress", "THREADS ROUNDS STEPS: threads come and go (spirit of mstress)", stress},
};

}  // namespace

std::span<const Work> thread_works() {
  return kWorks;
}

}  // namespace malloc_work
