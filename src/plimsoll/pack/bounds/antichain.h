// The heaviest antichain: the most bytes that several streams can have in use at once.
//
// Under clocks (problem.h) there is no line of time along which live bytes could be added up. What
// takes its place: buffer a is out of b's way when everybody who used a is known to be done before
// b begins. That is a partial order, buffers of which none is out of another's way are an
// antichain, and all of an antichain can be alive together. So the heaviest one is the peak of
// live bytes of the program, a lower bound for every packing of it.
//
// How: by Dilworth's theorem, weighted. Bytes that a leaves are offered to those that come after
// it; the most bytes that can be handed on in this way, taken from the sum of all, leaves the
// heaviest antichain. Handing on is a maximum flow. Instead of an arc for every pair (a, b) the
// `ready` clocks are put on a few chains (one per stream, when they come from a program), on each
// of which they only grow: those that may follow a are a suffix of every chain, and a suffix is
// O(log n) nodes of a tree over the chain.
//
//   source ─size─▶ a ─▶ nodes of the trees ─▶ places on the chains ─size─▶ sink
//
// Example: two streams that never wait for each other, one with buffers of 3 then 5 bytes, the
// other with 4 then 2. Each first hands its bytes to its own second: 3 + 2 are handed on, 14 - 5 =
// 9 = 5 + 4 remain.
//
// Cost: a flow over n·streams·log n arcs (Dinic's algorithm), counted: work beyond `most_work` arc
// visits and clocks that need more than kMostChains chains give no answer. Deterministic.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plimsoll/pack/model/problem.h"

namespace plimsoll::pack {

struct Antichain {
  std::int64_t bytes = 0;
  std::vector<BufferId> members;
};

inline constexpr std::size_t kMostChains = 16;

// Of the buffers marked in `counted` (one entry per buffer), all of which are alive at some time.
std::optional<Antichain> heaviest_antichain(const Problem& problem,
                                            const std::vector<char>& counted,
                                            std::int64_t most_work = 200'000'000);

}  // namespace plimsoll::pack
