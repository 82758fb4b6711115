// What ranks have between them, and what collectives take on it.
//
// A message takes latency + bytes / rate. n ranks sum B bytes in a ring, in 2 (n - 1) messages of
// B / n each, or up and down a tree, in 2 log2(n) messages of B; whichever is faster. So a ring
// moves 2 (n - 1) / n of the bytes through every rank, whatever n is, and a tree is for small ones.
//
// Buckets. Few large messages pay little latency, but the last of them can only leave when the last
// gradient is there, and nothing hides it. With T the time of all bytes on the link and k buckets,
// what is not hidden is about k latencies and T / k, least at k = sqrt(T / latency). More than
// kMostBuckets are never worth it: the last one is small then already.
#pragma once

#include <cstdint>
#include <string>

#include "plimsoll/base/result.h"
#include "plimsoll/base/units.h"

namespace plimsoll::schedule {

struct Link {
  double bytes_per_second = 2e9;   // from a rank to another, while all talk
  double latency_seconds = 30e-6;  // of a message
  bool operator==(const Link&) const = default;
};

inline constexpr int kMostBuckets = 8;

// "400Gb/s", "25GB/s", "10GiB/s": bits or bytes a second; "400Gb/s,5us" with a latency.
Result<Link> parse_link(const std::string& text);

double all_reduce_seconds(const Link& link, std::int64_t ranks, Bytes bytes);
// Of one half: each rank keeps a part, or hands its part round. `bytes` are those of all parts.
double scatter_seconds(const Link& link, std::int64_t ranks, Bytes bytes);
double broadcast_seconds(const Link& link, std::int64_t ranks, Bytes bytes);

// For gradients of so many bytes in all.
Bytes bucket_size(const Link& link, std::int64_t ranks, Bytes all);

}  // namespace plimsoll::schedule
