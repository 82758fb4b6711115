#include "plimsoll/dist/mpi/rank_watch.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

namespace plimsoll::dist {
namespace {

constexpr double kPeriod = 0.25;  // seconds between wakings
constexpr int kBeatTag = 1;

}  // namespace

RankWatch::RankWatch(int rank, int size, std::mutex& mpi, const MpiOptions& options,
                     std::function<void(const std::string&)> lost)
    : rank_(rank), size_(size), mpi_(mpi), options_(options), lost_(std::move(lost)) {
  MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
  std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
  int length = 0;
  MPI_Get_processor_name(name.data(), &length);
  std::vector<char> names(name.size() * static_cast<std::size_t>(size));
  MPI_Allgather(name.data(), MPI_MAX_PROCESSOR_NAME, MPI_CHAR, names.data(), MPI_MAX_PROCESSOR_NAME,
                MPI_CHAR, comm_);
  for (int other = 0; other < size; ++other) {
    if (other == rank || (rank != 0 && other != 0)) continue;
    others_.emplace_back();
    others_.back().rank = other;
    others_.back().host = names.data() + static_cast<std::size_t>(other) * name.size();
  }
  for (Outgoing& out : outgoing_) out.requests.assign(others_.size(), MPI_REQUEST_NULL);
  for (Other& other : others_)
    MPI_Irecv(&other.incoming, sizeof(Beat), MPI_BYTE, other.rank, kBeatTag, comm_, &other.receive);
  thread_ = std::thread([this] { run(); });
}

void RankWatch::expect(double step_seconds) {
  patience_ = std::max(options_.patience_seconds, 10 * step_seconds);
}

void RankWatch::stop() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(waking_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void RankWatch::run() {
  const auto period = std::chrono::duration<double>(kPeriod);
  for (;;) {
    bool last = false;
    {
      std::unique_lock lock(waking_);
      last = wake_.wait_for(lock, period, [this] { return stopping_; });
    }
    listen();
    speak(last);
    if (last) return;
    judge();
  }
}

void RankWatch::listen() {
  const std::scoped_lock lock(mpi_);
  for (Other& other : others_) {
    ++other.silent;
    for (int arrived = 1; arrived != 0 && !other.gone;) {
      arrived = 0;
      MPI_Test(&other.receive, &arrived, MPI_STATUS_IGNORE);
      if (arrived == 0) break;
      other.heard = other.incoming;
      other.silent = 0;
      other.gone = other.heard.last != 0;
      if (!other.gone)
        MPI_Irecv(&other.incoming, sizeof(Beat), MPI_BYTE, other.rank, kBeatTag, comm_,
                  &other.receive);
    }
  }
}

// Two buffers in turn: one may still be on its way.
void RankWatch::speak(bool last) {
  const std::scoped_lock lock(mpi_);
  Outgoing& out = outgoing_[static_cast<std::size_t>(turn_)];
  int sent = 0;
  MPI_Testall(static_cast<int>(out.requests.size()), out.requests.data(), &sent,
              MPI_STATUSES_IGNORE);
  if (sent == 0 && !last) return;
  if (sent == 0)
    MPI_Waitall(static_cast<int>(out.requests.size()), out.requests.data(), MPI_STATUSES_IGNORE);
  turn_ = 1 - turn_;
  out.beat = {entered_.load(std::memory_order_relaxed), last ? 1 : 0};
  for (std::size_t i = 0; i < others_.size(); ++i) {
    if (!others_[i].gone)
      MPI_Isend(&out.beat, sizeof(Beat), MPI_BYTE, others_[i].rank, kBeatTag, comm_,
                &out.requests[i]);
  }
  if (!last) return;
  for (Outgoing& each : outgoing_)
    MPI_Waitall(static_cast<int>(each.requests.size()), each.requests.data(), MPI_STATUSES_IGNORE);
}

void RankWatch::judge() {
  for (const Other& other : others_) {
    if (!other.gone && other.silent * kPeriod >= options_.silence_seconds)
      lost_(
          fmt::format("rank {} on {} has not been heard of for {:.0f} s: it was stopped, or its "
                      "machine cannot be reached; all ranks end",
                      other.rank, other.host, other.silent * kPeriod));
  }
  if (rank_ == 0) look_for_hanging();
}

void RankWatch::look_for_hanging() {
  const double patience = patience_.load();
  std::int64_t most = entered_.load(std::memory_order_relaxed);
  const std::int64_t own = most;
  std::int64_t least = most;
  const Other* behind = nullptr;
  for (const Other& other : others_) {
    most = std::max(most, other.heard.entered);
    if (other.heard.entered >= least || other.gone) continue;
    least = other.heard.entered;
    behind = &other;
  }
  waiting_ = least < most && least == slowest_ ? waiting_ + 1 : 0;
  slowest_ = least;
  if (patience <= 0 || waiting_ * kPeriod < patience) return;
  const std::string who = least == own ? fmt::format("rank {}", rank_)
                                       : fmt::format("rank {} on {}", behind->rank, behind->host);
  lost_(
      fmt::format("{} hangs: it has not come to collective {} for {:.0f} s, in which others "
                  "wait; all ranks end",
                  who, least + 1, waiting_ * kPeriod));
}

}  // namespace plimsoll::dist
