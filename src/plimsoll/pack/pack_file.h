// The flow of `plimsoll pack`: read a problem -> pack it -> (checked inside) -> write offsets.
//
// `.json` is our own format, anything else MiniMalloc's CSV (docs/formats/packing.md). The CSV has
// no column for memories, so that an output of several must be JSON; on stdout it is JSON then.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "plimsoll/base/result.h"
#include "plimsoll/pack/pack.h"

namespace plimsoll::pack {

struct PackRequest {
  std::string problem;   // a file
  std::string capacity;  // "1MiB"; empty: the file's own
  std::string deadline = "10s";
  std::string method = "auto";  // skyline, exact, by-size, ...
  std::string output;           // a file for the offsets; empty: none
  std::string old_packing;      // whose offsets become hints, by id
  std::string slab;             // no buffer crosses a multiple of it
  std::string without;          // ideas of the search to leave out: "memo,backjump"
  double two_ended =
      -1;  // buffers that live at least this fraction to the front; < 0: no such rule
  bool minimize = false;
  bool json = false;    // the report as JSON too
  PackOptions options;  // the rest: threads, seed, ...
  // What is being done, for as long as what is returned lives.
  std::function<std::shared_ptr<void>(const std::string& what, std::optional<double> deadline)>
      on_progress;
};

struct PackReport {
  std::int64_t buffers = 0;
  bool packed = true;  // false: no offsets were found
  Bytes height;
  Bytes lower_bound;
  double gap = 0;  // height / lower bound - 1
  std::string status;
  std::string method;
  double seconds = 0;
  bool interrupted = false;  // by PackOptions::stop: the best until then
  std::string json;          // all of it as one object, where that was asked
  std::string offsets;       // as the file would hold them; empty without
  Status verdict;  // the error that a packing which does not fit is (exit 4 or 5), core included
};

// Writes the offsets when they fit and there is a file for them.
Result<PackReport> pack_file(const PackRequest& request);

// The independent verifier on two files; the height.
Result<Bytes> check_packing_file(const std::string& problem, const std::string& packing);

// "tiling", "training" or "random" problems; writes CSV, or JSON when the ending says so.
Status generate_problem(const std::string& family, std::size_t n, std::uint64_t seed, double holes,
                        const std::string& path);

}  // namespace plimsoll::pack
