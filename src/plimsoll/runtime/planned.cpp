#include "plimsoll/runtime/planned.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>

#include "plimsoll/plan/check_plan.h"
#include "plimsoll/runtime/activation_encodings.h"
#include "plimsoll/runtime/dead_buffers.h"
#include "plimsoll/runtime/outside_bytes.h"
#include "plimsoll/schedule/workload/graph_encodings.h"

namespace plimsoll::runtime {
namespace {

using plan::PlanStep;
using plan::StepKind;

constexpr std::int32_t kAllDone = std::numeric_limits<std::int32_t>::max();

// A step with its addresses, ready to run.
struct BoundStep {
  kernels::Kernel* kernel = nullptr;
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  std::byte* scratch = nullptr;
  // Of a copy, and of an encoding or a decoding.
  Spot from;
  Spot to;
  std::size_t bytes = 0;  // in plain form
  ActivationEncodings::Bound encoding;
};

class Planned final : public Executor {
 public:
  Planned(plan::Plan plan, std::vector<KernelSet> kernels, const ExecutorOptions& options,
          std::shared_ptr<Arenas> arenas)
      : plan_(std::move(plan)),
        kernels_(std::move(kernels)),
        options_(options),
        memory_(plan_, std::move(arenas)),
        encodings_(options.rounding_seed) {}

  Status start() {
    if (!memory_.taken()) PLIMSOLL_RETURN_IF_ERROR(memory_.take(options_));
    place_.resize(plan_.graph.values.size());
    for (const plan::ValueSlot& source : plan_.sources)
      place_[source.value.index()] = memory_.spot(source.slot);
    results_.resize(plan_.graph.values.size());
    for (const plan::ValueSlot& result : plan_.results)
      results_[result.value.index()] = memory_.spot(result.slot);
    for (const PlanStep& step : plan_.steps) {
      streams_ = std::max<int>(streams_, step.stream + 1);
      PLIMSOLL_TRY(BoundStep bound, bind(step));
      bound_.push_back(std::move(bound));
    }
    PLIMSOLL_RETURN_IF_ERROR(encodings_.take_memory());
    if (options_.poison) dead_.emplace(plan_);
    if (options_.trace != nullptr) {
      ran_.resize(plan_.steps.size());
      Arenas& arenas = memory_.arenas();
      if (!arenas.calls) arenas.calls = std::make_unique<CallTrace>(*options_.trace);
    }
    if (streams_ > static_cast<int>(done_.size()))
      return bad_input("the plan has {} streams, at most {} are supported", streams_, done_.size());
    return {};
  }

  const ir::Graph& graph() const override { return plan_.graph; }

  std::span<std::byte> source(ValueId value) override {
    if (options_.trace != nullptr) trace_source(value);
    return span_of(place_[value.index()], value);
  }
  std::span<const std::byte> result(ValueId output) override {
    return span_of(results_[output.index()], output);
  }
  Bytes peak_bytes() const override {
    return Bytes(static_cast<std::int64_t>(memory_.device().size()));
  }
  std::vector<std::span<std::byte>> arenas() const override {
    std::vector<std::span<std::byte>> out;
    for (const device::CpuArena& arena : memory_.arenas().memory) out.push_back(arena.bytes());
    return out;
  }
  Status status() const override { return status_; }
  Bytes overflow_bytes() const override { return encodings_.overflow_bytes(); }
  std::vector<EncodedActivation> encoded_activations() const override {
    return encodings_.accounts();
  }

  Status step() override {
    note(memory_.put_back());
    PLIMSOLL_RETURN_IF_ERROR(status_);
    // Here, because several plans may write to the same one in turn.
    if (options_.step_seconds != nullptr) options_.step_seconds->assign(plan_.steps.size(), 0);
    for (auto& done : done_) done.store(-1, std::memory_order_relaxed);
    if (dead_) dead_->begin_step();
    std::vector<std::thread> workers;
    for (int stream = 1; stream < streams_; ++stream)
      workers.emplace_back([this, stream] { run_stream(stream); });
    run_stream(0);
    for (std::thread& worker : workers) worker.join();
    if (options_.trace != nullptr && status_) trace_step();
    ++steps_;
    return status_;
  }

 private:
  std::size_t bytes_of(ValueId value) const {
    return static_cast<std::size_t>(ir::bytes_of(plan_.graph.value(value).type).value);
  }

  std::span<std::byte> span_of(const Spot& place, ValueId value) {
    note(memory_.put_back());
    std::span<std::byte> out;
    note(memory_.lend(place, bytes_of(value), out));
    return out;
  }

  void note(Status status) {
    if (status) return;
    const std::scoped_lock lock(failure_);
    if (status_) status_ = std::move(status);
    failed_.store(true, std::memory_order_release);
  }

  Result<BoundStep> bind(const PlanStep& step) {
    BoundStep out;
    if (step.kind == StepKind::kCompute || step.kind == StepKind::kRecompute) {
      bind_compute(step, out);
      if (step.scratch.buffer.valid() &&
          out.kernel->scratch() > plan_.buffer(step.scratch.buffer).bytes) {
        return bad_input("{}: its kernel wants {} bytes of scratch here, the plan has {}",
                         display_name(plan_.graph.node(step.node)), out.kernel->scratch(),
                         plan_.buffer(step.scratch.buffer).bytes);
      }
      if (!step.scratch.buffer.valid() && out.kernel->scratch().value > 0) {
        return bad_input("{}: its kernel wants {} bytes of scratch here, the plan has none",
                         display_name(plan_.graph.node(step.node)), out.kernel->scratch());
      }
    } else if (step.kind != StepKind::kDrop) {
      out.bytes = bytes_of(step.value);
      out.from = memory_.spot(step.inputs.front());
      out.to = memory_.spot(step.outputs.front());
    }
    if (step.kind == StepKind::kEncode || step.kind == StepKind::kDecode) {
      PLIMSOLL_TRY(out.encoding, encodings_.bind(plan_, step, bound_.size(), memory_));
    }
    return out;
  }

  void bind_compute(const PlanStep& step, BoundStep& out) {
    const ir::Node& node = plan_.graph.node(step.node);
    out.kernel = &kernels_[step.stream].of(step.node);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      out.inputs.push_back(node.inputs[i].valid() ? memory_.address(step.inputs[i]) : nullptr);
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      out.outputs.push_back(memory_.address(step.outputs[i]));
    if (step.scratch.buffer.valid()) out.scratch = memory_.address(step.scratch);
  }

  void run_stream(int stream) {
    auto& done = done_[static_cast<std::size_t>(stream)];
    const bool timed = options_.trace != nullptr || options_.step_seconds != nullptr;
    for (std::size_t s = 0; s < plan_.steps.size() && !failed_.load(std::memory_order_acquire);
         ++s) {
      const PlanStep& step = plan_.steps[s];
      if (step.stream != stream) continue;
      for (const std::uint32_t wait : step.waits) wait_for(wait);
      if (failed_.load(std::memory_order_acquire)) break;
      const std::int64_t begin = timed ? now_ns() : 0;
      note(run(bound_[s]));
      const std::int64_t end = timed ? now_ns() : 0;
      if (options_.step_seconds != nullptr)
        (*options_.step_seconds)[s] = 1e-9 * static_cast<double>(end - begin);
      if (options_.trace != nullptr) ran_[s] = {begin, end};
      if (dead_) dead_->touched(s, plan_, memory_);
      done.store(static_cast<std::int32_t>(s), std::memory_order_release);
      if (streams_ > 1) done.notify_all();
    }
    // Nobody waits for a stream that has ended, for whatever reason.
    done.store(kAllDone, std::memory_order_release);
    if (streams_ > 1) done.notify_all();
  }

  void wait_for(std::uint32_t step) {
    auto& done = done_[plan_.steps[step].stream];
    for (std::int32_t seen = done.load(std::memory_order_acquire);
         seen < static_cast<std::int32_t>(step); seen = done.load(std::memory_order_acquire)) {
      done.wait(seen, std::memory_order_acquire);
    }
  }

  Status run(const BoundStep& step) {
    if (step.kernel != nullptr) {
      step.kernel->run({step.inputs, step.outputs, step.scratch});
    } else if (step.encoding.codec != nullptr) {
      encodings_.run(step.encoding, steps_);
    } else if (step.bytes > 0) {
      return memory_.copy(step.from, step.to, step.bytes);
    }
    return {};
  }

  Handed handed(const std::byte* address, std::size_t bytes, ValueId value) const {
    return {Offset(address - memory_.arena(0)), Bytes(static_cast<std::int64_t>(bytes)),
            plan_.graph.value(value).name, category_of(plan_.graph, value)};
  }

  void trace_source(ValueId value) {
    const Uncounted own;
    const std::byte* const address = place_[value.index()].address;
    if (!memory_.on_device(address)) return;
    memory_.arenas().calls->hand_out(handed(address, bytes_of(value), value),
                                     ir::is_persistent(plan_.graph.value(value).kind), now_ns());
  }

  // What ran, from the addresses that kernels and copies were handed.
  void trace_step() {
    const Uncounted own;
    std::vector<Call> calls;
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      if (plan_.steps[s].kind != StepKind::kDrop) calls.push_back(call_of(s));
    }
    std::vector<Handed> outputs;
    for (const ValueId output : plan_.graph.outputs) {
      const std::byte* const address = results_[output.index()].address;
      if (memory_.on_device(address)) outputs.push_back(handed(address, bytes_of(output), output));
    }
    memory_.arenas().calls->add_step(std::move(calls), outputs);
  }

  Call call_of(std::size_t s) const {
    const PlanStep& step = plan_.steps[s];
    const BoundStep& bound = bound_[s];
    Call call;
    call.start = ran_[s].begin;
    call.end = ran_[s].end;
    call.stream = step.stream;
    call.name = call_name(plan_, step);
    const auto add = [&](std::vector<Handed>& to, const std::byte* address, std::size_t bytes,
                         ValueId value) {
      if (memory_.on_device(address)) to.push_back(handed(address, bytes, value));
    };
    if (step.node.valid()) {
      const ir::Node& node = plan_.graph.node(step.node);
      call.phase = ir::name(node.phase);
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i].valid())
          add(call.reads, bound.inputs[i], bytes_of(node.inputs[i]), node.inputs[i]);
      }
      for (std::size_t i = 0; i < node.outputs.size(); ++i)
        add(call.writes, bound.outputs[i], bytes_of(node.outputs[i]), node.outputs[i]);
      if (bound.scratch != nullptr) {
        call.writes.push_back({Offset(bound.scratch - memory_.arena(0)), bound.kernel->scratch(),
                               call.name + " scratch", trace::Category::kScratch});
      }
    } else {
      call.phase = plan::name(step.kind);
      const std::size_t compressed = bound.encoding.compressed.size();
      add(call.reads, bound.from.address, step.kind == StepKind::kDecode ? compressed : bound.bytes,
          step.value);
      add(call.writes, bound.to.address, step.kind == StepKind::kEncode ? compressed : bound.bytes,
          step.value);
    }
    return call;
  }

  plan::Plan plan_;
  std::vector<KernelSet> kernels_;  // by stream: a kernel may hold state while it runs
  ExecutorOptions options_;
  PlanMemory memory_;
  std::mutex failure_;
  Status status_;  // the first failure
  std::atomic<bool> failed_{false};
  std::vector<Spot> place_;
  std::vector<Spot> results_;
  std::vector<BoundStep> bound_;
  ActivationEncodings encodings_;
  std::uint64_t steps_ = 0;  // that were run
  int streams_ = 1;
  std::optional<DeadBuffers> dead_;  // when poison is wanted
  std::array<std::atomic<std::int32_t>, 8> done_{};
  std::vector<Interval<std::int64_t>> ran_;  // by step: when it ran last, when that is traced
};

}  // namespace

std::string call_name(const plan::Plan& plan, const PlanStep& step) {
  const std::string what = step.node.valid() ? display_name(plan.graph.node(step.node))
                                             : plan.graph.value(step.value).name;
  if (step.kind == StepKind::kCompute) return what;
  if (step.codec.empty()) return fmt::format("{} {}", plan::name(step.kind), what);
  return fmt::format("{} {} ({}{})", plan::name(step.kind), what, step.codec,
                     schedule::is_lossy_form(step.codec) ? ", lossy" : "");
}

Result<std::unique_ptr<Executor>> make_planned(plan::Plan plan, const ExecutorOptions& options,
                                               std::shared_ptr<Arenas> arenas) {
  const plan::PlanCheck check = plan::check_plan(plan);
  if (!check.ok()) return bad_input("the plan is wrong: {}", check.problems.front());
  std::vector<KernelSet> kernels;
  for (const PlanStep& step : plan.steps) {
    while (step.node.valid() && kernels.size() <= step.stream) {
      PLIMSOLL_TRY(KernelSet set, KernelSet::make(plan.graph, options));
      kernels.push_back(std::move(set));
    }
  }
  auto out =
      std::make_unique<Planned>(std::move(plan), std::move(kernels), options, std::move(arenas));
  PLIMSOLL_RETURN_IF_ERROR(out->start());
  return out;
}

}  // namespace plimsoll::runtime
