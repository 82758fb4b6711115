#include "plimsoll/runtime/call_trace.h"

#include <algorithm>

namespace plimsoll::runtime {
namespace {

// A call's own events come before its end, its end before the next call.
std::size_t at_start(std::size_t call) {
  return 2 * call;
}
std::size_t at_end(std::size_t call) {
  return 2 * call + 1;
}

std::int64_t end_of(const Handed& handed) {
  return handed.begin.value + handed.bytes.value;
}

}  // namespace

CallTrace::Blocks::iterator CallTrace::first_behind(std::int64_t begin) {
  auto block = blocks_.upper_bound(begin);
  if (block != blocks_.begin() && std::prev(block)->second.end > begin) --block;
  return block;
}

CallTrace::Block& CallTrace::open(const Handed& handed, std::int64_t now, std::size_t order) {
  trace::Event event;
  event.kind = trace::EventKind::kAllocation;
  event.category = handed.category;
  event.name = trace_.strings.intern(handed.name);
  event.bytes = handed.bytes;
  event.address = static_cast<std::uint64_t>(handed.begin.value);
  event.start = event.end = now;
  events_.push_back({order, event});
  Block& block = blocks_[handed.begin.value];
  block = {end_of(handed), event, false, now, order / 2};
  return block;
}

void CallTrace::close(const Block& block, std::int64_t now, std::size_t order) {
  trace::Event event = block.allocation;
  event.kind = trace::EventKind::kFree;
  event.start = event.end = now;
  events_.push_back({order, event});
}

void CallTrace::read(const Handed& handed, const Call& call, std::size_t number) {
  if (handed.bytes.value <= 0) return;
  auto block = first_behind(handed.begin.value);
  if (block == blocks_.end() || block->first >= end_of(handed)) {
    open(handed, call.start, at_start(number));
    block = blocks_.find(handed.begin.value);
  }
  for (; block != blocks_.end() && block->first < end_of(handed); ++block) {
    block->second.last = std::max(block->second.last, call.end);
    block->second.last_call = number;
  }
}

void CallTrace::write(const Handed& handed, const Call& call, std::size_t number) {
  if (handed.bytes.value <= 0) return;
  auto block = first_behind(handed.begin.value);
  const auto reads = [&](const Block& one) {
    return std::any_of(call.reads.begin(), call.reads.end(), [&](const Handed& input) {
      return input.begin.value < one.end &&
             static_cast<std::int64_t>(one.allocation.address) < end_of(input);
    });
  };
  if (block != blocks_.end() && block->first <= handed.begin.value &&
      block->second.end >= end_of(handed) && reads(block->second)) {
    return;  // in place; reading it was its touch
  }
  while (block != blocks_.end() && block->first < end_of(handed)) {
    const bool before = block->second.last <= call.start;
    close(block->second, std::min(block->second.last, call.start),
          before ? at_end(block->second.last_call) : at_start(number));
    block = blocks_.erase(block);
  }
  Block& fresh = open(handed, call.start, at_start(number));
  fresh.last = call.end;
}

void CallTrace::hand_out(const Handed& source, bool stays, std::int64_t now) {
  if (source.bytes.value <= 0) return;
  auto block = first_behind(source.begin.value);
  if (block != blocks_.end() && block->first <= source.begin.value &&
      block->second.end >= end_of(source))
    return;
  while (block != blocks_.end() && block->first < end_of(source)) {
    close(block->second, now, 0);
    block = blocks_.erase(block);
  }
  open(source, now, 0).stays = stays;
  flush();
}

void CallTrace::add_step(std::vector<Call> calls, std::span<const Handed> outputs) {
  std::stable_sort(calls.begin(), calls.end(),
                   [](const Call& a, const Call& b) { return a.start < b.start; });
  std::int64_t over = 0;
  for (std::size_t number = 0; number < calls.size(); ++number) {
    const Call& call = calls[number];
    for (const Handed& handed : call.reads) read(handed, call, number + 1);
    for (const Handed& handed : call.writes) write(handed, call, number + 1);
    trace::Event event;
    event.kind = trace::EventKind::kOperator;
    event.name = trace_.strings.intern(call.name);
    event.phase = trace_.strings.intern(call.phase);
    event.stream = trace::StreamId{call.stream};
    event.start = call.start;
    event.end = call.end;
    events_.push_back({at_start(number + 1), event});
    over = std::max(over, call.end);
  }
  for (const Handed& output : outputs) {
    for (auto block = first_behind(output.begin.value);
         block != blocks_.end() && block->first < end_of(output); ++block) {
      block->second.last = over;
      block->second.last_call = calls.size();
    }
  }
  for (auto block = blocks_.begin(); block != blocks_.end();) {
    if (block->second.stays) {
      block->second.last_call = 0;
      ++block;
    } else {
      close(block->second, block->second.last, at_end(block->second.last_call));
      block = blocks_.erase(block);
    }
  }
  flush();
}

void CallTrace::flush() {
  std::stable_sort(events_.begin(), events_.end(), [](const Stamped& a, const Stamped& b) {
    return std::pair(a.event.start, a.order) < std::pair(b.event.start, b.order);
  });
  for (const Stamped& stamped : events_) trace_.events.push_back(stamped.event);
  events_.clear();
}

}  // namespace plimsoll::runtime
