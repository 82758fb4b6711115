// Problem: a Workload with its remedies applied, laid out for searching.
//
// The search touches neighbours millions of times a second, so names, optionals and nested vectors
// are gone: flat arrays, int32 indices, one packed list per relation. What a remedy forbids is
// already decided here: a value may be recomputed only if recompute is on, its task is not `once`
// and all of that task's outputs allow it; at most one encoding per value is left (the smallest
// allowed one).
//
// A Sequence is an order of first runs with the positions and sorted readers that go with it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plimsoll/schedule/remedies.h"
#include "plimsoll/schedule/workload/workload.h"

namespace plimsoll::schedule {

using Index = std::int32_t;
constexpr Index kNoIndex = -1;
// Stands in Problem::encoding for waiting in host memory, as a form of no bytes: how the interval
// search knows of swap.
constexpr Index kSwapForm = 1 << 20;
// The same of a value whose swaps are settled, which the interval search leaves as they are.
constexpr Index kSettledSwap = kSwapForm + 1;
constexpr bool is_swap(Index encoding) {
  return encoding >= kSwapForm;
}
// As a place in a vector.
constexpr std::size_t at(Index i) {
  return static_cast<std::size_t>(i);
}

// Many short lists in one array: list i is items[starts[i], starts[i + 1]).
struct Lists {
  std::vector<Index> starts{0};
  std::vector<Index> items;

  std::span<const Index> operator[](Index i) const {
    return std::span(items).subspan(at(starts[at(i)]), at(starts[at(i) + 1] - starts[at(i)]));
  }
  void close() { starts.push_back(static_cast<Index>(items.size())); }
};

struct Problem {
  explicit Problem(const Workload& workload, const Remedies& remedies, const CopyRates& copies);

  Index tasks = 0;
  Index values = 0;
  // per task
  std::vector<double> seconds;
  std::vector<std::int64_t> scratch;
  Lists inputs;
  Lists outputs;
  std::vector<char> rerunnable;
  // per value
  std::vector<std::int64_t> bytes;
  std::vector<Index> producer;    // kNoIndex: a source
  Lists readers;                  // tasks, ascending
  std::vector<char> keep;         // in memory at the end (the last version of a kept source too)
  std::vector<Index> in_place;    // the input whose memory it may take, or kNoIndex
  std::vector<char> must_take;    // ... and has to
  std::vector<Index> overwriter;  // the task that writes over it, or kNoIndex
  std::vector<char> swappable;
  std::vector<Index> encoding;  // index into Value::encodings, or kNoIndex
  std::vector<std::int64_t> encoded_bytes;
  std::vector<double> encode_seconds;
  std::vector<double> decode_seconds;
  std::vector<double> out_seconds;
  std::vector<double> in_seconds;

  bool has_overwriters = false;
  double total_seconds = 0;
  double copy_seconds = 0;  // of copying every swappable value out and in once

  bool recomputable(Index value) const {
    const Index task = producer[at(value)];
    return task != kNoIndex && rerunnable[at(task)];
  }
};

struct Sequence {
  Sequence() = default;
  Sequence(const Problem& problem, std::vector<Index> order);

  std::vector<Index> order;     // position -> task
  std::vector<Index> position;  // task -> position
  Lists readers;                // value -> positions of its readers, ascending
};

// The given order: 0, 1, 2, ...
Sequence given_sequence(const Problem& problem);

// The same problem with its tasks numbered by their places in `order`.
Problem renumbered(const Problem& problem, const Sequence& sequence);

// Whether the order respects data and "updates after every reader".
bool is_runnable(const Problem& problem, const std::vector<Index>& order);

}  // namespace plimsoll::schedule
