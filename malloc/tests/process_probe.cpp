// Threads that come and go, fork, limits on memory.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <thread>
#include <vector>

#include "plimsoll_malloc.h"
#include "probe.h"

namespace probe {
namespace {

std::size_t peak_resident() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<std::size_t>(used.ru_maxrss) * 1024;
}

// Zero under another allocator.
std::size_t pools() {
  using Get = void (*)(plimsoll_malloc_statistics*);
  auto* get = reinterpret_cast<Get>(dlsym(RTLD_DEFAULT, "plimsoll_malloc_get_statistics"));
  plimsoll_malloc_statistics now{};
  if (get != nullptr) get(&now);
  return now.pools;
}

// Threads leave blocks behind that others free: pools and memory must not pile up.
void threads_come_and_go(Arguments arguments) {
  const long rounds = number(arguments, 0, 400);
  std::vector<void*> left_behind;
  for (long round = 0; round < rounds; ++round) {
    std::vector<void*> blocks(2000);
    std::thread first([&] {
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        blocks[i] = std::malloc(16 + i % 1000);
        std::memset(blocks[i], 1, 16);
      }
    });
    std::thread second([&] {
      for (void* block : left_behind) std::free(block);
      void* large = std::malloc(1 << 20);
      std::memset(large, 1, 1 << 20);
      std::free(large);
    });
    first.join();
    second.join();
    left_behind = std::move(blocks);
  }
  for (void* block : left_behind) std::free(block);
  PROBE(pools() <= 4);
  PROBE(peak_resident() < std::size_t{40} << 20);
}

// ---- The end of a thread: objects of the thread, then keys in several rounds, all allocate and
// free.

struct ThreadObject {
  std::vector<int> numbers = std::vector<int>(1000);
  ~ThreadObject() {
    std::vector<int> late(5000);
    late[10] = 1;
    numbers = late;
  }
};
thread_local ThreadObject thread_object;

pthread_key_t late_key;
std::atomic<int> late_rounds{0};
void late_destructor(void* value) {
  ++late_rounds;
  auto* text = static_cast<char*>(value);
  const char rounds_left = static_cast<char>(text[0] - 1);
  std::free(value);
  if (rounds_left == 0) return;
  auto* next = static_cast<char*>(std::malloc(200));
  next[0] = rounds_left;
  pthread_setspecific(late_key, next);
}

void end_of_thread(Arguments) {
  // Keys past the first 32 of a thread make pthread_setspecific itself allocate.
  pthread_key_t filler[60];
  for (pthread_key_t& key : filler) pthread_key_create(&key, nullptr);
  PROBE(pthread_key_create(&late_key, late_destructor) == 0);
  for (int round = 0; round < 300; ++round) {
    std::thread([&] {
      thread_object.numbers[3] = 4;
      auto* value = static_cast<char*>(std::malloc(100));
      value[0] = PTHREAD_DESTRUCTOR_ITERATIONS;
      pthread_setspecific(late_key, value);
      pthread_setspecific(filler[59], value);
    }).join();
  }
  PROBE(late_rounds == 300 * PTHREAD_DESTRUCTOR_ITERATIONS);
  PROBE(pools() <= 3);
}

// ---- fork

void churn(unsigned seed, long steps, const std::atomic<bool>* stop) {
  void* blocks[200] = {};
  for (long step = 0; stop != nullptr ? !stop->load(std::memory_order_relaxed) : step < steps;
       ++step) {
    seed = seed * 1103515245 + 12345;
    void*& slot = blocks[(seed >> 16) % 200];
    std::free(slot);
    const std::size_t bytes = seed % 64 == 0     ? 200000
                              : seed % 1024 == 1 ? 3 << 20
                                                 : (seed >> 8) % 2000;
    slot = std::malloc(bytes);
    if (bytes > 0) *static_cast<volatile char*>(slot) = 1;
  }
  for (void* block : blocks) std::free(block);
}

// A child must be able to allocate, free what its parent allocated, and start threads, at whatever
// moment it was made.
void fork_under_load(Arguments arguments) {
  const long forks = number(arguments, 0, 100);
  std::atomic<bool> stop{false};
  std::vector<std::thread> workers;
  for (unsigned i = 0; i < 3; ++i) workers.emplace_back([&stop, i] { churn(i + 1, 0, &stop); });
  for (long round = 0; round < forks; ++round) {
    void* inherited = std::malloc(100 + static_cast<std::size_t>(round) * 300);
    const pid_t child = fork();
    PROBE(child >= 0);
    if (child == 0) {
      alarm(20);  // a deadlock becomes a death
      std::free(inherited);
      churn(77, 3000, nullptr);
      std::thread([] { churn(78, 3000, nullptr); }).join();
      const pid_t grandchild = fork();
      if (grandchild == 0) {
        churn(79, 500, nullptr);
        _exit(0);
      }
      int status = 1;
      waitpid(grandchild, &status, 0);
      _exit(status == 0 ? 0 : 1);
    }
    int status = 1;
    PROBE(waitpid(child, &status, 0) == child);
    PROBE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    std::free(inherited);
  }
  stop = true;
  for (std::thread& worker : workers) worker.join();
}

// ---- Limits

// Allocates until nothing is left, and then goes on living.
void fill_address_space(std::size_t bytes) {
  std::vector<void*> blocks;
  blocks.reserve(1 << 16);
  errno = 0;
  while (blocks.size() < blocks.capacity()) {
    void* block = std::malloc(bytes);
    if (block == nullptr) break;
    std::memset(block, 1, bytes < 4096 ? bytes : 4096);
    blocks.push_back(block);
  }
  PROBE(blocks.size() < blocks.capacity() && errno == ENOMEM);
  for (void* block : blocks) std::free(block);
  // All of it is of use again, in another size.
  const std::size_t total = blocks.size() * bytes;
  PROBE(total > std::size_t{32} << 20);
  void* large = std::malloc(total / 4);
  PROBE(large != nullptr);
  std::free(large);
}

void address_limit(Arguments arguments) {
  // The limit may have been there from the start, or comes now.
  const rlimit limit{std::size_t{400} << 20, std::size_t{400} << 20};
  if (number(arguments, 1, 0) != 0) PROBE(setrlimit(RLIMIT_AS, &limit) == 0);
  fill_address_space(static_cast<std::size_t>(number(arguments, 0, 100000)));
  bool thrown = false;
  try {
    std::vector<char> too_much(std::size_t{1} << 30);
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  PROBE(thrown);
  // One that comes now may leave nothing for new descriptors.
  if (number(arguments, 1, 0) == 0) churn(5, 20000, nullptr);
}

// Freed memory goes back to the system once it is old: resident memory now, in bytes.
std::size_t resident_now() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  long total = 0;
  long pages = 0;
  PROBE(file != nullptr && std::fscanf(file, "%ld %ld", &total, &pages) == 2);
  std::fclose(file);
  return static_cast<std::size_t>(pages) * 4096;
}

void gives_back(Arguments) {
  const std::size_t bytes = std::size_t{200} << 20;
  void* block = std::malloc(bytes);
  std::memset(block, 1, bytes);
  PROBE(resident_now() > bytes);
  std::free(block);
  const timespec a_while{2, 100000000};
  nanosleep(&a_while, nullptr);
  std::free(std::malloc(2 << 20));  // any large call notices
  PROBE(resident_now() < std::size_t{24} << 20);
}

// What is live and cached stays below 15/16 of a limit on the cgroup, which is the first number.
void cgroup_limit(Arguments arguments) {
  const auto limit = static_cast<std::size_t>(number(arguments, 0, 0));
  auto* get = reinterpret_cast<decltype(&plimsoll_malloc_get_statistics)>(
      dlsym(RTLD_DEFAULT, "plimsoll_malloc_get_statistics"));
  PROBE(get != nullptr);
  const std::size_t allowed = limit - limit / 16;
  const std::size_t kept_bytes = limit / 2;
  const std::size_t freed_bytes = allowed - kept_bytes - (std::size_t{1} << 20);
  void* kept = std::malloc(kept_bytes);
  void* freed = std::malloc(freed_bytes);
  std::memset(kept, 1, kept_bytes);
  std::memset(freed, 1, freed_bytes);
  std::free(freed);
  void* more = std::malloc(std::size_t{3} << 20);  // lives beside the cache
  plimsoll_malloc_statistics now;
  get(&now);
  PROBE(now.live_bytes + now.cached_bytes <= allowed);
  PROBE(now.cached_bytes > freed_bytes / 2);
  // Another size, as much as there may be.
  std::free(kept);
  std::free(more);
  kept = std::malloc(allowed - (std::size_t{4} << 20));
  std::memset(kept, 2, allowed - (std::size_t{4} << 20));
  get(&now);
  PROBE(now.live_bytes + now.cached_bytes <= allowed);
  std::free(kept);
}

constexpr Experiment kExperiments[] = {
    {"threads_come_and_go", threads_come_and_go},
    {"end_of_thread", end_of_thread},
    {"fork_under_load", fork_under_load},
    {"address_limit", address_limit},
    {"gives_back", gives_back},
    {"cgroup_limit", cgroup_limit},
};

}  // namespace

std::span<const Experiment> process_experiments() {
  return kExperiments;
}

}  // namespace probe
