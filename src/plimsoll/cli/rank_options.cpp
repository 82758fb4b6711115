#include "plimsoll/cli/rank_options.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kRanksGroup = "Ranks";

}  // namespace

void bind_rank_options(Command& command, api::RankRequest& ranks, const char* what) {
  command.add_option("--ranks", ranks.ranks, what)
      .type_name("N")
      .between(1, 1 << 20)
      .group(kRanksGroup);
  command
      .add_option("--bucket-bytes", ranks.bucket_bytes,
                  "gradients that are sent to other ranks together (default: by the law of the "
                  "link, at most 6 sums of 2 messages a step)")
      .type_name("SIZE")
      .group(kRanksGroup);
  command
      .add_option("--reduction", ranks.reduction,
                  "fixed: gradients are added in the order of ranks, the same bits whatever the "
                  "buckets (default; on cards any)")
      .type_name("any|fixed")
      .group(kRanksGroup);
  command
      .add_option("--shard", ranks.shard,
                  "what each rank keeps a part of: optimizer, optimizer,gradients or "
                  "optimizer,gradients,weights; auto: the least with which --budget holds")
      .type_name("LIST")
      .group(kRanksGroup);
  command
      .add_flag("--sync-batch-norm", ranks.sync_batch_norm,
                "batch norm takes the statistics of all ranks' examples, as one rank with all of "
                "them does")
      .group(kRanksGroup);
  command
      .add_flag("--sparse-as-dense", ranks.dense_tables,
                "gradients of tables of tokens are summed whole, not as the rows that were read")
      .group(kRanksGroup);
}

void bind_link(Command& command, api::RankRequest& ranks) {
  command
      .add_option("--link", ranks.link,
                  "between ranks: a rate, and a latency behind a comma: 400Gb/s or 10GB/s,50us "
                  "(default: the profile's)")
      .type_name("RATE")
      .group(kRanksGroup);
}

}  // namespace plimsoll::cli
