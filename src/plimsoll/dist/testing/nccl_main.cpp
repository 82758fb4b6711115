// The contract of communicators on NCCL: `dist_nccl 1`, one rank on card 0.
//
// `dist_nccl 2` tries two processes on one card. NCCL refuses a card that it sees twice on a host,
// so each process says that it is another one (NCCL_HOSTID), and they talk through sockets.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <memory_resource>
#include <new>
#include <string>

#include "plimsoll/dist/open_communicator.h"
#include "plimsoll/dist/testing/communicator_contract.h"
#include "plimsoll/dist/testing/forked_ranks.h"

namespace plimsoll::dist {
namespace {

// Memory that the host fills and compares and the card sums.
class ManagedMemory final : public std::pmr::memory_resource {
  void* do_allocate(std::size_t bytes, std::size_t) override {
    void* out = nullptr;
    if (cudaMallocManaged(&out, bytes) != cudaSuccess) throw std::bad_alloc();
    return out;
  }
  void do_deallocate(void* memory, std::size_t, std::size_t) override { cudaFree(memory); }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }
};

int keep_the_contract(const std::shared_ptr<Communicator>& host) {
  if (host->size() > 1) {
    ::setenv("NCCL_HOSTID", ("plimsoll" + std::to_string(host->rank())).c_str(), 1);
    ::setenv("NCCL_SOCKET_IFNAME", "lo", 0);
  }
  const auto comm = open_nccl(host, 0);
  if (!comm) {
    std::fprintf(stderr, "rank %d: %s\n", host->rank(), comm.error().message.c_str());
    return 6;
  }
  static ManagedMemory managed;
  std::pmr::set_default_resource(&managed);
  int wrong = 0;
  for (const ContractCase& one : communicator_contract()) {
    if (one.adds_in_order && !(*comm)->adds_in_order()) {
      std::printf("rank %d of %d, %s: not asked, NCCL adds in an order of its own\n", host->rank(),
                  host->size(), one.name.c_str());
      continue;
    }
    const std::string found = one.run(**comm);
    std::printf("rank %d of %d, %s: %s\n", host->rank(), host->size(), one.name.c_str(),
                found.empty() ? "kept" : found.c_str());
    wrong += !found.empty();
  }
  (*comm)->finish();
  return wrong > 0 ? 1 : 0;
}

}  // namespace
}  // namespace plimsoll::dist

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 1;
  return plimsoll::dist::run_forked_ranks(ranks, plimsoll::dist::keep_the_contract) == 0 ? 0 : 1;
}
