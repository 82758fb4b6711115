#include "plimsoll/api/ranks.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/comma_list.h"
#include "plimsoll/base/content_hash.h"
#include "plimsoll/base/log.h"
#include "plimsoll/base/threads.h"
#include "plimsoll/dist/open_communicator.h"
#include "plimsoll/plan/plan_file.h"
#include "plimsoll/runtime/rank_state.h"

namespace plimsoll::api {
namespace {

struct ModelMark {
  std::uint64_t hash = 0;
  std::array<char, 64> name{};
};

// What does not depend on whether the ranks are there.
Result<Ranks> understood(const RankRequest& request) {
  Ranks out;
  if (!request.reduction.empty()) {
    PLIMSOLL_TRY(const dist::Reduction reduction, dist::parse_reduction(request.reduction));
    out.fixed_order = reduction == dist::Reduction::kFixed;
  }
  if (!request.bucket_bytes.empty()) {
    PLIMSOLL_TRY(out.bucket, parse_byte_size(request.bucket_bytes));
    if (out.bucket.value < 1)
      return fail(ErrorCode::kUsage, "--bucket-bytes {}: expects at least 1 byte",
                  request.bucket_bytes);
  }
  PLIMSOLL_TRY(out.shard, parse_shard(request.shard));
  out.dense_tables = request.dense_tables;
  out.sync_batch_norm = request.sync_batch_norm;
  if (!request.link.empty()) {
    PLIMSOLL_TRY(out.link, schedule::parse_link(request.link));
  }
  return out;
}

}  // namespace

Result<Shard> parse_shard(const std::string& text) {
  Shard out;
  if (text.empty()) return out;
  if (text == "auto") {
    out.automatic = true;
    return out;
  }
  for (const std::string_view word : comma_list(text)) {
    if (word != "optimizer" && word != "gradients" && word != "weights")
      return fail(ErrorCode::kUsage,
                  "--shard '{}': expects optimizer, gradients and weights, or auto", word);
    out.optimizer = true;
    out.gradients |= word != "optimizer";
    out.weights |= word == "weights";
  }
  return out;
}

bool must_launch(const RankRequest& request) {
  return request.ranks > 1 && !dist::started_as_rank();
}

Result<Ranks> join_ranks(const RankRequest& request) {
  PLIMSOLL_TRY(Ranks out, understood(request));
  if (!dist::started_as_rank()) {
    const char* const alone = !request.shard.empty() ? "--shard"
                              : out.bucket.value > 0 ? "--bucket-bytes"
                              : request.dense_tables ? "--sparse-as-dense"
                                                     : nullptr;
    if (alone != nullptr && request.ranks < 2)
      return fail(ErrorCode::kUsage, "{}: there is one rank; give --ranks N", alone);
    if (const int tasks = dist::tasks_without_mpi(); tasks > 0)
      log::warn("srun started {} tasks without MPI: each trains alone; srun --mpi=pmix joins them",
                tasks);
    return out;
  }
  PLIMSOLL_TRY(out.communicator, dist::open_mpi());
  if (request.ranks > 0 && request.ranks != out.size())
    return fail(ErrorCode::kUsage, "--ranks {}: mpirun started {}", request.ranks, out.size());
  if (out.rank() > 0) log::start("error");
  return out;
}

Result<Ranks> imagine_ranks(const RankRequest& request) {
  PLIMSOLL_TRY(Ranks out, understood(request));
  if (request.ranks > 1) {
    out.communicator = dist::make_paper_communicator(request.ranks);
    return out;
  }
  if (out.bucket.value > 0 || out.link || out.fixed_order || !request.shard.empty() ||
      out.dense_tables)
    return fail(ErrorCode::kUsage,
                "--bucket-bytes, --link, --reduction, --shard and --sparse-as-dense: there is one "
                "rank; give --ranks N");
  return out;
}

int threads_of_rank(const dist::Communicator& communicator) {
  const int share = std::max(1, resolve_threads(0) / communicator.local_size());
  return share >= 4 ? share - 1 : share;
}

Status agree_on_model(const Ranks& ranks, const std::string& name, const std::string& text) {
  if (!ranks.several() || ranks.communicator->name() == "paper") return {};
  ModelMark mine;
  mine.hash = content_hash(std::as_bytes(std::span(text)));
  std::memcpy(mine.name.data(), name.data(), std::min(name.size(), mine.name.size() - 1));
  const std::vector<ModelMark> all = ranks.communicator->gather(mine);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank].hash == all[0].hash) continue;
    return bad_input(
        "rank {} runs '{}' (hash {}), rank 0 '{}' (hash {}): all ranks must be "
        "started with the same model, sizes and options",
        rank, all[rank].name.data(), hash_text(all[rank].hash), all[0].name.data(),
        hash_text(all[0].hash));
  }
  return {};
}

Status share_plan(const Ranks& ranks, plan::Plan& plan) {
  if (!ranks.several() || ranks.size() == 1) return {};
  const std::string text =
      ranks.communicator->broadcast_text(ranks.rank() == 0 ? plan::to_json(plan) : "", 0);
  if (ranks.rank() == 0) return {};
  PLIMSOLL_TRY(plan, plan::parse_plan(text));
  return {};
}

std::string name_for_rank(const std::string& path, int rank) {
  std::filesystem::path out(path);
  const std::string extension = out.extension();
  out.replace_extension();
  return out.string() + "." + std::to_string(rank) + extension;
}

Bytes bucket_for(const Ranks& ranks, const schedule::Link& link, const ir::Graph& graph,
                 bool shares_state) {
  if (ranks.bucket.value > 0) return ranks.bucket;
  Bytes all;
  for (const ir::Node& node : graph.nodes) {
    if (node.op != "all_reduce") continue;
    for (const ValueId output : node.outputs) all += ir::bytes_of(graph.value(output).type);
  }
  // A sum in the order of ranks is two messages to every other one (parts, then their sums): of
  // those there are never more than twelve in a step.
  constexpr std::int64_t kMostSums = 6;
  const Bytes fast = std::max(schedule::bucket_size(link, ranks.size(), all),
                              Bytes((all.value + kMostSums - 1) / kMostSums));
  if (!shares_state) return fast;
  // A tenth of its time is latency, or there are many already.
  constexpr double kLatencies = 10;
  constexpr std::int64_t kMostShared = 32;
  const auto least =
      static_cast<std::int64_t>(kLatencies * link.latency_seconds * link.bytes_per_second);
  return std::min(fast, Bytes(std::max(all.value / kMostShared, least)));
}

void bind_ranks(const Ranks& ranks, runtime::RunOptions& how) {
  if (!ranks.several()) return;
  const std::shared_ptr<dist::Communicator> comm = ranks.communicator;
  how.on_start = [comm, next = std::move(how.on_start)](runtime::Executor& executor) -> Status {
    if (next) PLIMSOLL_RETURN_IF_ERROR(next(executor));
    comm->reset_traffic();
    return runtime::share_state(executor, *comm);
  };
  if (how.stop != nullptr) {
    how.agree = [comm](bool stop) {
      const std::vector<std::int64_t> all = comm->gather<std::int64_t>(stop ? 1 : 0);
      return std::any_of(all.begin(), all.end(), [](std::int64_t asked) { return asked != 0; });
    };
  }
}

void finish_ranks(const Ranks& ranks, runtime::RunReport& report) {
  if (!ranks.several()) return;
  for (const std::int64_t peak : ranks.communicator->gather<std::int64_t>(report.peak.value))
    report.ranks->peak_by_rank.emplace_back(peak);
  ranks.communicator->finish();
}

void fail_ranks(const Ranks& ranks, const Error& error) {
  if (!ranks.several()) return;
  if (ranks.rank() > 0) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    ranks.communicator->abort(error.code, fmt::format("rank {}: {}", ranks.rank(), error.message));
  }
  ranks.communicator->abort_at_exit(error.code);
}

}  // namespace plimsoll::api
