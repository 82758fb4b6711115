// Who is still there: beats that ranks send each other while they work, and what follows when one
// stays away.
//
// Every rank tells rank 0 twice a second how many collectives it has entered, and rank 0 tells
// everybody the same. A rank that is not heard of was killed, stopped or cut off. A rank that is
// heard of but does not come to a collective in which others wait hangs; how long that may take
// depends on how long steps take (`expect`).
//
//   rank 0   ◀── 17 ── rank 1        rank 1 entered its 17th collective
//            ◀── 16 ── rank 2        rank 2 did not; rank 1 waits for it
//
// Time is counted in wakings of this thread, not read from a clock: on a machine that was suspended
// with all its ranks nobody was silent.
//
// Threads: one of its own, which calls MPI under the same lock as the communicator does.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "plimsoll/dist/open_communicator.h"

namespace plimsoll::dist {

class RankWatch {
 public:
  // `lost` ends all ranks; it does not return.
  RankWatch(int rank, int size, std::mutex& mpi, const MpiOptions& options,
            std::function<void(const std::string&)> lost);
  ~RankWatch() { stop(); }

  void enter() { entered_.fetch_add(1, std::memory_order_relaxed); }  // a collective
  void expect(double step_seconds);  // hanging is looked for from now on
  void stop();

 private:
  struct Beat {
    std::int64_t entered = 0;
    std::int64_t last = 0;  // 1: says good-bye
  };
  struct Other {
    int rank = 0;
    std::string host;
    Beat heard;
    int silent = 0;  // wakings
    bool gone = false;
    Beat incoming;
    MPI_Request receive = MPI_REQUEST_NULL;
  };
  struct Outgoing {
    Beat beat;
    std::vector<MPI_Request> requests;
  };

  void run();
  void listen();
  void speak(bool last);
  void judge();
  void look_for_hanging();

  int rank_;
  int size_;
  std::mutex& mpi_;
  MpiOptions options_;
  std::function<void(const std::string&)> lost_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::vector<Other> others_;  // rank 0: all the others; else rank 0
  std::array<Outgoing, 2> outgoing_;
  int turn_ = 0;
  std::atomic<std::int64_t> entered_{0};
  std::atomic<double> patience_{0};  // seconds; 0: not yet
  int waiting_ = 0;  // wakings since the slowest rank last moved, others ahead of it
  std::int64_t slowest_ = -1;
  std::mutex waking_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace plimsoll::dist
