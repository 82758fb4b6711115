// Which form each of many weights takes, so that together they have few enough bytes and cost as
// little time as that allows.
//
// A weight stands somewhere (as its file has it, or as the model computes with it), and its forms
// are further places: fewer bytes, and more time or less. What may be done is a list of steps, each
// from where one weight stands to a smaller form:
//
//   w   37.7 MB, 1.0 ms       step  w -> q8_0   saves 27.7 MB, 0.2 ms faster
//       10.0 MB, 0.8 ms q8_0        w -> q4_k   saves  4.7 MB for 0.6 ms more
//        9.4 MB, 1.9 ms csr         (csr saves 0.6 MB for 1.1 ms: q4_k is better than that)
//        5.3 MB, 1.4 ms q4_k
//
// Steps come in the order of seconds for a saved byte, what is faster too first, so the steps of
// one weight follow the lower hull of its places. From where steps begin to cost time, the first n
// of all are the fastest choice with no more bytes than they leave (Dantzig's greedy, exact where a
// step may be taken in part). Stopping at the first n that fit costs at most the last step more
// than the best choice there is.
//
// Cost: F^2 for a weight of F forms, and sorting. Seconds are given; deterministic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll::store {

struct FormPlace {
  std::uint64_t bytes = 0;
  double seconds = 0;
};

struct FormStep {
  std::size_t weight = 0;
  std::size_t place = 0;    // that it goes to
  std::uint64_t saved = 0;  // bytes
  double seconds = 0;       // more than before; negative: fewer
  double for_a_byte() const { return seconds / static_cast<double>(saved); }
};

// places[w][0] is where weight w stands. Places of as many bytes or more are never taken.
std::vector<FormStep> steps_to_smaller_forms(std::span<const std::vector<FormPlace>> places);

}  // namespace plimsoll::store
