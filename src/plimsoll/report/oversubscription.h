// Slowdown against how much too small the memory is: what `plimsoll oversubscribe` found, as a
// table, a picture and a page.
//
//   factor    arena of the default plan / capacity
//   slowdown  seconds of a step / seconds of the same program when it has all the memory it wants
//   bound     no program that moves so many bytes is faster: the larger of its computing and of the
//             bus, as slowdown; of one that only copies also what has to go out and come back
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/base/units.h"

namespace plimsoll::report {

struct OversubscriptionPoint {
  std::string policy;
  double factor = 1;
  Bytes capacity;
  bool model = false;   // computed, not run
  std::string refused;  // why there is none; the rest is empty then
  double seconds = 0;
  double slowdown = 0;
  double bound = 0;  // as slowdown
  double stall_seconds = 0;
  double predicted_seconds = 0;  // of a plan
  Bytes in;
  Bytes out;
  std::int64_t faults = 0;
  std::int64_t stalls = 0;
  std::int64_t evictions = 0;
  std::int64_t dead_evictions = 0;
  std::int64_t recomputed = 0;
  Bytes encoded;
};

struct Oversubscription {
  std::string title;
  std::string device;
  Bytes arena;              // of the default plan
  double plan_seconds = 0;  // of its step
  double free_seconds = 0;  // of a step without a plan and without a limit
  double out_rate = 0;      // bytes per second
  double in_rate = 0;
  double both_rate = 0;
  std::vector<OversubscriptionPoint> points;  // by policy, then factor

  std::vector<std::string> policies() const;  // in order of appearance
};

std::string to_text(const Oversubscription& curves);
std::string to_svg(const Oversubscription& curves, int width = 900, int height = 520);
std::string to_html(const Oversubscription& curves);

}  // namespace plimsoll::report
