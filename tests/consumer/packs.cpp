#include <cstdio>

#include <plimsoll/pack/pack.h>

extern "C" int pack_in_c(void);

int main() {
  using namespace plimsoll;
  pack::Problem problem;
  problem.buffers.push_back({.lifetime = {0, 3}, .size = 4_bytes});
  problem.buffers.push_back({.lifetime = {3, 9}, .size = 4_bytes});
  problem.buffers.push_back({.lifetime = {0, 9}, .size = 8_bytes});
  const Result<pack::Packing> packing = pack::pack(problem, {});
  if (!packing || packing->height() != 12_bytes) return 1;
  std::printf("%s\n", pack::name(packing->status));
  return pack_in_c();
}
