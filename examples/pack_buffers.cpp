// The packer alone: buffers with lifetimes in, offsets out.
#include <cstdio>

#include "plimsoll/pack/pack.h"

using namespace plimsoll;

int main() {
  pack::Problem problem;
  problem.buffers.push_back({.lifetime = {0, 3}, .size = 4_KiB, .fixed = {}, .hint = {}});
  problem.buffers.push_back({.lifetime = {3, 9}, .size = 4_KiB, .fixed = {}, .hint = {}});
  problem.buffers.push_back(
      {.lifetime = {0, 9}, .size = 8_KiB, .alignment = 64, .fixed = {}, .hint = {}});
  const auto packing = pack::pack(problem, {});
  if (!packing) {
    std::fprintf(stderr, "%s\n", packing.error().message.c_str());
    return 1;
  }
  for (std::size_t i = 0; i < packing->offsets.size(); ++i) {
    std::printf("buffer %zu at %lld\n", i, static_cast<long long>(packing->offsets[i].value));
  }
  std::printf("height %lld, %s\n", static_cast<long long>(packing->height().value),
              pack::name(packing->status));
  return packing->height() == 12_KiB ? 0 : 1;
}
