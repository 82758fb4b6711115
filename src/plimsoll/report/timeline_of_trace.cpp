#include "plimsoll/report/timeline_of_trace.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "plimsoll/base/byte_size.h"

namespace plimsoll::report {
namespace {

Kind kind_of(trace::Category category) {
  switch (category) {
    case trace::Category::kUnknown:
      return Kind::kUnlabelled;
    case trace::Category::kInput:
      return Kind::kInputs;
    case trace::Category::kOutput:
      return Kind::kOutputs;
    case trace::Category::kWeight:
      return Kind::kWeights;
    case trace::Category::kActivation:
      return Kind::kActivations;
    case trace::Category::kGradient:
      return Kind::kGradients;
    case trace::Category::kOptimizer:
      return Kind::kOptimizer;
    case trace::Category::kTemporary:
    case trace::Category::kScratch:
      return Kind::kTemporaries;
    case trace::Category::kStaging:
      return Kind::kStaging;
  }
  return Kind::kUnlabelled;
}

bool is_library_frame(std::string_view file) {
  const auto within = [file](std::string_view folder) {
    return file.find(folder) != std::string_view::npos;
  };
  const auto ends = [file](std::string_view suffix) { return file.ends_with(suffix); };
  return file.empty() || within("-packages/torch/") || within("pytorch/torch/") || within("??") ||
         file.starts_with("<") || ends(".cpp") || ends(".cc") || ends(".cu") || ends(".h") ||
         ends(".c");
}

// What follows the folder of installed packages: "transformers/models/gpt2/modeling_gpt2.py".
std::string_view inside_packages(std::string_view file) {
  constexpr std::string_view kFolder = "-packages/";
  const auto found = file.rfind(kFolder);
  return found == std::string_view::npos ? std::string_view() : file.substr(found + kFolder.size());
}

// The phase of what our executor does beside computing says what it is, in the words of a plan.
bool is_move(std::string_view phase) {
  return phase == "send_out" || phase == "bring_in" || phase == "encode" || phase == "decode";
}

class TraceReader {
 public:
  TraceReader(const trace::Trace& trace, const TraceFacts& facts, Timeline& timeline)
      : trace_(trace), facts_(facts), timeline_(timeline) {
    unnamed_ = timeline.texts.intern(kUnnamed);
    index_memories();
    held_.resize(timeline.memories.size());
    stack_sites_.resize(trace.stacks.size());
    shared_folder_ = find_shared_folder();
    timeline.events = static_cast<std::int64_t>(trace.events.size());
  }

  void read() {
    for (const trace::InitialSegment& segment : trace_.initial) {
      reserve(segment.device, believable(segment.size));
      for (const trace::LiveBlock& block : segment.blocks) open_initial(segment, block);
    }
    for (const trace::Event& event : trace_.events) take(event);
    finish();
  }

 private:
  struct Place {
    std::uint8_t memory;
    std::uint64_t address;
    bool operator==(const Place&) const = default;
  };
  struct PlaceHash {
    std::size_t operator()(const Place& place) const {
      return (place.address ^ std::uint64_t{place.memory} << 56) * 0x9e3779b97f4a7c15ULL >> 7;
    }
  };
  struct Site {
    TextId name{0};
    TextId origin{0};
    bool known = false;
  };

  // The frame that names a stack: the user's own innermost, or the innermost of all.
  const trace::Frame* own_frame(std::size_t stack) const {
    for (const trace::Frame& frame : trace_.stacks[stack]) {
      if (!is_library_frame(trace_.strings.text(frame.file))) return &frame;
    }
    return trace_.stacks[stack].empty() ? nullptr : &trace_.stacks[stack].front();
  }

  // Of the files that are no installed packages: how many characters their common folders have.
  std::size_t find_shared_folder() const {
    std::optional<std::string_view> shared;
    for (std::size_t stack = 0; stack < trace_.stacks.size(); ++stack) {
      const trace::Frame* frame = own_frame(stack);
      if (frame == nullptr) continue;
      const std::string_view file = trace_.strings.text(frame->file);
      if (is_library_frame(file) || !inside_packages(file).empty()) continue;
      const std::string_view folder = file.substr(0, file.rfind('/') + 1);
      if (!shared) shared = folder;
      std::size_t same = 0;
      while (same < std::min(shared->size(), folder.size()) && (*shared)[same] == folder[same])
        ++same;
      shared = shared->substr(0, same);
    }
    if (!shared) return 0;
    const auto slash = shared->rfind('/');
    return slash == std::string_view::npos ? 0 : slash + 1;
  }

  std::string shown_file(std::string_view file) const {
    if (file.empty()) return "(no file)";
    if (const std::string_view inside = inside_packages(file); !inside.empty())
      return std::string(inside);
    return std::string(is_library_frame(file) ? file : file.substr(shared_folder_));
  }

  void index_memories() {
    std::map<int, std::uint8_t> found;
    for (const trace::Event& event : trace_.events) {
      if (event.kind == trace::EventKind::kAllocation) found.try_emplace(event.device);
    }
    for (const trace::InitialSegment& segment : trace_.initial) {
      if (!segment.blocks.empty()) found.try_emplace(segment.device);
    }
    for (auto& [device, memory] : found) {
      memory = static_cast<std::uint8_t>(std::min<std::size_t>(timeline_.memories.size(), 255));
      if (timeline_.memories.size() < 256)
        timeline_.memories.push_back(fmt::format("device {}", device));
    }
    if (found.empty()) timeline_.memories.push_back("device 0");
    memory_of_device_ = std::move(found);
  }

  Step now() const { return Step(static_cast<std::int64_t>(timeline_.seconds.size())); }

  // Wraps rather than overflows on times that no clock gives.
  static double seconds_between(std::int64_t begin, std::int64_t end) {
    return static_cast<double>(static_cast<std::int64_t>(static_cast<std::uint64_t>(end) -
                                                         static_cast<std::uint64_t>(begin))) *
           1e-9;
  }

  // Times of a trace may begin anywhere and, between threads, step back a little.
  void advance(std::int64_t start) {
    if (timeline_.seconds.empty()) origin_ = start;
    timeline_.seconds.push_back(
        timeline_.seconds.empty()
            ? 0
            : std::max(timeline_.seconds.back(), seconds_between(origin_, start)));
  }

  void open(const Place& place, Allocation allocation) {
    const auto [found, fresh] = open_.try_emplace(place, timeline_.allocations.size());
    if (!fresh) {
      ++overwritten_;
      timeline_.allocations[found->second].life.end = allocation.life.begin;
      found->second = timeline_.allocations.size();
    }
    timeline_.allocations.push_back(allocation);
  }

  void open_initial(const trace::InitialSegment& segment, const trace::LiveBlock& block) {
    Allocation allocation;
    allocation.name = timeline_.texts.intern("allocated before the recording");
    allocation.kind = Kind::kBefore;
    allocation.memory = memory_of_device_[segment.device];
    allocation.stream = stream_index(segment.stream.value);
    allocation.bytes = believable(block.bytes.value > 0 ? block.bytes : block.size);
    allocation.place = place_of(block.address);
    allocation.phase = timeline_.texts.intern("before recording");
    open({allocation.memory, block.address}, allocation);
  }

  // Both keep sums inside an int64 whatever a file says: a block has at most a tebibyte.
  static Bytes believable(Bytes bytes) {
    return Bytes(std::clamp<std::int64_t>(bytes.value, 0, std::int64_t{1} << 40));
  }
  static Offset place_of(std::uint64_t address) {
    return Offset(
        static_cast<std::int64_t>(std::min<std::uint64_t>(address, std::uint64_t{1} << 61)));
  }

  // Whatever an event does, it is one time step.
  void take(const trace::Event& event) {
    apply(event);
    advance(event.start);
  }

  void apply(const trace::Event& event) {
    switch (event.kind) {
      case trace::EventKind::kAllocation:
        allocate(event);
        break;
      case trace::EventKind::kFree:
        release(event);
        break;
      case trace::EventKind::kOperator:
        run(event);
        break;
      case trace::EventKind::kPhase:
        phases_.push_back(&event);
        break;
      case trace::EventKind::kSegmentAlloc:
      case trace::EventKind::kSegmentMap:
        reserve(event.device, believable(event.bytes));
        break;
      case trace::EventKind::kSegmentFree:
      case trace::EventKind::kSegmentUnmap:
        reserve(event.device, Bytes() - believable(event.bytes));
        break;
      case trace::EventKind::kOutOfMemory:
        refuse(event);
        break;
      default:
        break;
    }
  }

  void allocate(const trace::Event& event) {
    Allocation allocation;
    const Site site = event.stack > 0 ? site_of(event.stack - 1) : Site{};
    const std::string_view given = trace_.strings.text(event.name);
    allocation.name = !given.empty() ? timeline_.texts.intern(given)
                      : site.known   ? site.name
                                     : unnamed_;
    allocation.origin = site.origin;
    allocation.kind = kind_of(event.category);
    allocation.layer = !given.empty()
                           ? timeline_.texts.intern(layer_of_source(given, allocation.kind))
                       : site.name == unnamed_ ? TextId{0}
                                               : site.name;
    allocation.phase = phase_at(event);
    allocation.memory = memory_of_device_[event.device];
    allocation.stream = stream_index(event.stream.value);
    allocation.bytes = believable(event.bytes);
    allocation.place = place_of(event.address);
    allocation.life.begin = now();
    open({allocation.memory, event.address}, allocation);
  }

  void release(const trace::Event& event) {
    const auto found = open_.find({memory_of_device_[event.device], event.address});
    if (found == open_.end()) {
      ++strays_;
      return;
    }
    Allocation& allocation = timeline_.allocations[found->second];
    allocation.life.end = now();
    allocation.last_reader = static_cast<std::int32_t>(timeline_.operators.size()) - 1;
    open_.erase(found);
  }

  // Devices without an allocation are not shown.
  void reserve(int device, Bytes change) {
    const auto memory = memory_of_device_.find(device);
    if (memory == memory_of_device_.end()) return;
    Bytes& held = held_[memory->second];
    held = believable(held + change);
    if (!timeline_.reserved.empty() && timeline_.reserved.back().time_step == now() &&
        timeline_.reserved.back().memory == memory->second) {
      timeline_.reserved.back().bytes = held;
    } else {
      timeline_.reserved.push_back({memory->second, now(), held});
    }
  }

  // The driver says what it had left: with the capacity known, the rest lies outside the allocator.
  void refuse(const trace::Event& event) {
    if (refusals_++ == 0)
      timeline_.notes.push_back(fmt::format("out of memory at event {}: {} asked for",
                                            grouped(now().value), human(event.bytes)));
    const auto memory = memory_of_device_.find(event.device);
    if (facts_.capacity.value <= 0 || memory == memory_of_device_.end() || memory->second != 0)
      return;
    const Bytes left(place_of(event.address).value);
    outside_ = std::max(outside_, facts_.capacity - left - held_[0]);
  }

  std::uint8_t stream_index(std::uint64_t stream) {
    const auto [found, fresh] = streams_.try_emplace(
        stream, static_cast<std::uint8_t>(std::min<std::size_t>(timeline_.streams.size(), 255)));
    if (!fresh) return found->second;
    if (timeline_.streams.size() < 255) {
      timeline_.streams.push_back(stream < 4096 ? fmt::format("{}", stream)
                                                : fmt::format("{:#x}", stream));
    } else if (timeline_.streams.size() == 255) {
      timeline_.streams.push_back("others");
    }
    return found->second;
  }

  void add_outside() {
    if (facts_.in_use.value > 0) {
      Bytes most;
      for (const Reserved& level : timeline_.reserved) {
        if (level.memory == 0) most = std::max(most, level.bytes);
      }
      most = std::max(most, peak_of(timeline_).bytes);
      outside_ = facts_.in_use - most;
      if (outside_.value < 0)
        timeline_.notes.push_back(fmt::format(
            "{} in use is less than the {} this allocator held: nothing is left for outside",
            human(facts_.in_use), human(most)));
    }
    outside_ = believable(outside_);
    if (outside_.value == 0) return;
    Allocation allocation;
    allocation.name = timeline_.texts.intern("outside the allocator");
    allocation.phase = timeline_.texts.intern("outside the allocator");
    allocation.kind = Kind::kOutside;
    allocation.bytes = outside_;
    allocation.place = Offset(std::int64_t{3} << 60);
    allocation.life = {Step(0), Step(timeline_.time_steps())};
    timeline_.allocations.push_back(allocation);
    timeline_.notes.push_back(fmt::format(
        "{} lie outside the allocator: {}; drawn over the whole recording", human(outside_),
        facts_.in_use.value > 0
            ? "what the device showed as used, without what the allocator held"
            : "capacity, without what was left and what the allocator held when memory ran out"));
  }

  void run(const trace::Event& event) {
    Operator& op = timeline_.operators.emplace_back();
    op.name = timeline_.texts.intern(trace_.strings.text(event.name));
    op.layer = timeline_.texts.intern(layer_of_name(trace_.strings.text(event.name)));
    op.phase = phase_at(event);
    const std::string_view phase = trace_.strings.text(event.phase);
    const bool computes = !is_move(phase);
    const bool lossy = !computes && trace_.strings.text(event.name).ends_with(", lossy)");
    op.what = computes ? timeline_.texts.intern("compute")
              : lossy  ? timeline_.texts.intern(std::string(phase) + "_lossy")
                       : op.phase;
    op.time_step = now();
    op.seconds = std::max(0.0, seconds_between(event.start, event.end));
    if (computes) last_phase_ = op.phase;
    last_end_ = operators_ran_ ? std::max(last_end_, event.end) : event.end;
    operators_ran_ = true;
  }

  TextId phase_at(const trace::Event& event) {
    const std::string_view own = trace_.strings.text(event.phase);
    if (!own.empty()) return timeline_.texts.intern(own);
    for (auto phase = phases_.rbegin(); phase != phases_.rend() && phase - phases_.rbegin() < 64;
         ++phase) {
      if ((*phase)->start <= event.start && event.start < (*phase)->end) {
        return timeline_.texts.intern(trace_.strings.text((*phase)->name));
      }
    }
    return last_phase_;
  }

  Site site_of(std::uint32_t stack) {
    if (stack >= stack_sites_.size()) return {};
    Site& site = stack_sites_[stack];
    if (site.known) return site;
    const trace::Frame* own = own_frame(stack);
    if (own == nullptr) {
      site = {unnamed_, TextId{0}, true};
      return site;
    }
    std::string lines;
    for (const trace::Frame& frame : trace_.stacks[stack]) {
      if (lines.size() >= kLongestText) break;
      lines += fmt::format("{} ({}:{})\n", trace_.strings.text(frame.function),
                           trace_.strings.text(frame.file), frame.line);
    }
    const std::string file = shown_file(trace_.strings.text(own->file));
    const TextId name = timeline_.texts.intern(
        fmt::format("{}:{} {}", file, own->line, trace_.strings.text(own->function)));
    if (timeline_.file_of_site.size() <= name.index())
      timeline_.file_of_site.resize(name.index() + 1, TextId{0});
    timeline_.file_of_site[name.index()] = timeline_.texts.intern(file);
    timeline_.has_stacks = true;
    site = {name, timeline_.texts.intern(lines), true};
    return site;
  }

  void finish() {
    const double last = timeline_.seconds.empty() ? 0 : timeline_.seconds.back();
    if (timeline_.seconds.empty()) timeline_.seconds.push_back(0);
    timeline_.seconds.push_back(
        std::max(last, operators_ran_ ? seconds_between(origin_, last_end_) : 0));
    const Step end(timeline_.time_steps());
    for (const auto& [place, index] : open_) timeline_.allocations[index].life.end = end;
    std::erase_if(timeline_.allocations, [](const Allocation& allocation) {
      return allocation.life.empty() || allocation.bytes.value <= 0;
    });
    link_producers();
    add_outside();
    if (timeline_.streams.empty()) timeline_.streams.push_back("0");
    if (refusals_ > 1)
      timeline_.notes.push_back(
          fmt::format("{} allocations were refused in all", grouped(refusals_)));
    if (strays_ > 0)
      timeline_.notes.push_back(
          fmt::format("{} frees of blocks the trace never allocated", grouped(strays_)));
    if (overwritten_ > 0) {
      timeline_.notes.push_back(
          fmt::format("{} allocations at an address that was still held: the older was ended there",
                      grouped(overwritten_)));
    }
    if (timeline_.texts.full())
      timeline_.notes.push_back("too many different names: some were not kept");
  }

  static bool is_source(Kind kind) {
    return kind == Kind::kBefore || kind == Kind::kInputs || kind == Kind::kWeights ||
           kind == Kind::kOptimizer;
  }

  // The operator that runs next after an allocation made room for its result, which belongs to its
  // layer whatever a model calls it.
  void link_producers() {
    for (Allocation& allocation : timeline_.allocations) {
      if (is_source(allocation.kind) || timeline_.operators.empty()) continue;
      const auto next = std::lower_bound(
          timeline_.operators.begin(), timeline_.operators.end(), allocation.life.begin,
          [](const Operator& op, Step time_step) { return op.time_step < time_step; });
      if (next == timeline_.operators.end()) continue;
      allocation.producer = static_cast<std::int32_t>(next - timeline_.operators.begin());
      if (next->layer != TextId{0}) allocation.layer = next->layer;
    }
  }

  const trace::Trace& trace_;
  const TraceFacts& facts_;
  Timeline& timeline_;
  TextId unnamed_{0};
  TextId last_phase_{0};
  std::int64_t origin_ = 0;
  std::int64_t last_end_ = 0;
  bool operators_ran_ = false;
  std::int64_t strays_ = 0;
  std::int64_t overwritten_ = 0;
  std::int64_t refusals_ = 0;
  Bytes outside_;
  std::vector<Bytes> held_;  // by memory
  std::unordered_map<std::uint64_t, std::uint8_t> streams_;
  std::vector<const trace::Event*> phases_;
  std::vector<Site> stack_sites_;
  std::size_t shared_folder_ = 0;
  std::map<int, std::uint8_t> memory_of_device_;
  std::unordered_map<Place, std::size_t, PlaceHash> open_;
};

// Aggregates the allocations too small to stay single. One for each stretch between changes would
// be as many as before, so each stretch of time steps gets the most that was alive in it.
void aggregate_small(Timeline& timeline, std::size_t most_allocations) {
  if (timeline.allocations.size() <= most_allocations) return;
  std::vector<std::int64_t> sizes;
  for (const Allocation& allocation : timeline.allocations) sizes.push_back(allocation.bytes.value);
  const auto cut = sizes.begin() + static_cast<std::ptrdiff_t>(most_allocations);
  std::nth_element(sizes.begin(), cut, sizes.end(), std::greater<>());
  const Bytes limit(*cut);
  constexpr std::int64_t kStretches = 4096;
  const std::int64_t width = (timeline.time_steps() + kStretches - 1) / kStretches;
  std::map<std::pair<int, Kind>, std::vector<Bytes>> change;
  std::size_t gathered = 0;
  std::erase_if(timeline.allocations, [&](const Allocation& allocation) {
    if (allocation.bytes > limit) return false;
    auto& alive = change[{allocation.memory, allocation.kind}];
    alive.resize(static_cast<std::size_t>(timeline.time_steps()) + 1);
    alive[static_cast<std::size_t>(allocation.life.begin.value)] += allocation.bytes;
    alive[static_cast<std::size_t>(allocation.life.end.value)] -= allocation.bytes;
    ++gathered;
    return true;
  });
  for (auto& [group, alive] : change) {
    Bytes sum;
    for (std::int64_t time_step = 0; time_step < timeline.time_steps(); time_step += width) {
      const std::int64_t end = std::min(time_step + width, timeline.time_steps());
      Bytes most;
      for (std::int64_t t = time_step; t < end; ++t)
        most = std::max(most, sum += alive[static_cast<std::size_t>(t)]);
      if (most.value == 0) continue;
      Allocation allocation;
      allocation.name = timeline.texts.intern("small allocations, summed");
      allocation.memory = static_cast<std::uint8_t>(group.first);
      allocation.kind = group.second;
      allocation.bytes = most;
      allocation.place = Offset(std::int64_t{1} << 61);
      allocation.life = {Step(time_step), Step(end)};
      timeline.allocations.push_back(allocation);
    }
  }
  timeline.notes.push_back(
      fmt::format("{} allocations of at most {} are drawn as sums, the most of every {} time steps",
                  grouped(static_cast<std::int64_t>(gathered)), human(limit), width));
}

void fill_alive(Timeline& timeline) {
  const std::vector<Bytes> alive = bytes_by_time_step(timeline);
  for (Operator& op : timeline.operators)
    op.alive = alive[static_cast<std::size_t>(op.time_step.value)];
}

}  // namespace

Timeline timeline_of(const trace::Trace& trace, std::string title, const TraceFacts& facts) {
  Timeline timeline;
  timeline.title = std::move(title);
  timeline.source = trace.source == "pytorch" ? "snapshot" : "trace";
  timeline.capacity = facts.capacity;
  TraceReader(trace, facts, timeline).read();
  fill_alive(timeline);
  aggregate_small(timeline, facts.most_allocations);
  sort_allocations(timeline);
  compact_places(timeline);
  return timeline;
}

}  // namespace plimsoll::report
