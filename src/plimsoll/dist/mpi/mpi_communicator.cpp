// libplimsoll_mpi.so: ranks that Open MPI (or another MPI) started.
//
// Collectives are started and then asked for until they are over, with short sleeps between: MPI
// would wait in a loop that takes a core from whoever computes. Two threads call MPI, the one that
// runs a collective and the one that watches the other ranks (rank_watch.h), never at once.
#include <dlfcn.h>
#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "plimsoll/dist/add_in_order.h"
#include "plimsoll/dist/communicator_library.h"
#include "plimsoll/dist/mpi/rank_watch.h"

namespace plimsoll::dist {
namespace {

MPI_Datatype type_of(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kF64:
      return MPI_DOUBLE;
    case ir::DType::kF32:
      return MPI_FLOAT;
    case ir::DType::kI64:
      return MPI_INT64_T;
    case ir::DType::kI32:
      return MPI_INT32_T;
    case ir::DType::kU64:
      return MPI_UINT64_T;
    case ir::DType::kU32:
      return MPI_UINT32_T;
    default:
      return MPI_DATATYPE_NULL;
  }
}

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(int rank, int size, const MpiOptions& options) : Communicator(rank, size) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm local = MPI_COMM_NULL;
    MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &local);
    MPI_Comm_rank(local, &local_rank_);
    MPI_Comm_size(local, &local_size_);
    MPI_Comm_free(&local);
    if (size > 1)
      watch_ = std::make_unique<RankWatch>(rank, size, lock_, options, [this](const auto& line) {
        abort(ErrorCode::kDevice, line);
      });
  }
  ~MpiCommunicator() override { finish(); }

  std::string_view name() const override { return "mpi"; }
  int local_rank() const override { return local_rank_; }
  int local_size() const override { return local_size_; }

  [[noreturn]] void abort(ErrorCode code, const std::string& line) override {
    std::fprintf(stderr, "plimsoll: %s\n", line.c_str());
    std::fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, static_cast<int>(code));
    std::_Exit(static_cast<int>(code));
  }

  void abort_at_exit(ErrorCode code) override {
    static int exit_code;
    exit_code = static_cast<int>(code);
    finished_ = true;
    std::atexit([] { MPI_Abort(MPI_COMM_WORLD, exit_code); });
  }

  void expect_steps(double seconds) override {
    if (watch_) watch_->expect(seconds);
  }

  void finish() override {
    if (finished_) return;
    finished_ = true;
    if (watch_) watch_->stop();
    watch_.reset();
    MPI_Finalize();
  }

 protected:
  bool sums(ir::DType dtype) const override { return type_of(dtype) != MPI_DATATYPE_NULL; }

  void sum_all(std::byte* data, std::int64_t count, ir::DType dtype, void*) override {
    run("all_reduce", [&](MPI_Request* request) {
      return MPI_Iallreduce(MPI_IN_PLACE, data, static_cast<int>(count), type_of(dtype), MPI_SUM,
                            comm_, request);
    });
  }
  // The sum lands at the front, and is moved to its part.
  void sum_parts(std::byte* data, std::int64_t count, ir::DType dtype, void*) override {
    const std::size_t bytes = static_cast<std::size_t>(count * ir::bits(dtype) / 8);
    run("reduce_scatter", [&](MPI_Request* request) {
      return MPI_Ireduce_scatter_block(MPI_IN_PLACE, data, static_cast<int>(count), type_of(dtype),
                                       MPI_SUM, comm_, request);
    });
    if (rank() > 0) std::copy_n(data, bytes, data + static_cast<std::size_t>(rank()) * bytes);
  }
  void exchange(const std::byte* data, Parts parts, std::byte* received, void*) override {
    const Counts send(parts, rank());
    const Interval<std::int64_t> own = parts[static_cast<std::size_t>(rank())];
    Counts receive(parts, rank());
    const int part = static_cast<int>(own.end - own.begin);
    int at = 0;
    for (int r = 0; r < size(); ++r) {
      receive.counts[static_cast<std::size_t>(r)] = r == rank() ? 0 : part;
      receive.offsets[static_cast<std::size_t>(r)] = at;
      if (r != rank()) at += part;
    }
    run("all_to_all", [&](MPI_Request* request) {
      return MPI_Ialltoallv(data, send.counts.data(), send.offsets.data(), MPI_BYTE, received,
                            receive.counts.data(), receive.offsets.data(), MPI_BYTE, comm_,
                            request);
    });
  }
  void gather_parts(std::byte* data, Parts parts, void*) override {
    const Counts all(parts, -1);
    run("all_gather", [&](MPI_Request* request) {
      return MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, all.counts.data(),
                             all.offsets.data(), MPI_BYTE, comm_, request);
    });
  }
  void send_to_all(std::byte* data, std::int64_t bytes, int root, void*) override {
    run("broadcast", [&](MPI_Request* request) {
      return MPI_Ibcast(data, static_cast<int>(bytes), MPI_BYTE, root, comm_, request);
    });
  }

 private:
  // Counts and offsets in bytes, as MPI takes them; nothing of rank `without`.
  struct Counts {
    Counts(Parts parts, int without) {
      for (std::size_t r = 0; r < parts.size(); ++r) {
        counts.push_back(
            static_cast<int>(r) == without ? 0 : static_cast<int>(parts[r].end - parts[r].begin));
        offsets.push_back(static_cast<int>(parts[r].begin));
      }
    }
    std::vector<int> counts;
    std::vector<int> offsets;
  };

  template <typename Start>
  void run(const char* what, Start start) {
    using namespace std::chrono_literals;
    MPI_Request request = MPI_REQUEST_NULL;
    if (watch_) watch_->enter();
    {
      const std::scoped_lock lock(lock_);
      require(what, start(&request));
    }
    auto pause = 0us;
    for (int asked = 0;; ++asked) {
      int done = 0;
      {
        const std::scoped_lock lock(lock_);
        require(what, MPI_Test(&request, &done, MPI_STATUS_IGNORE));
      }
      if (done != 0) return;
      // At once while data flows, then less and less often.
      if (asked < 20) {
        std::this_thread::yield();
        continue;
      }
      pause = std::min<std::chrono::microseconds>(pause + 5us, 200us);
      std::this_thread::sleep_for(pause);
    }
  }

  void require(const char* what, int code) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    MPI_Error_string(code, text, &length);
    abort(ErrorCode::kDevice, fmt::format("rank {}: {}: {}", rank(), what, text));
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  std::mutex lock_;  // around every call of MPI
  int local_rank_ = 0;
  int local_size_ = 1;
  std::unique_ptr<RankWatch> watch_;
  bool finished_ = false;
};

Opened open(const MpiOptions& options) {
  // Open MPI opens plug-ins that look for its symbols among those of the whole process.
  ::dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
  int ready = 0;
  MPI_Initialized(&ready);
  if (ready != 0) return fail(ErrorCode::kInternal, "MPI: was started before");
  int given = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given) != MPI_SUCCESS)
    return fail(ErrorCode::kDevice, "MPI: does not start");
  if (given < MPI_THREAD_SERIALIZED)
    return fail(ErrorCode::kDevice, "MPI: this library cannot be called from several threads");
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return std::make_shared<MpiCommunicator>(rank, size, options);
}

}  // namespace
}  // namespace plimsoll::dist

extern "C" {

__attribute__((visibility("default"))) std::uint64_t plimsoll_mpi_build() {
  return plimsoll::dist::communicator_library_build();
}

__attribute__((visibility("default"))) void plimsoll_mpi_open(
    const plimsoll::dist::MpiOptions& options, plimsoll::dist::Opened& out) {
  out = plimsoll::dist::open(options);
}
}
