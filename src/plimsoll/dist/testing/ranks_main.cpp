// The contract of communicators on ranks that mpirun started: `mpirun -n 4 dist_ranks`.
#include <cstdio>

#include "plimsoll/dist/open_communicator.h"
#include "plimsoll/dist/testing/communicator_contract.h"

int main() {
  using namespace plimsoll::dist;
  const auto comm = open_mpi();
  if (!comm) {
    std::fprintf(stderr, "%s\n", comm.error().message.c_str());
    return 6;
  }
  int wrong = 0;
  for (const ContractCase& one : communicator_contract()) {
    const std::string found = one.run(**comm);
    if (found.empty()) continue;
    std::fprintf(stderr, "%s, rank %d: %s\n", one.name.c_str(), (*comm)->rank(), found.c_str());
    ++wrong;
  }
  (*comm)->finish();
  return wrong > 0 ? 1 : 0;
}
