#include "plimsoll/plan/streams.h"

#include <algorithm>

#include "plimsoll/pack/pack.h"
#include "plimsoll/schedule/graph_workload.h"

namespace plimsoll::plan {
namespace {

constexpr double kHandover = 1e-6;  // seconds that data from another stream comes later

class Spreader {
 public:
  Spreader(Plan& plan, const StreamOptions& options)
      : plan_(plan), options_(options), streams_(static_cast<std::size_t>(options.streams)), touched_(plan.buffers.size()) {}

  Status run() {
    find_dependencies();
    assign_streams();
    keep_clocks();
    return pack_again();
  }

 private:
  using Clock = std::vector<std::int64_t>;  // steps known to be done, by stream

  // Reads follow the last write of their buffer, writes follow it and all reads since.
  void find_dependencies() {
    std::vector<std::int64_t> writer(plan_.buffers.size(), -1);
    std::vector<std::vector<std::size_t>> readers(plan_.buffers.size());
    before_.resize(plan_.steps.size());
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      const auto follow = [&](std::size_t earlier) {
        if (earlier != s) before_[s].push_back(earlier);
      };
      for (const Slot& slot : plan_.steps[s].inputs) {
        if (!slot.buffer.valid()) continue;
        const std::size_t b = slot.buffer.index();
        if (writer[b] >= 0) follow(static_cast<std::size_t>(writer[b]));
        readers[b].push_back(s);
        touched_[b].push_back(s);
      }
      std::vector<Slot> written = plan_.steps[s].outputs;
      written.push_back(plan_.steps[s].scratch);
      for (const Slot& slot : written) {
        if (!slot.buffer.valid()) continue;
        const std::size_t b = slot.buffer.index();
        if (writer[b] >= 0) follow(static_cast<std::size_t>(writer[b]));
        for (const std::size_t reader : readers[b]) follow(reader);
        readers[b].clear();
        writer[b] = static_cast<std::int64_t>(s);
        touched_[b].push_back(s);
      }
    }
  }

  void assign_streams() {
    std::vector<double> free_at(streams_, 0);
    std::vector<double> done(plan_.steps.size(), 0);
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      const auto start_on = [&](std::size_t stream) {
        double start = free_at[stream];
        for (const std::size_t d : before_[s]) start = std::max(start, done[d] + (plan_.steps[d].stream == stream ? 0 : kHandover));
        return start;
      };
      std::size_t best = 0;
      for (std::size_t stream = 1; stream < streams_; ++stream) {
        if (start_on(stream) < start_on(best)) best = stream;
      }
      plan_.steps[s].stream = static_cast<std::uint8_t>(best);
      done[s] = free_at[best] = start_on(best) + plan_.steps[s].seconds;
    }
    plan_.predicted_seconds = *std::max_element(free_at.begin(), free_at.end());
  }

  // What each step knows when it starts, and the waits that make it so.
  void keep_clocks() {
    std::vector<std::int64_t> latest(streams_, -1);
    position_.resize(plan_.steps.size());
    count_.assign(streams_, 0);
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      const std::size_t stream = plan_.steps[s].stream;
      Clock known(streams_, 0);
      if (latest[stream] >= 0) learn(known, static_cast<std::size_t>(latest[stream]));
      std::sort(before_[s].rbegin(), before_[s].rend());
      for (const std::size_t d : before_[s]) {
        if (known[plan_.steps[d].stream] >= position_[d]) continue;
        plan_.steps[s].waits.push_back(static_cast<std::uint32_t>(d));
        learn(known, d);
      }
      std::sort(plan_.steps[s].waits.begin(), plan_.steps[s].waits.end());
      known_.push_back(std::move(known));
      position_[s] = ++count_[stream];
      latest[stream] = static_cast<std::int64_t>(s);
    }
  }

  void learn(Clock& known, std::size_t earlier) const {
    for (std::size_t k = 0; k < streams_; ++k) known[k] = std::max(known[k], known_[earlier][k]);
    std::int64_t& own = known[plan_.steps[earlier].stream];
    own = std::max(own, position_[earlier]);
  }

  Status pack_again() {
    pack::Problem problem;
    problem.clocks.streams = options_.streams;
    std::vector<bool> is_source(plan_.buffers.size(), false);
    for (const ValueSlot& source : plan_.sources) is_source[source.slot.buffer.index()] = true;
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) add_buffer(problem, b, is_source[b]);
    problem.contiguous = plan_.contiguous;
    pack::PackOptions how;
    how.goal = pack::Goal::kMinimize;
    how.deadline_seconds = options_.pack_seconds;
    how.deterministic = true;
    PLIMSOLL_TRY(const pack::Packing packing, pack::pack(problem, how));
    PLIMSOLL_CHECK(packing.offsets.size() == plan_.buffers.size(), "the packer placed {} of {} buffers", packing.offsets.size(), plan_.buffers.size());
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) plan_.buffers[b].offset = packing.offsets[b];
    plan_.arenas.front().bytes = packing.height();
    plan_.proof.lower_bound = std::max(packing.lower_bound, plan_.proof.load);
    plan_.proof.optimal = plan_.arena_bytes() == plan_.proof.lower_bound;
    return {};
  }

  void add_buffer(pack::Problem& problem, std::size_t b, bool is_source) const {
    const PlanBuffer& buffer = plan_.buffers[b];
    pack::Buffer item;
    item.lifetime = {buffer.lifetime.begin.value, buffer.lifetime.end.value};
    item.size = buffer.bytes;
    item.alignment = schedule::kTensorAlignment.value;
    problem.buffers.push_back(item);
    const bool stays = !options_.sharing || buffer.lifetime.end.value >= static_cast<std::int32_t>(plan_.steps.size());
    if (options_.two_ended) problem.ends.push_back(is_source && stays ? pack::ArenaEnd::kFront : pack::ArenaEnd::kBack);
    const Clock none(streams_, 0);
    const Clock& ready = is_source || !options_.sharing || touched_[b].empty() ? none : known_[touched_[b].front()];
    Clock released = ready;
    for (const std::size_t s : touched_[b]) {
      std::int64_t& own = released[plan_.steps[s].stream];
      own = std::max(own, position_[s]);
    }
    for (std::size_t k = 0; k < streams_; ++k) {
      if (stays) released[k] = count_[k] + 1;
      if (touched_[b].empty()) released[k] = std::max<std::int64_t>(released[k], 1);
    }
    problem.clocks.ready.insert(problem.clocks.ready.end(), ready.begin(), ready.end());
    problem.clocks.released.insert(problem.clocks.released.end(), released.begin(), released.end());
  }

  Plan& plan_;
  const StreamOptions& options_;
  std::size_t streams_;
  std::vector<std::vector<std::size_t>> before_;   // by step
  std::vector<std::vector<std::size_t>> touched_;  // by buffer: the steps that read or write it
  std::vector<Clock> known_;                       // by step
  std::vector<std::int64_t> position_;             // by step: its number on its stream, from 1
  std::vector<std::int64_t> count_;                // by stream
};

}  // namespace

Status spread_over_streams(Plan& plan, const StreamOptions& options) {
  if (options.streams < 1 || options.streams > kMostStreams) {
    return fail(ErrorCode::kUsage, "{} streams: expects 1 to {}", options.streams, kMostStreams);
  }
  const bool alone = plan.arenas.size() == 1 && std::all_of(plan.steps.begin(), plan.steps.end(), [](const PlanStep& step) { return step.stream == 0 && step.waits.empty(); });
  if (!alone) return fail(ErrorCode::kUsage, "a plan that swaps runs on one compute stream: leave out --streams or the swap remedy");
  if (options.streams == 1 || plan.steps.empty()) return {};
  return Spreader(plan, options).run();
}

}  // namespace plimsoll::plan
