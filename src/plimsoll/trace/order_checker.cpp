#include "plimsoll/trace/order_checker.h"

#include <algorithm>

#include <fmt/format.h>

#include "plimsoll/memory/page_map.h"

namespace plimsoll::trace {

// Pieces of physically contiguous memory behind a range of addresses.
std::vector<std::pair<std::uint64_t, std::uint64_t>> OrderChecker::physical(
    memory::Address address, std::int64_t size) const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> pieces;
  const memory::Address end = address + static_cast<memory::Address>(size);
  for (memory::Address at = address; at < end;) {
    const memory::Address page_end = (at / memory::kPage + 1) * memory::kPage;
    const memory::Address stop = std::min(end, page_end);
    const std::uint64_t begin = device_.physical(at);
    if (!pieces.empty() && pieces.back().second == begin) {
      pieces.back().second = begin + (stop - at);
    } else {
      pieces.emplace_back(begin, begin + (stop - at));
    }
    at = stop;
  }
  return pieces;
}

void OrderChecker::allocated(memory::Address address, Bytes bytes, StreamId stream) {
  const std::int64_t size = memory::granules_of(bytes) << memory::kGranuleBits;
  live_[address] = {size, {stream}};
  for (const auto& [begin, end] : physical(address, size)) take(begin, end, stream);
}

void OrderChecker::take(std::uint64_t begin, std::uint64_t end, StreamId stream) {
  auto at = freed_.upper_bound(begin);
  if (at != freed_.begin() && std::prev(at)->second.end > begin) --at;
  while (at != freed_.end() && at->first < end) {
    const std::uint64_t low = at->first;
    const Range range = std::move(at->second);
    at = freed_.erase(at);
    for (const Stamp& stamp : range.stamps) {
      ++checked_;
      if (violation_.empty() && !device_.is_behind(stream, stamp)) {
        violation_ = fmt::format("memory freed on stream {} was given to stream {} without a wait",
                                 stamp.stream, stream.value);
      }
    }
    if (low < begin) freed_[low] = {begin, range.stamps};
    if (range.end > end) at = freed_.emplace(end, Range{range.end, range.stamps}).first;
  }
}

void OrderChecker::used(memory::Address address, StreamId stream) {
  std::vector<StreamId>& streams = live_[address].streams;
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
}

void OrderChecker::freed(memory::Address address) {
  const auto found = live_.find(address);
  if (found == live_.end()) return;
  std::vector<Stamp> stamps;
  for (const StreamId stream : found->second.streams) stamps.push_back(device_.work_on(stream));
  for (const auto& [begin, end] : physical(address, found->second.size)) {
    freed_[begin] = {end, stamps};
  }
  live_.erase(found);
}

void OrderChecker::waits(StreamId stream, StreamId peer) {
  const memory::OrderMark mark = device_.record(peer);
  device_.wait(stream, mark);
  device_.forget(mark);
}

}  // namespace plimsoll::trace
