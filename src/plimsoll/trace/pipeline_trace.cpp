#include "plimsoll/trace/pipeline_trace.h"

#include <vector>

#include "plimsoll/base/random.h"

namespace plimsoll::trace {
namespace {

class Generator {
 public:
  explicit Generator(const PipelineOptions& options) : options_(options), random_(options.seed) {
    trace_.source = "generated";
    const std::int64_t share = options.working_set.value / options.blocks_per_stage;
    sizes_.resize(static_cast<std::size_t>(options.streams));
    for (std::vector<Bytes>& stage : sizes_) {
      for (int i = 0; i < options.blocks_per_stage; ++i) {
        stage.emplace_back(random_.between(share / 8, share * 15 / 8));
      }
    }
  }

  Trace run() && {
    std::uint64_t input = 0;
    for (int batch = 0; batch < options_.batches; ++batch) {
      for (int stage = 0; stage < options_.streams; ++stage) {
        const std::uint64_t output = run_stage({static_cast<std::uint64_t>(stage)});
        if (input != 0) free(input);
        input = output;
        Event& wait = trace_.add(EventKind::kStreamWait);
        wait.stream = {static_cast<std::uint64_t>((stage + 1) % options_.streams)};
        wait.peer_stream = {static_cast<std::uint64_t>(stage)};
        stamp(wait);
      }
    }
    if (input != 0) free(input);
    return std::move(trace_);
  }

 private:
  struct Made {
    Bytes bytes;
    StreamId stream;
  };

  // The stage's output: its first block; the rest is freed.
  std::uint64_t run_stage(StreamId stream) {
    std::vector<std::uint64_t> blocks;
    for (const Bytes size : sizes_[stream.value]) blocks.push_back(allocate(size, stream));
    for (std::size_t i = blocks.size(); i-- > 1;) free(blocks[i]);
    return blocks.front();
  }
  std::uint64_t allocate(Bytes bytes, StreamId stream) {
    Event& event = trace_.add(EventKind::kAllocation);
    event.address = ++next_ << 9;
    event.bytes = bytes;
    event.stream = stream;
    stamp(event);
    made_.push_back({bytes, stream});
    return event.address;
  }
  void free(std::uint64_t address) {
    const Made made = made_[(address >> 9) - 1];
    Event& event = trace_.add(EventKind::kFree);
    event.address = address;
    event.bytes = made.bytes;
    event.stream = made.stream;
    stamp(event);
  }
  void stamp(Event& event) { event.start = event.end = 1000 * clock_++; }

  PipelineOptions options_;
  Random random_;
  Trace trace_;
  std::vector<std::vector<Bytes>> sizes_;  // by stage, the same for every batch
  std::uint64_t next_ = 0;
  std::int64_t clock_ = 0;
  std::vector<Made> made_;
};

}  // namespace

Trace make_pipeline_trace(const PipelineOptions& options) {
  return Generator(options).run();
}

}  // namespace plimsoll::trace
