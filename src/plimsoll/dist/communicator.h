// A communicator: what a rank needs to work together with the others.
//
// Ranks are processes that train one model on different examples. Four stand behind this interface:
//
//   self    one rank: every collective is over before it began
//   mpi     Open MPI, from libplimsoll_mpi.so, which is opened when somebody asks for it
//           (open_mpi.h): the program itself needs no MPI. Also across machines
//   nccl    device memory of CUDA cards, from libplimsoll_nccl.so; another communicator brings the
//           ranks together first
//   threads ranks that are threads of one process, for tests (testing/thread_ranks.h)
//
// Collectives work in place on runs of bytes and return when they are over (or, where data lies in
// device memory, when they stand in the stream `queue`). All ranks call the same ones in the same
// order, with the same sizes.
//
// Sums. `kAny` leaves the order to the library: fast, and the last bits may depend on the number of
// ranks and on how tensors were grouped into runs. `kFixed` adds up in the order of ranks, element
// by element: each rank gets its part of the run from all others, adds, and hands the sum round. It
// gives the same bits however tensors are grouped, moves as many bytes as a ring (2 (n - 1) / n of
// the data for each rank), and needs scratch for what the others send. Types that MPI cannot add
// (fp16, bf16) are added in this way too.
//
//   rank 0  a0 b0    parts    a0 a1     sums  a0+a1         all   a0+a1 b0+b1
//   rank 1  a1 b1   ───────▶  b0 b1    ─────▶       b0+b1  ────▶  a0+a1 b0+b1
//
// Threads: one collective at a time. Failures: a collective that fails ends all ranks (`abort`),
// with one line that names a rank and the cause: what was computed could not be used anyway.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/interval.h"
#include "plimsoll/base/result.h"
#include "plimsoll/base/units.h"
#include "plimsoll/ir/dtype.h"

namespace plimsoll::dist {

enum class Reduction : std::uint8_t { kAny, kFixed };
Result<Reduction> parse_reduction(std::string_view text);  // "any", "fixed"
std::string_view name(Reduction reduction);

// What this rank has said to others, in collectives that it took part in.
struct Traffic {
  std::int64_t messages = 0;    // collectives
  std::int64_t wire_bytes = 0;  // that left this rank, as a ring or a tree sends them
  double seconds = 0;           // inside collectives, waiting for others included
};

class Communicator {
 public:
  Communicator(int rank, int size) : rank_(rank), size_(size) {}
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual std::string_view name() const = 0;
  int rank() const { return rank_; }
  int size() const { return size_; }
  // Ranks on this machine, and which of them this is.
  virtual int local_rank() const { return rank_; }
  virtual int local_size() const { return size_; }

  // Whether it can add in the order of ranks; where it cannot, kFixed is refused.
  virtual bool adds_in_order() const { return true; }
  // Bytes of scratch that all_reduce and reduce_scatter of so many bytes want.
  Bytes scratch(Bytes data, ir::DType dtype, Reduction how) const;

  // Sums of `count` elements, in their place.
  void all_reduce(std::byte* data, std::int64_t count, ir::DType dtype, Reduction how,
                  std::byte* scratch, void* queue = nullptr);
  // Every rank brings size() parts of `count` elements and keeps the sum of one, its own, which is
  // left at the place of that part.
  void reduce_scatter(std::byte* data, std::int64_t count, ir::DType dtype, Reduction how,
                      std::byte* scratch, void* queue = nullptr);
  // Every rank has its own part of size() parts of so many bytes, and gets the others.
  void all_gather(std::byte* data, Bytes part, void* queue = nullptr);
  void broadcast(std::byte* data, Bytes bytes, int root, void* queue = nullptr);

  // The same for parts of any length: part r is elements begins[r] to begins[r + 1] of the run.
  // Sums of the own part go to `out`, and the run stays as it is.
  void scatter_sums(const std::byte* data, std::span<const std::int64_t> begins, std::byte* out,
                    ir::DType dtype, std::byte* scratch, void* queue = nullptr);
  // Bytes of scratch for it, by those of the longest part.
  Bytes scatter_scratch(Bytes longest_part) const;
  // begins in bytes.
  void gather_run(std::byte* data, std::span<const std::int64_t> begins, void* queue = nullptr);

  // In host memory, whatever the communicator's own.
  template <typename T>
  std::vector<T> gather(const T& mine) {
    std::vector<T> out(static_cast<std::size_t>(size_));
    out[static_cast<std::size_t>(rank_)] = mine;
    host().all_gather(reinterpret_cast<std::byte*>(out.data()), Bytes(sizeof(T)));
    return out;
  }
  std::string broadcast_text(std::string text, int root);

  // Within the memory that collectives work on.
  virtual void copy(std::byte* to, const std::byte* from, std::size_t bytes, void* queue);
  virtual void zero(std::byte* to, std::size_t bytes, void* queue);

  // Ends all ranks, with this line on standard error.
  [[noreturn]] virtual void abort(ErrorCode code, const std::string& line) = 0;
  // The same, without a line, when this process exits.
  virtual void abort_at_exit(ErrorCode /*code*/) {}
  // Told when steps begin, and what one takes: whoever stays away from a collective for many times
  // as long hangs.
  virtual void expect_steps(double /*seconds*/) {}
  // Told when a rank has nothing more to say, before it leaves.
  virtual void finish() {}

  const Traffic& traffic() const { return traffic_; }
  void reset_traffic() { traffic_ = {}; }

  // The one for host memory: itself, unless its collectives work on device memory.
  virtual Communicator& host() { return *this; }

 protected:
  virtual bool sums(ir::DType dtype) const = 0;  // in an order of its own
  virtual void sum_all(std::byte* data, std::int64_t count, ir::DType dtype, void* queue) = 0;
  virtual void sum_parts(std::byte* data, std::int64_t count, ir::DType dtype, void* queue) = 0;
  // Which bytes of the data are a rank's.
  using Parts = std::span<const Interval<std::int64_t>>;
  // The sums of the own part, where it cannot be made in the order of ranks.
  virtual void sum_own(const std::byte* data, Parts parts, std::byte* out, ir::DType dtype,
                       void* queue);
  // Part `rank` of every other rank's data, in the order of ranks, without its own.
  virtual void exchange(const std::byte* data, Parts parts, std::byte* received, void* queue) = 0;
  virtual void gather_parts(std::byte* data, Parts parts, void* queue) = 0;
  virtual void send_to_all(std::byte* data, std::int64_t bytes, int root, void* queue) = 0;
  // Where sums in the order of ranks are made: data (own part) and what was received.
  virtual void add_in_order(std::byte* own, const std::byte* received, std::int64_t count,
                            ir::DType dtype, void* queue);

 private:
  class Timed;
  void sum_in_order(std::byte* data, Parts parts, ir::DType dtype, std::byte* scratch, void* queue);

  int rank_;
  int size_;
  Traffic traffic_;
};

std::shared_ptr<Communicator> make_self_communicator();
// Rank 0 of so many that are not there: to plan for them. It knows sizes; a collective ends the
// process.
std::shared_ptr<Communicator> make_paper_communicator(int ranks);

}  // namespace plimsoll::dist
