#include "plimsoll/report/diagnosis.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/trace/replay.h"

namespace plimsoll::report {
namespace {

// Waste below this share of what is alive is no problem to speak of first.
constexpr double kLittle = 0.05;

double share(Bytes part, Bytes whole) {
  return whole.value > 0 ? static_cast<double>(part.value) / static_cast<double>(whole.value) : 0;
}

std::string percent(double fraction) {
  return fmt::format("{:.{}f} %", 100 * fraction, fraction < 0.0995 ? 1 : 0);
}

// The difference as a reader would compute it from the two figures printed beside it: 31.54 GiB
// less 19.97 GiB are 11.57 GiB, even where the bytes round to 11.56.
std::string difference(Bytes more, Bytes less) {
  std::string exact = human(more - less);
  const auto unit = [](const std::string& text) { return text.substr(text.find(' ')); };
  if (unit(human(more)) != unit(exact) || unit(human(less)) != unit(exact)) return exact;
  const double rest = std::stod(human(more)) - std::stod(human(less));
  return fmt::format("{:.{}f}{}", rest, exact.find(' ') - exact.find('.') - 1, unit(exact));
}

// The lowest device that something was allocated on: memory 0 of the timeline.
std::int16_t first_device(const trace::Trace& trace) {
  std::int16_t device = std::numeric_limits<std::int16_t>::max();
  for (const trace::Event& event : trace.events) {
    if (event.kind == trace::EventKind::kAllocation) device = std::min(device, event.device);
  }
  for (const trace::InitialSegment& segment : trace.initial) {
    if (!segment.blocks.empty()) device = std::min(device, segment.device);
  }
  return device;
}

trace::Trace only_device(const trace::Trace& trace, std::int16_t device) {
  trace::Trace out;
  out.source = trace.source;
  for (const trace::InitialSegment& segment : trace.initial) {
    if (segment.device == device) out.initial.push_back(segment);
  }
  for (const trace::Event& event : trace.events) {
    if (event.device == device) out.events.push_back(event);
  }
  return out;
}

class TraceDiagnosis {
 public:
  TraceDiagnosis(const Timeline& timeline, const trace::Trace& trace,
                 const DiagnosisOptions& options)
      : timeline_(timeline), trace_(trace), options_(options) {}

  Diagnosis diagnose() {
    const Peak peak = peak_of(timeline_);
    by_kind_ = bytes_by_kind_at(timeline_, peak.time_step);
    out_.alive = peak.bytes - by_kind_[static_cast<std::size_t>(Kind::kOutside)];
    for (const Reserved& level : timeline_.reserved) {
      if (level.memory == 0) out_.reserved = std::max(out_.reserved, level.bytes);
    }
    const bool of_an_allocator = timeline_.source == "snapshot" || !timeline_.reserved.empty();
    if (of_an_allocator && out_.alive.value > 0) replay_all();
    headline();
    advise();
    return std::move(out_);
  }

 private:
  void replay_all() {
    std::optional<trace::Trace> part;
    if (timeline_.memories.size() > 1) part = only_device(trace_, first_device(trace_));
    const trace::Trace& trace = part ? *part : trace_;
    const auto program = trace::compile_replay(trace);
    if (!program) return;
    const Stopwatch watch;
    for (const trace::Policy policy :
         {trace::Policy::kPlimsoll, trace::Policy::kPytorchExpandable}) {
      trace::ReplayOptions how;
      how.timed = false;
      how.most_seconds = options_.most_seconds - watch.seconds();
      stopped_ = stopped_ || how.most_seconds <= 0;
      if (stopped_) return;
      const trace::ReplayOutcome outcome = trace::replay(trace, *program, policy, how);
      stopped_ = !outcome.finished;
      // A replay that ran out of its simulated device says nothing about this recording.
      if (stopped_ || outcome.out_of_memory > 0) return;
      out_.replayed.push_back({std::string(trace::to_string(policy)), outcome.peak_reserved,
                               policy != trace::Policy::kPlimsoll});
    }
  }

  std::optional<Bytes> replayed(std::string_view name) const {
    for (const AllocatorFigure& figure : out_.replayed) {
      if (figure.name == name) return figure.reserved;
    }
    return std::nullopt;
  }

  Bytes lost() const { return out_.reserved - out_.alive; }
  bool wasteful() const { return out_.reserved.value > 0 && share(lost(), out_.alive) > kLittle; }

  void headline() {
    std::string text;
    if (timeline_.memories.size() > 1) text += timeline_.memories.front() + ": ";
    for (const trace::Event& event : trace_.events) {
      if (event.kind != trace::EventKind::kOutOfMemory) continue;
      text += fmt::format("out of memory with {} asked for; ", human(event.bytes));
      break;
    }
    if (out_.alive.value <= 0) {
      out_.headline = text + "nothing is allocated in this recording";
      return;
    }
    text += fmt::format("{} alive", human(out_.alive));
    if (out_.reserved.value <= 0) {
      text += " at the peak";
    } else {
      text += fmt::format(", {} reserved: ", human(out_.reserved));
      text += wasteful()
                  ? fmt::format("{} lost to fragmentation", difference(out_.reserved, out_.alive))
                  : fmt::format("{} above what is alive",
                                percent(std::max(0.0, share(lost(), out_.alive))));
    }
    if (const auto ours = replayed("plimsoll"))
      text += fmt::format("; with plimsoll's allocator {}", human(*ours));
    out_.headline = text;
    out_.headline[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  }

  void advise() {
    auto& advice = out_.advice;
    const auto ours = replayed("plimsoll");
    const auto expandable = replayed("pytorch-expandable");
    if (wasteful() && expandable && share(*expandable, out_.reserved) < 0.98)
      advice.push_back(
          fmt::format("Without changing the program: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:"
                      "True would reserve {} for the same allocations (a model of PyTorch's "
                      "allocator).",
                      human(*expandable)));
    if (wasteful() && ours && share(*ours, out_.reserved) < 0.98)
      advice.push_back(
          fmt::format("PyTorch on plimsoll's allocator, python -m plimsoll_torch train.py, would "
                      "reserve {} ({}).",
                      human(*ours), "docs/allocator.md"));
    if (!wasteful() && out_.reserved.value > 0)
      advice.push_back(
          "The allocator is not the problem: what is alive at the peak must shrink. A smaller "
          "batch, recomputing (torch.utils.checkpoint) or fewer bits do that; plimsoll plan MODEL "
          "--budget finds the cheapest combination.");
    if (stopped_)
      advice.push_back(
          fmt::format("Replaying it on other allocators takes longer than {}: "
                      "plimsoll replay {} --allocator all.",
                      human_seconds(options_.most_seconds), timeline_.title));
    if (timeline_.source == "snapshot") advise_on_recording();
  }

  void advise_on_recording() {
    if (!timeline_.has_stacks)
      out_.advice.push_back(
          "No stacks were recorded, so allocations have no names. To see who allocates, record "
          "with torch.cuda.memory._record_memory_history(stacks=\"python\") before the model is "
          "built, and torch.cuda.memory._dump_snapshot(\"snapshot.pickle\") after a few steps.");
    const Bytes before = by_kind_[static_cast<std::size_t>(Kind::kBefore)];
    if (share(before, out_.alive) > 0.1)
      out_.advice.push_back(
          fmt::format("{} were there before the recording began: begin it before the model is "
                      "built to see whose they are.",
                      human(before)));
  }

  const Timeline& timeline_;
  const trace::Trace& trace_;
  const DiagnosisOptions& options_;
  std::array<Bytes, kKindCount> by_kind_{};
  bool stopped_ = false;
  Diagnosis out_;
};

struct Done {
  std::string_view what;
  std::string_view words;
};

// "90 operators recomputed, 12 encoded (lossy)": what a plan does to fit.
std::string what_was_done(const Timeline& timeline) {
  constexpr std::array<Done, 4> kDone = {
      Done{"recompute", "operators recomputed"}, Done{"send_out", "tensors swapped out"},
      Done{"encode", "encoded"}, Done{"encode_lossy", "encoded (lossy)"}};
  std::string out;
  for (const Done& done : kDone) {
    const auto count = std::count_if(
        timeline.operators.begin(), timeline.operators.end(),
        [&](const Operator& op) { return timeline.texts.text(op.what) == done.what; });
    if (count > 0)
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", grouped(count), done.words);
  }
  if (timeline.encoded_weights > 0)
    out += fmt::format("{}{} weights encoded", out.empty() ? "" : ", ",
                       grouped(timeline.encoded_weights));
  return out;
}

// The two kinds that hold most at the peak: "activations 61 %, weights 12 %".
std::string largest_kinds(const Timeline& timeline, const Peak& peak) {
  const auto kinds = bytes_by_kind_at(timeline, peak.time_step);
  std::array<std::size_t, kKindCount> order{};
  for (std::size_t k = 0; k < kKindCount; ++k) order[k] = k;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return kinds[a] > kinds[b]; });
  std::string out;
  for (std::size_t i = 0; i < 2 && kinds[order[i]].value > 0; ++i)
    out += fmt::format("{}{} {}", i == 0 ? "" : ", ", name(static_cast<Kind>(order[i])),
                       percent(share(kinds[order[i]], peak.bytes)));
  return out;
}

}  // namespace

Diagnosis diagnose(const Timeline& timeline, const trace::Trace& trace,
                   const DiagnosisOptions& options) {
  return TraceDiagnosis(timeline, trace, options).diagnose();
}

Diagnosis diagnose(const Timeline& timeline) {
  Diagnosis out;
  const Peak peak = peak_of(timeline);
  out.alive = peak.bytes;
  out.reserved = timeline.arena;
  const std::string done = what_was_done(timeline);
  if (timeline.budget.value > 0) {
    out.headline =
        fmt::format("{} in a budget of {}", human(total_of(timeline)), human(timeline.budget));
    out.headline +=
        done.empty() ? ": nothing had to be recomputed, swapped or encoded" : ": " + done;
  } else {
    out.headline = fmt::format("{} needed", human(total_of(timeline)));
    const std::string kinds = largest_kinds(timeline, peak);
    if (!kinds.empty()) out.headline += "; at the peak: " + kinds;
  }
  return out;
}

}  // namespace plimsoll::report
