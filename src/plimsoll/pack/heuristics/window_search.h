// Window search: a large packing that misses the bound is repaired where it is highest.
//
// A skyline pass over a large problem ends above the bound at a few moments only: among a million
// random buffers two or three. So take the highest body, cut a window of time around it, and pack
// the window again and again while everything else keeps its place; a pass over a window of some
// ten thousand bodies takes milliseconds. Then go to what is the highest now.
//
//   bodies inside the window    are free; they are packed anew by skyline passes (skyline.h)
//   bodies across its edge      are obstacles at the places they have
//   bodies outside              do not matter
//
//        height    .-.                Every pass has other priorities: size x lifetime^w for one w
//      bound ------|-|---------       after the other, with noise from the second round on. The
//              |edge   edge|          best pass is kept.
//
// Where to cut. The bodies alive at the highest moment reach to both sides; the window takes as
// much again, so that they have neighbours to be moved, and then more, to the moment of fewest live
// bytes within as much again: few bodies cross an edge there and those that do leave room. Windows
// are kept from step to step as long as they do not overlap; one that overlaps a new one is given
// up.
//
// Rejected: squeaky wheel inside windows (heights jump about without a trend); packing the most
// loaded moments first and all others around them (others do not find places); windows of a few
// hundred bodies for the exact search (bodies of random problems reach too far).
//
// Cost: O(w log w) per step for w bodies in a window. A packing only gets better. Plain models, one
// thread.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/pack/budget.h"
#include "plimsoll/pack/heuristics/skyline.h"
#include "plimsoll/pack/model/bodies.h"

namespace plimsoll::pack {

struct WindowOptions {
  std::int64_t target = 0;  // bytes: where to stop
  PassRules rules = {};
  std::uint64_t seed = 1;
};

// Improves `places` as far as the budget goes; true when it did.
bool search_windows(const BodyModel& model, const WindowOptions& options, Budget& budget,
                    std::vector<std::int64_t>& places);

}  // namespace plimsoll::pack
