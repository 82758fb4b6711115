// Training steps whose gradients NCCL sums: `nccl_steps 1`, one rank on card 0.
//
// `nccl_steps 2` tries two processes on one card. NCCL refuses a card that it sees twice on a host,
// so each process says that it is another one (NCCL_HOSTID), and they talk through sockets. Each
// rank trains small models for a few steps, by a plan (a step is a CUDA graph from the second on,
// collectives included) and on demand, and then:
//
//   - the weights of all ranks are the same, byte for byte;
//   - a run with one rank leaves what a run without ranks leaves.
//
// The ranks are forked (dist/testing/forked_ranks.h): no mpirun is needed.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "plimsoll/api/pipeline.h"
#include "plimsoll/api/testing/small_run.h"
#include "plimsoll/base/content_hash.h"
#include "plimsoll/dist/open_communicator.h"
#include "plimsoll/dist/testing/forked_ranks.h"
#include "plimsoll/kernels/collective/rank_backend.h"

namespace plimsoll::api {
namespace {

struct Trained {
  std::uint64_t weights = 0;  // a hash of their bytes
  std::vector<double> losses;
  std::int64_t messages = 0;
};

Result<Trained> train(const std::string& model, bool on_demand,
                      const std::shared_ptr<kernels::Backend>& card,
                      const std::shared_ptr<dist::Communicator>& comm) {
  Pipeline p;
  p.request = small_request(model);
  p.request.optimizer = "adamw";
  p.device = "cuda";
  p.measure = false;
  p.on_demand = on_demand;
  p.planning.deterministic = true;
  p.running.steps = 4;
  p.ranks.communicator = comm;
  p.backend = comm ? kernels::make_rank_backend(card, comm, !on_demand) : card;
  Trained out;
  p.running.on_end = [&](runtime::Executor& executor) -> Status {
    std::vector<std::byte> all;
    for (std::size_t v = 0; v < executor.graph().values.size(); ++v) {
      if (executor.graph().values[v].kind != ir::ValueKind::kWeight) continue;
      PLIMSOLL_TRY(const std::vector<std::byte> bytes, executor.read(ValueId(v)));
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    out.weights = content_hash(all);
    return {};
  };
  PLIMSOLL_RETURN_IF_ERROR(advance(p, Stage::kRun));
  out.losses = p.report.losses;
  if (p.report.ranks) out.messages = p.report.ranks->messages;
  return out;
}

// What is wrong; empty: nothing.
std::string wrong_with(const Trained& got, const Result<Trained>& alone, dist::Communicator& host) {
  for (const double loss : got.losses)
    if (!std::isfinite(loss)) return "a loss is not finite";
  for (const std::uint64_t other : host.gather(got.weights))
    if (other != got.weights) return "the weights differ from another rank's";
  if (host.size() > 1) return {};
  if (!alone) return "alone: " + alone.error().message;
  return alone->weights == got.weights ? "" : "the weights are not those of a run without ranks";
}

int train_everything(const std::shared_ptr<dist::Communicator>& host) {
  if (host->size() > 1) {
    ::setenv("NCCL_HOSTID", ("plimsoll" + std::to_string(host->rank())).c_str(), 1);
    ::setenv("NCCL_SOCKET_IFNAME", "lo", 0);
  }
  const auto card = kernels::open_cuda_backend({});
  const auto comm =
      card ? dist::open_nccl(host, 0) : Result<std::shared_ptr<dist::Communicator>>(forward(card));
  if (!comm) {
    std::fprintf(stderr, "rank %d: %s\n", host->rank(), comm.error().message.c_str());
    return 6;
  }
  int wrong = 0;
  for (const std::string model : {"mlp", "resnet18", "gpt2"}) {
    for (const bool on_demand : {false, true}) {
      const auto alone =
          host->size() == 1 ? train(model, on_demand, *card, nullptr) : Result<Trained>(Trained{});
      const auto got = train(model, on_demand, *card, *comm);
      const std::string found =
          got ? wrong_with(*got, alone, *host) : "failed: " + got.error().message;
      std::printf("rank %d of %d, %s %s: %s, loss %.6f, %lld messages a step\n", host->rank(),
                  host->size(), model.c_str(), on_demand ? "on demand" : "planned",
                  found.empty() ? "right" : found.c_str(),
                  got && !got->losses.empty() ? got->losses.back() : 0.0,
                  got ? static_cast<long long>(got->messages) : 0LL);
      std::fflush(stdout);
      wrong += !found.empty();
      if (!got) return 1;  // the others wait for this rank in vain, and are ended
    }
  }
  (*comm)->finish();
  return wrong > 0 ? 1 : 0;
}

}  // namespace
}  // namespace plimsoll::api

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 1;
  return plimsoll::dist::run_forked_ranks(ranks, plimsoll::api::train_everything) == 0 ? 0 : 1;
}
