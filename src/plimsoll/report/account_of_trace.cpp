#include "plimsoll/report/account_of_trace.h"

#include <algorithm>
#include <map>
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
  return file.empty() || file.find("/torch/") != std::string_view::npos ||
         file.find("??") != std::string_view::npos || file.ends_with(".cpp") ||
         file.ends_with(".h") || file.ends_with(".c");
}

// The phase of what our executor does beside computing says what it is, in the words of a plan.
bool is_move(std::string_view phase) {
  return phase == "send_out" || phase == "bring_in" || phase == "encode" || phase == "decode";
}

class TraceReader {
 public:
  TraceReader(const trace::Trace& trace, const TraceFacts& facts, Account& account)
      : trace_(trace), facts_(facts), account_(account) {
    unnamed_ = account.texts.intern("unnamed");
    index_memories();
    held_.resize(account.memories.size());
    stack_sites_.resize(trace.stacks.size());
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

  void index_memories() {
    std::map<int, std::uint8_t> found;
    for (const trace::Event& event : trace_.events) {
      if (event.kind == trace::EventKind::kAllocation) found.try_emplace(event.device);
    }
    for (const trace::InitialSegment& segment : trace_.initial) {
      if (!segment.blocks.empty()) found.try_emplace(segment.device);
    }
    for (auto& [device, memory] : found) {
      memory = static_cast<std::uint8_t>(std::min<std::size_t>(account_.memories.size(), 255));
      if (account_.memories.size() < 256)
        account_.memories.push_back(fmt::format("device {}", device));
    }
    if (found.empty()) account_.memories.push_back("device 0");
    memory_of_device_ = std::move(found);
  }

  Step now() const { return Step(static_cast<std::int64_t>(account_.seconds.size())); }

  // Wraps rather than overflows on times that no clock gives.
  static double seconds_between(std::int64_t begin, std::int64_t end) {
    return static_cast<double>(static_cast<std::int64_t>(static_cast<std::uint64_t>(end) -
                                                         static_cast<std::uint64_t>(begin))) *
           1e-9;
  }

  // Times of a trace may begin anywhere and, between threads, step back a little.
  void advance(std::int64_t start) {
    if (account_.seconds.empty()) origin_ = start;
    account_.seconds.push_back(
        account_.seconds.empty()
            ? 0
            : std::max(account_.seconds.back(), seconds_between(origin_, start)));
  }

  void open(const Place& place, Band band) {
    const auto [found, fresh] = open_.try_emplace(place, account_.bands.size());
    if (!fresh) {
      ++overwritten_;
      account_.bands[found->second].life.end = band.life.begin;
      found->second = account_.bands.size();
    }
    account_.bands.push_back(band);
  }

  void open_initial(const trace::InitialSegment& segment, const trace::LiveBlock& block) {
    Band band;
    band.name = account_.texts.intern("allocated before the recording");
    band.kind = Kind::kBefore;
    band.memory = memory_of_device_[segment.device];
    band.stream = stream_index(segment.stream.value);
    band.bytes = believable(block.bytes.value > 0 ? block.bytes : block.size);
    band.place = place_of(block.address);
    band.phase = account_.texts.intern("before recording");
    open({band.memory, block.address}, band);
  }

  // Both keep sums inside an int64 whatever a file says: a block has at most a tebibyte.
  static Bytes believable(Bytes bytes) {
    return Bytes(std::clamp<std::int64_t>(bytes.value, 0, std::int64_t{1} << 40));
  }
  static Offset place_of(std::uint64_t address) {
    return Offset(
        static_cast<std::int64_t>(std::min<std::uint64_t>(address, std::uint64_t{1} << 61)));
  }

  void take(const trace::Event& event) {
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
    Band band;
    const Site site = event.stack > 0 ? site_of(event.stack - 1) : Site{};
    const std::string_view given = trace_.strings.text(event.name);
    band.name = !given.empty() ? account_.texts.intern(given) : site.known ? site.name : unnamed_;
    band.origin = site.origin;
    band.kind = kind_of(event.category);
    band.layer =
        given.empty() ? site.name : account_.texts.intern(layer_of_source(given, band.kind));
    band.phase = phase_at(event);
    band.memory = memory_of_device_[event.device];
    band.stream = stream_index(event.stream.value);
    band.bytes = believable(event.bytes);
    band.place = place_of(event.address);
    band.life.begin = now();
    open({band.memory, event.address}, band);
    advance(event.start);
  }

  void release(const trace::Event& event) {
    const auto found = open_.find({memory_of_device_[event.device], event.address});
    if (found == open_.end()) {
      ++strays_;
      return;
    }
    Band& band = account_.bands[found->second];
    band.life.end = now();
    band.last_reader = static_cast<std::int32_t>(account_.operators.size()) - 1;
    open_.erase(found);
    advance(event.start);
  }

  // Devices without an allocation are not shown.
  void reserve(int device, Bytes change) {
    const auto memory = memory_of_device_.find(device);
    if (memory == memory_of_device_.end()) return;
    Bytes& held = held_[memory->second];
    held = believable(held + change);
    if (!account_.reserved.empty() && account_.reserved.back().tick == now() &&
        account_.reserved.back().memory == memory->second) {
      account_.reserved.back().bytes = held;
    } else {
      account_.reserved.push_back({memory->second, now(), held});
    }
  }

  // The driver says what it had left: with the capacity known, the rest lies outside the allocator.
  void refuse(const trace::Event& event) {
    if (refusals_++ == 0)
      account_.notes.push_back(
          fmt::format("out of memory at event {}: {} asked for", now().value, human(event.bytes)));
    const auto memory = memory_of_device_.find(event.device);
    if (facts_.capacity.value <= 0 || memory == memory_of_device_.end() || memory->second != 0)
      return;
    const Bytes left(place_of(event.address).value);
    outside_ = std::max(outside_, facts_.capacity - left - held_[0]);
  }

  std::uint8_t stream_index(std::uint64_t stream) {
    const auto [found, fresh] = streams_.try_emplace(
        stream, static_cast<std::uint8_t>(std::min<std::size_t>(account_.streams.size(), 255)));
    if (!fresh) return found->second;
    if (account_.streams.size() < 255) {
      account_.streams.push_back(stream < 4096 ? fmt::format("{}", stream)
                                               : fmt::format("{:#x}", stream));
    } else if (account_.streams.size() == 255) {
      account_.streams.push_back("others");
    }
    return found->second;
  }

  void add_outside() {
    if (facts_.in_use.value > 0) {
      Bytes most;
      for (const Reserved& level : account_.reserved) {
        if (level.memory == 0) most = std::max(most, level.bytes);
      }
      most = std::max(most, peak_of(account_).bytes);
      outside_ = facts_.in_use - most;
      if (outside_.value < 0)
        account_.notes.push_back(fmt::format(
            "{} in use is less than the {} this allocator held: nothing is left for outside",
            human(facts_.in_use), human(most)));
    }
    outside_ = believable(outside_);
    if (outside_.value == 0) return;
    Band band;
    band.name = account_.texts.intern("outside the allocator");
    band.phase = account_.texts.intern("outside the allocator");
    band.kind = Kind::kOutside;
    band.bytes = outside_;
    band.place = Offset(std::int64_t{3} << 60);
    band.life = {Step(0), Step(account_.ticks())};
    account_.bands.push_back(band);
    account_.notes.push_back(fmt::format(
        "{} lie outside the allocator: {}; drawn over the whole recording", human(outside_),
        facts_.in_use.value > 0
            ? "what the device showed as used, without what the allocator held"
            : "capacity, without what was left and what the allocator held when memory ran out"));
  }

  void run(const trace::Event& event) {
    Operator& op = account_.operators.emplace_back();
    op.name = account_.texts.intern(trace_.strings.text(event.name));
    op.layer = account_.texts.intern(layer_of_name(trace_.strings.text(event.name)));
    op.phase = phase_at(event);
    const bool computes = !is_move(trace_.strings.text(event.phase));
    op.what = computes ? account_.texts.intern("compute") : op.phase;
    op.tick = now();
    op.seconds = std::max(0.0, seconds_between(event.start, event.end));
    if (computes) last_phase_ = op.phase;
    advance(event.start);
    last_end_ = operators_ran_ ? std::max(last_end_, event.end) : event.end;
    operators_ran_ = true;
  }

  TextId phase_at(const trace::Event& event) {
    const std::string_view own = trace_.strings.text(event.phase);
    if (!own.empty()) return account_.texts.intern(own);
    for (auto phase = phases_.rbegin(); phase != phases_.rend() && phase - phases_.rbegin() < 64;
         ++phase) {
      if ((*phase)->start <= event.start && event.start < (*phase)->end) {
        return account_.texts.intern(trace_.strings.text((*phase)->name));
      }
    }
    return last_phase_;
  }

  Site site_of(std::uint32_t stack) {
    if (stack >= stack_sites_.size()) return {};
    Site& site = stack_sites_[stack];
    if (site.known) return site;
    std::string lines;
    std::string name;
    for (const trace::Frame& frame : trace_.stacks[stack]) {
      const std::string_view file = trace_.strings.text(frame.file);
      const std::string line =
          fmt::format("{} ({}:{})", trace_.strings.text(frame.function), file, frame.line);
      if (name.empty() && !is_library_frame(file)) name = line;
      if (lines.size() < kLongestText) lines += line + "\n";
    }
    if (name.empty() && !lines.empty()) name = lines.substr(0, lines.find('\n'));
    site = {account_.texts.intern(name.empty() ? "unnamed" : name), account_.texts.intern(lines),
            true};
    return site;
  }

  void finish() {
    const double last = account_.seconds.empty() ? 0 : account_.seconds.back();
    if (account_.seconds.empty()) account_.seconds.push_back(0);
    account_.seconds.push_back(
        std::max(last, operators_ran_ ? seconds_between(origin_, last_end_) : 0));
    const Step end(account_.ticks());
    for (const auto& [place, index] : open_) account_.bands[index].life.end = end;
    std::erase_if(account_.bands,
                  [](const Band& band) { return band.life.empty() || band.bytes.value <= 0; });
    link_producers();
    add_outside();
    if (account_.streams.empty()) account_.streams.push_back("0");
    if (refusals_ > 1)
      account_.notes.push_back(
          fmt::format("{} allocations were refused in all", grouped(refusals_)));
    if (strays_ > 0)
      account_.notes.push_back(
          fmt::format("{} frees of blocks the trace never allocated", grouped(strays_)));
    if (overwritten_ > 0) {
      account_.notes.push_back(
          fmt::format("{} allocations at an address that was still held: the older was ended there",
                      grouped(overwritten_)));
    }
    if (account_.texts.full())
      account_.notes.push_back("too many different names: some were not kept");
  }

  // The operator that runs next after an allocation made room for its result.
  void link_producers() {
    for (Band& band : account_.bands) {
      if (band.kind == Kind::kBefore || account_.operators.empty()) continue;
      const auto next =
          std::lower_bound(account_.operators.begin(), account_.operators.end(), band.life.begin,
                           [](const Operator& op, Step tick) { return op.tick < tick; });
      if (next != account_.operators.end())
        band.producer = static_cast<std::int32_t>(next - account_.operators.begin());
    }
  }

  const trace::Trace& trace_;
  const TraceFacts& facts_;
  Account& account_;
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
  std::map<int, std::uint8_t> memory_of_device_;
  std::unordered_map<Place, std::size_t, PlaceHash> open_;
};

// Bands too small to stay single, summed: a band of bytes for each stretch between changes would be
// as many as before, so each stretch of ticks gets the most that was alive in it.
void gather_small(Account& account, std::size_t most_bands) {
  if (account.bands.size() <= most_bands) return;
  std::vector<std::int64_t> sizes;
  for (const Band& band : account.bands) sizes.push_back(band.bytes.value);
  const auto cut = sizes.begin() + static_cast<std::ptrdiff_t>(most_bands);
  std::nth_element(sizes.begin(), cut, sizes.end(), std::greater<>());
  const Bytes limit(*cut);
  constexpr std::int64_t kStretches = 4096;
  const std::int64_t width = (account.ticks() + kStretches - 1) / kStretches;
  std::map<std::pair<int, Kind>, std::vector<Bytes>> change;
  std::size_t gathered = 0;
  std::erase_if(account.bands, [&](const Band& band) {
    if (band.bytes > limit) return false;
    auto& alive = change[{band.memory, band.kind}];
    alive.resize(static_cast<std::size_t>(account.ticks()) + 1);
    alive[static_cast<std::size_t>(band.life.begin.value)] += band.bytes;
    alive[static_cast<std::size_t>(band.life.end.value)] -= band.bytes;
    ++gathered;
    return true;
  });
  for (auto& [group, alive] : change) {
    Bytes sum;
    for (std::int64_t tick = 0; tick < account.ticks(); tick += width) {
      const std::int64_t end = std::min(tick + width, account.ticks());
      Bytes most;
      for (std::int64_t t = tick; t < end; ++t)
        most = std::max(most, sum += alive[static_cast<std::size_t>(t)]);
      if (most.value == 0) continue;
      Band band;
      band.name = account.texts.intern("small allocations, summed");
      band.memory = static_cast<std::uint8_t>(group.first);
      band.kind = group.second;
      band.bytes = most;
      band.place = Offset(std::int64_t{1} << 61);
      band.life = {Step(tick), Step(end)};
      account.bands.push_back(band);
    }
  }
  account.notes.push_back(
      fmt::format("{} allocations of at most {} are drawn as sums, the most of every {} ticks",
                  grouped(static_cast<std::int64_t>(gathered)), human(limit), width));
}

void fill_alive(Account& account) {
  const std::vector<Bytes> alive = bytes_by_tick(account);
  for (Operator& op : account.operators) op.alive = alive[static_cast<std::size_t>(op.tick.value)];
}

}  // namespace

Account account_of(const trace::Trace& trace, std::string title, const TraceFacts& facts) {
  Account account;
  account.title = std::move(title);
  account.source = trace.source == "pytorch" ? "snapshot" : "trace";
  account.capacity = facts.capacity;
  TraceReader(trace, facts, account).read();
  fill_alive(account);
  gather_small(account, facts.most_bands);
  sort_bands(account);
  compact_places(account);
  return account;
}

}  // namespace plimsoll::report
