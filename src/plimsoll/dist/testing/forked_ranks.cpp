#include "plimsoll/dist/testing/forked_ranks.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "plimsoll/base/check.h"

namespace plimsoll::dist {
namespace {

constexpr unsigned kMostSeconds = 60;

// In memory that all ranks see.
struct CommonPage {
  pthread_barrier_t barrier;
  std::byte slot[1 << 16];
};

class ForkedCommunicator final : public Communicator {
 public:
  ForkedCommunicator(int rank, int size, CommonPage& page)
      : Communicator(rank, size), page_(page) {}
  std::string_view name() const override { return "forked"; }
  bool adds_in_order() const override { return false; }
  [[noreturn]] void abort(ErrorCode code, const std::string& line) override {
    std::fprintf(stderr, "plimsoll: %s\n", line.c_str());
    std::_Exit(static_cast<int>(code));
  }

 protected:
  bool sums(ir::DType) const override { return false; }
  void sum_all(std::byte*, std::int64_t, ir::DType, void*) override { refuse(); }
  void sum_parts(std::byte*, std::int64_t, ir::DType, void*) override { refuse(); }
  void exchange(const std::byte*, Parts, std::byte*, void*) override { refuse(); }
  void gather_parts(std::byte* data, Parts parts, void*) override {
    for (int r = 0; r < size(); ++r) {
      const Interval<std::int64_t> part = parts[static_cast<std::size_t>(r)];
      send_to_all(data + part.begin, part.end - part.begin, r, nullptr);
    }
  }
  void send_to_all(std::byte* data, std::int64_t bytes, int root, void*) override {
    for (std::int64_t at = 0; at < bytes; at += std::ssize(page_.slot)) {
      const auto now = static_cast<std::size_t>(std::min(bytes - at, std::ssize(page_.slot)));
      if (rank() == root) std::memcpy(page_.slot, data + at, now);
      pthread_barrier_wait(&page_.barrier);
      if (rank() != root) std::memcpy(data + at, page_.slot, now);
      pthread_barrier_wait(&page_.barrier);
    }
  }

 private:
  [[noreturn]] void refuse() { abort(ErrorCode::kInternal, "forked ranks sum nothing"); }

  CommonPage& page_;
};

}  // namespace

int run_forked_ranks(int ranks,
                     const std::function<int(const std::shared_ptr<Communicator>&)>& body) {
  void* const memory = ::mmap(nullptr, sizeof(CommonPage), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  PLIMSOLL_CHECK(memory != MAP_FAILED, "no memory in common");
  auto* const page = new (memory) CommonPage;
  pthread_barrierattr_t shared;
  pthread_barrierattr_init(&shared);
  pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&page->barrier, &shared, static_cast<unsigned>(ranks));
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = ::fork();
    PLIMSOLL_CHECK(child >= 0, "no process for rank {}", rank);
    if (child == 0) {
      ::alarm(kMostSeconds);
      const int code = body(std::make_shared<ForkedCommunicator>(rank, ranks, *page));
      std::fflush(nullptr);
      std::_Exit(code);
    }
    children.push_back(child);
  }
  int failed = 0;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  }
  ::munmap(memory, sizeof(CommonPage));
  return failed;
}

}  // namespace plimsoll::dist
