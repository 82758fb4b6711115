// What a run on several ranks adds to a run on one: joining, agreeing, planning once, reporting.
//
//   join_ranks        who are we? MPI's ranks where mpirun or srun started us
//   agree_on_model    all ranks have the same graph (or plan file): compared by hash before
//                     anything else is said, so that a rank that was started otherwise is named
//   share_plan        rank 0 plans, the others are handed its plan: searches that look at the clock
//                     would find different ones
//   finish_ranks      what every rank held, in one report
//
// A rank that fails ends all of them. Rank 0 says its errors as a program of one process does, and
// ends the others when it exits; another rank waits a moment first, because what fails on it has
// mostly failed on rank 0 too, and one line is enough.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "plimsoll/base/result.h"
#include "plimsoll/dist/communicator.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/plan/plan.h"
#include "plimsoll/runtime/run.h"
#include "plimsoll/schedule/link.h"

namespace plimsoll::api {

// What a user may say about ranks.
struct RankRequest {
  int ranks = 0;             // 0: not said
  std::string bucket_bytes;  // of gradients sent together; empty: by the law of the link
  std::string reduction;     // "any" or "fixed"; empty: fixed on the host, any on cards
  std::string shard;  // "optimizer,gradients,weights": of which each rank keeps a part; "auto"
  bool dense_tables = false;     // gradients of tables are summed whole, not as rows
  bool sync_batch_norm = false;  // statistics of batch norm are those of all ranks
  std::string link;  // "400Gb/s": between ranks that are only planned for; empty: the profile's
};

// What ranks share, each keeping a part; one needs those before it.
struct Shard {
  bool optimizer = false;
  bool gradients = false;
  bool weights = false;
  bool automatic = false;  // the least of these with which a budget holds
};
Result<Shard> parse_shard(const std::string& text);

// As many as a run will have.
struct Ranks {
  std::shared_ptr<dist::Communicator> communicator;  // null: one process, nothing to say
  Bytes bucket;                                      // zero: by the law of the link
  std::optional<bool> fixed_order;                   // absent: where the host adds
  std::optional<schedule::Link> link;                // absent: the profile's
  Shard shard;
  bool dense_tables = false;     // no rewrite/sparse_gradients.h
  bool sync_batch_norm = false;  // rewrite/sync_batch_norm.h

  bool several() const { return communicator != nullptr; }
  int rank() const { return several() ? communicator->rank() : 0; }
  int size() const { return several() ? communicator->size() : 1; }
};

// Whether this process has to start the ranks itself (launch_ranks.h).
bool must_launch(const RankRequest& request);
Result<Ranks> join_ranks(const RankRequest& request);
// Ranks on paper: nobody is started, nothing is sent.
Result<Ranks> imagine_ranks(const RankRequest& request);
// Cores of this machine, shared among its ranks; one of four or more is left to the thread that
// talks to other ranks.
int threads_of_rank(const dist::Communicator& communicator);

Status agree_on_model(const Ranks& ranks, const std::string& name, const std::string& text);
// On rank 0 `plan` is what was planned; on the others it becomes that.
Status share_plan(const Ranks& ranks, plan::Plan& plan);
// "run.jsonl" becomes "run.1.jsonl".
std::string name_for_rank(const std::string& path, int rank);

// The size of buckets for the gradients that the graph sums over ranks. Ranks that share state have
// little memory, and a bucket lies whole beside everything else while it is summed: theirs are
// smaller.
Bytes bucket_for(const Ranks& ranks, const schedule::Link& link, const ir::Graph& graph,
                 bool shares_state = false);

void bind_ranks(const Ranks& ranks, runtime::RunOptions& how);
void finish_ranks(const Ranks& ranks, runtime::RunReport& report);
// A failed run ends all ranks; the error is the caller's to say.
void fail_ranks(const Ranks& ranks, const Error& error);

}  // namespace plimsoll::api
