#include "plimsoll/plan/memories/placement.h"

#include <algorithm>

namespace plimsoll::plan {
PlacementModel::PlacementModel(const Plan& plan, MemoryTraffic traffic,
                               const schedule::DeviceProfile& profile)
    : traffic_(std::move(traffic)), profile_(profile) {
  for (const PlanBuffer& buffer : plan.buffers) bytes_.push_back(buffer.bytes.value);
}

Placement PlacementModel::all_home() const {
  Placement out;
  for (const BufferTraffic& buffer : traffic_.buffers) {
    out.level.emplace_back(buffer.touches.size(), std::uint8_t{0});
    out.rest.emplace_back(buffer.touches.size(), std::uint8_t{0});
  }
  return out;
}

std::vector<std::int64_t> PlacementModel::capacities() const {
  std::vector<std::int64_t> out;
  for (const schedule::MemoryLevel& level : profile_.memories) out.push_back(level.bytes.value);
  return out;
}

double PlacementModel::step_seconds(const Placement& placement, std::size_t step) const {
  const StepTraffic& traffic = traffic_.steps[step];
  if (traffic.touches.empty()) return traffic.parts.seconds;
  double memory = 0;
  for (const auto& [buffer, which] : traffic.touches) {
    const Touch& touch = traffic_.buffers[as_index(buffer)].touches[as_index(which)];
    const std::uint8_t level = placement.level[as_index(buffer)][as_index(which)];
    if (level == 0) {
      memory += (touch.read_bytes + touch.written_bytes) / profile_.memory_bytes_per_second;
      continue;
    }
    const schedule::MemoryLevel& at = profile_.memories[level - 1U];
    memory += touch.read_bytes / at.read_bytes_per_second +
              touch.written_bytes / at.write_bytes_per_second;
  }
  return traffic.parts.with_memory(memory, traffic.home_seconds);
}

double PlacementModel::copy_seconds(const Window& window, bool out) const {
  const schedule::CopyRates& rates = profile_.memories[window.level - 1U].copies;
  const Bytes bytes(bytes_[as_index(window.buffer)]);
  return out ? rates.out_seconds(bytes) : rates.in_seconds(bytes);
}

std::vector<double> PlacementModel::starts(const Placement& placement) const {
  std::vector<double> out{0};
  out.reserve(traffic_.steps.size() + 1);
  for (std::size_t s = 0; s < traffic_.steps.size(); ++s)
    out.push_back(out.back() + step_seconds(placement, s));
  return out;
}

std::vector<Window> PlacementModel::windows_of(const Placement& placement) const {
  std::vector<Window> out;
  for (std::size_t b = 0; b < traffic_.buffers.size(); ++b) {
    const BufferTraffic& buffer = traffic_.buffers[b];
    const auto& level = placement.level[b];
    for (std::size_t i = 0; i < level.size();) {
      std::size_t end = i + 1;
      bool written = buffer.touches[i].writes;
      while (end < level.size() && level[end] == level[i] &&
             (level[i] == 0 || !placement.rest[b][end - 1]))
        written = buffer.touches[end++].writes || written;
      if (level[i] != 0) {
        Window window;
        window.buffer = static_cast<std::int32_t>(b);
        window.level = level[i];
        window.first = static_cast<std::int32_t>(i);
        window.last = static_cast<std::int32_t>(end - 1);
        window.copies_in = i > 0 || buffer.source;
        const bool wanted = end < level.size() || buffer.lasting;
        window.copies_out = written && wanted && !must_leave(b);
        out.push_back(window);
      }
      i = end;
    }
  }
  return out;
}

namespace {

// Windows by step: the last that was added comes first.
class ByStep {
 public:
  ByStep(std::size_t steps, std::size_t windows) : head_(steps, -1), next_(windows, -1) {}
  void add(std::int32_t step, std::size_t window) {
    next_[window] = head_[as_index(step)];
    head_[as_index(step)] = static_cast<std::int32_t>(window);
  }
  template <typename Visit>
  void at(std::int32_t step, Visit visit) const {
    for (std::int32_t w = head_[as_index(step)]; w >= 0; w = next_[as_index(w)]) visit(as_index(w));
  }

 private:
  std::vector<std::int32_t> head_, next_;
};

}  // namespace

Evaluated PlacementModel::evaluate(const Placement& placement,
                                   const std::vector<std::int64_t>& capacity) const {
  Evaluated out;
  out.windows = windows_of(placement);
  const std::vector<double> begins = starts(placement);
  const auto steps = static_cast<std::int32_t>(traffic_.steps.size());
  const std::size_t count = out.windows.size();
  ByStep wanted(as_index(steps), count), issued(as_index(steps), count),
      left(as_index(steps), count);
  for (std::size_t w = 0; w < count; ++w) {
    const Window& window = out.windows[w];
    const auto& touches = traffic_.buffers[as_index(window.buffer)].touches;
    if (window.copies_in) wanted.add(touches[as_index(window.first)].step, w);
    if (window.copies_out) left.add(touches[as_index(window.last)].step, w);
  }
  // Backwards: each copy in ends when it is wanted, or when the next one has to begin.
  double next = begins.back();
  double copying = 0;
  std::int32_t at = steps;
  for (std::int32_t s = steps - 1; s >= 0; --s) {
    wanted.at(s, [&](std::size_t w) {
      Window& window = out.windows[w];
      const auto& touches = traffic_.buffers[as_index(window.buffer)].touches;
      const double seconds = copy_seconds(window, false);
      copying += seconds;
      const std::int32_t earliest =
          window.first == 0 ? 0 : touches[as_index(window.first - 1)].step + 1;
      next = std::max(std::min(next, begins[as_index(s)]) - seconds,
                      begins[as_index(std::min(earliest, s))]);
      at = std::min(at, s);
      while (at > 0 && begins[as_index(at)] > next) --at;
      window.issue = std::clamp(at, std::min(earliest, s), s);
      issued.add(window.issue, w);
    });
  }
  // Forwards: what is late is waited for.
  std::vector<double> arrives(out.windows.size(), 0);
  double now = 0, in_free = 0, out_free = 0, last = 0;
  std::vector<double> sent(out.windows.size(), 0);
  for (std::int32_t s = 0; s < steps; ++s) {
    issued.at(s, [&](std::size_t w) {
      in_free = std::max(in_free, now) + copy_seconds(out.windows[w], false);
      arrives[w] = in_free;
    });
    wanted.at(s, [&](std::size_t w) { now = std::max(now, arrives[w]); });
    now += begins[as_index(s) + 1] - begins[as_index(s)];
    left.at(s, [&](std::size_t w) {
      const double seconds = copy_seconds(out.windows[w], true);
      copying += seconds;
      out_free = std::max(out_free, now) + seconds;
      sent[w] = out_free - now;
    });
    last = std::max({last, now, out_free, in_free});
  }
  out.seconds = last + profile_.copy_tax * copying;
  // Places, in steps.
  std::vector<std::vector<std::int64_t>> change(capacity.size(),
                                                std::vector<std::int64_t>(as_index(steps) + 1, 0));
  for (std::size_t w = 0; w < out.windows.size(); ++w) {
    Window& window = out.windows[w];
    const auto& touches = traffic_.buffers[as_index(window.buffer)].touches;
    if (!window.copies_in) window.issue = touches[as_index(window.first)].step;
    window.release = touches[as_index(window.last)].step + 1;
    const double until = begins[as_index(window.release)] + sent[w];
    const std::int32_t next_touch = as_index(window.last) + 1 < touches.size()
                                        ? touches[as_index(window.last) + 1].step
                                        : steps;
    while (window.copies_out && window.release < next_touch &&
           begins[as_index(window.release)] < until)
      ++window.release;
    if (must_leave(as_index(window.buffer)) && traffic_.buffers[as_index(window.buffer)].lasting)
      window.release = steps;
    change[window.level - 1U][as_index(window.issue)] += bytes_[as_index(window.buffer)];
    change[window.level - 1U][as_index(window.release)] -= bytes_[as_index(window.buffer)];
  }
  for (std::size_t level = 0; level < capacity.size(); ++level) {
    std::int64_t held = 0, most = 0;
    for (const std::int64_t step : change[level]) most = std::max(most, held += step);
    out.most_bytes.push_back(most);
    out.over_bytes += std::max<std::int64_t>(0, most - capacity[level]);
  }
  return out;
}

}  // namespace plimsoll::plan
