#include "plimsoll/dist/testing/thread_ranks.h"

#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "plimsoll/dist/add_in_order.h"

namespace plimsoll::dist {
namespace {

struct Meeting {
  explicit Meeting(int ranks) : barrier(ranks), data(static_cast<std::size_t>(ranks)) {}
  std::barrier<> barrier;
  std::vector<const std::byte*> data;  // by rank: what it brought
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(int rank, int size, Meeting& meeting)
      : Communicator(rank, size), meeting_(meeting) {}
  std::string_view name() const override { return "threads"; }
  [[noreturn]] void abort(ErrorCode code, const std::string& line) override {
    std::fprintf(stderr, "plimsoll: %s\n", line.c_str());
    std::_Exit(static_cast<int>(code));
  }

 protected:
  bool sums(ir::DType dtype) const override { return can_add(dtype); }
  void sum_all(std::byte* data, std::int64_t count, ir::DType dtype, void*) override {
    sum(data, 0, count, dtype);
  }
  void sum_parts(std::byte* data, std::int64_t count, ir::DType dtype, void*) override {
    sum(data, count * rank(), count, dtype);
  }
  void exchange(const std::byte* data, Parts parts, std::byte* received, void*) override {
    const Interval<std::int64_t> own = parts[static_cast<std::size_t>(rank())];
    const auto bytes = static_cast<std::size_t>(own.end - own.begin);
    meet(data, [&] {
      for (int r = 0; r < size(); ++r) {
        if (r == rank()) continue;
        if (bytes > 0) std::memcpy(received, brought(r) + own.begin, bytes);
        received += bytes;
      }
    });
  }
  void gather_parts(std::byte* data, Parts parts, void*) override {
    meet(data, [&] {
      for (int r = 0; r < size(); ++r) {
        const Interval<std::int64_t> part = parts[static_cast<std::size_t>(r)];
        if (r != rank() && !part.empty())
          std::memcpy(data + part.begin, brought(r) + part.begin,
                      static_cast<std::size_t>(part.end - part.begin));
      }
    });
  }
  void send_to_all(std::byte* data, std::int64_t bytes, int root, void*) override {
    meet(data, [&] {
      if (rank() != root) std::memcpy(data, brought(root), static_cast<std::size_t>(bytes));
    });
  }

 private:
  const std::byte* brought(int rank) const { return meeting_.data[static_cast<std::size_t>(rank)]; }

  template <typename Body>
  void meet(const std::byte* data, Body body) {
    meeting_.data[static_cast<std::size_t>(rank())] = data;
    meeting_.barrier.arrive_and_wait();
    body();
    meeting_.barrier.arrive_and_wait();
  }

  void sum(std::byte* data, std::int64_t first, std::int64_t count, ir::DType dtype) {
    const std::int64_t bytes = count * ir::bits(dtype) / 8;
    std::byte* const own = data + first * ir::bits(dtype) / 8;
    std::vector<std::byte> others(static_cast<std::size_t>(bytes * (size() - 1)));
    meet(own - first * ir::bits(dtype) / 8, [&] {
      std::byte* to = others.data();
      for (int r = 0; r < size(); ++r) {
        if (r == rank()) continue;
        std::memcpy(to, brought(r) + (own - data), static_cast<std::size_t>(bytes));
        to += bytes;
      }
    });
    add_parts_in_order(own, others.data(), count, dtype, rank(), size());
  }

  Meeting& meeting_;
};

}  // namespace

void run_thread_ranks(int ranks,
                      const std::function<void(const std::shared_ptr<Communicator>&)>& body) {
  Meeting meeting(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back(
        [&, rank] { body(std::make_shared<ThreadCommunicator>(rank, ranks, meeting)); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace plimsoll::dist
