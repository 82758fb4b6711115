#include "plimsoll/runtime/planned.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "plimsoll/base/random.h"
#include "plimsoll/device/cpu/swap_file.h"
#include "plimsoll/kernels/cpu/compressed_activation.h"
#include "plimsoll/plan/check_plan.h"
#include "plimsoll/runtime/outside_bytes.h"

namespace plimsoll::runtime {
namespace {

using plan::PlanStep;
using plan::Slot;
using plan::StepKind;

constexpr std::uint8_t kHostArena = 1;
constexpr std::int32_t kAllDone = std::numeric_limits<std::int32_t>::max();

// Where a slot begins: an address, or a place in the swap file.
struct Spot {
  std::byte* address = nullptr;
  Offset in_file;
};

// A step with its addresses, ready to run.
struct BoundStep {
  StepKind kind = StepKind::kCompute;
  Offset in_file;  // of a copy whose other end is the swap file
  kernels::Kernel* kernel = nullptr;
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  std::byte* scratch = nullptr;
  std::size_t bytes = 0;  // of a copy, or of the plain form of what is encoded
  const codec::Codec* codec = nullptr;
  std::size_t compressed = 0;             // bytes of the encoded form
  kernels::Overflow* overflow = nullptr;  // host memory for what the compressed refuses
  struct Encoding* encoding = nullptr;    // its account
  std::uint64_t seed = 0;                 // tells the roundings of encodings apart
};

struct Encoding {
  EncodedMap map;
  std::vector<kernels::ActivationError> by_block;  // room for measuring what a lossy one loses
};

class Planned final : public Executor {
 public:
  Planned(plan::Plan plan, std::vector<KernelSet> kernels, const ExecutorOptions& options,
          std::shared_ptr<Arenas> arenas)
      : plan_(std::move(plan)),
        kernels_(std::move(kernels)),
        options_(options),
        arenas_(std::move(arenas)) {}

  Status start() {
    if (!arenas_) PLIMSOLL_RETURN_IF_ERROR(take_memory());
    place_.resize(plan_.graph.values.size());
    for (const plan::ValueSlot& source : plan_.sources)
      place_[source.value.index()] = spot(source.slot);
    results_.resize(plan_.graph.values.size());
    for (const plan::ValueSlot& result : plan_.results)
      results_[result.value.index()] = spot(result.slot);
    for (const PlanStep& step : plan_.steps) {
      streams_ = std::max<int>(streams_, step.stream + 1);
      PLIMSOLL_TRY(BoundStep bound, bind(step));
      bound_.push_back(std::move(bound));
    }
    PLIMSOLL_RETURN_IF_ERROR(take_overflow_room());
    if (options_.poison) count_users();
    if (options_.trace != nullptr) {
      ran_.resize(plan_.steps.size());
      if (!arenas_->calls) arenas_->calls = std::make_unique<CallTrace>(*options_.trace);
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
    return Bytes(static_cast<std::int64_t>(device_memory().size()));
  }
  std::vector<std::span<std::byte>> arenas() const override {
    std::vector<std::span<std::byte>> out;
    for (const device::CpuArena& arena : arenas_->memory) out.push_back(arena.bytes());
    return out;
  }
  Status status() const override { return status_; }
  Bytes overflow_bytes() const override {
    Bytes total;
    for (const auto& [buffer, overflow] : overflow_) total += overflow.bytes();
    return total;
  }

  std::vector<EncodedMap> encoded_maps() const override {
    std::vector<EncodedMap> out;
    for (const Encoding& encoding : encodings_) out.push_back(encoding.map);
    return out;
  }

  Status step() override {
    put_back();
    PLIMSOLL_RETURN_IF_ERROR(status_);
    // Here, because several plans may write to the same one in turn.
    if (options_.step_seconds != nullptr) options_.step_seconds->assign(plan_.steps.size(), 0);
    for (auto& done : done_) done.store(-1, std::memory_order_relaxed);
    for (std::size_t b = 0; b < uses_.size(); ++b)
      left_[b].store(uses_[b], std::memory_order_relaxed);
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
  Status take_memory() {
    arenas_ = std::make_shared<Arenas>();
    for (std::size_t arena = 0; arena < plan_.arenas.size(); ++arena) {
      const Bytes bytes =
          plan_.arenas[arena].bytes + (arena == 0 ? options_.room_behind : Bytes(0));
      if (arena == kHostArena && !options_.swap_file.empty()) {
        PLIMSOLL_TRY(file_, device::SwapFile::make(options_.swap_file, bytes));
        arenas_->memory.emplace_back();
        swaps_to_file_ = true;
        continue;
      }
      PLIMSOLL_TRY(device::CpuArena memory, device::CpuArena::make(bytes));
      arenas_->memory.push_back(std::move(memory));
    }
    return {};
  }

  // All that could overflow has its room before the first step; pages that nothing overflows into
  // are never touched.
  Status take_overflow_room() {
    Bytes total;
    for (const auto& [buffer, overflow] : overflow_) total += overflow.room_wanted();
    if (total.value == 0) return {};
    PLIMSOLL_TRY(overflow_room_, device::CpuArena::make(total));
    std::span<std::byte> left = overflow_room_.bytes();
    for (auto& [buffer, overflow] : overflow_) left = overflow.take_room(left);
    return {};
  }

  std::byte* memory(std::size_t arena) const { return arenas_->memory[arena].data(); }

  std::size_t bytes_of(ValueId value) const {
    return static_cast<std::size_t>(ir::bytes_of(plan_.graph.value(value).type).value);
  }

  Spot spot(const Slot& slot) {
    if (swaps_to_file_ && plan_.buffer(slot.buffer).arena == kHostArena)
      return {nullptr, plan::place_of(plan_, slot)};
    return {address(slot), Offset(0)};
  }

  // Bytes in the swap file are lent as a copy, one at a time.
  std::span<std::byte> span_of(const Spot& place, ValueId value) {
    put_back();
    if (place.address != nullptr) return {place.address, bytes_of(value)};
    lent_.resize(bytes_of(value));
    lent_from_ = place.in_file;
    note(file_.read(lent_from_, lent_));
    return lent_;
  }

  void put_back() {
    if (lent_.empty()) return;
    note(file_.write(lent_from_, lent_));
    lent_.clear();
  }

  void note(Status status) {
    if (status) return;
    const std::scoped_lock lock(failure_);
    if (status_) status_ = std::move(status);
    failed_.store(true, std::memory_order_release);
  }

  std::byte* address(const Slot& slot) {
    return memory(plan_.buffer(slot.buffer).arena) + plan::place_of(plan_, slot).value;
  }

  Result<BoundStep> bind(const PlanStep& step) {
    BoundStep out;
    out.kind = step.kind;
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
    } else if (step.kind == StepKind::kCopyOut || step.kind == StepKind::kCopyIn) {
      out.bytes = bytes_of(step.value);
      const Spot from = spot(step.inputs.front());
      const Spot to = spot(step.outputs.front());
      out.in_file = step.kind == StepKind::kCopyOut ? to.in_file : from.in_file;
      out.inputs.push_back(from.address);
      out.outputs.push_back(to.address);
    } else if (step.kind != StepKind::kDrop) {
      PLIMSOLL_RETURN_IF_ERROR(bind_codec(step, out));
    }
    return out;
  }

  Status bind_codec(const PlanStep& step, BoundStep& out) {
    const bool encodes = step.kind == StepKind::kEncode;
    const Slot& small = encodes ? step.outputs.front() : step.inputs.front();
    const ir::TensorType& type = plan_.graph.value(step.value).type;
    out.codec = codec::find_codec(step.codec);
    const ir::DType stored =
        out.codec != nullptr && out.codec->element_bytes == 1 ? ir::DType::kU8 : ir::DType::kF32;
    if (out.codec == nullptr || type.dtype != stored)
      return bad_input("codec '{}' cannot store {}", step.codec, ir::name(type.dtype));
    out.bytes = bytes_of(step.value);
    out.compressed = static_cast<std::size_t>(plan_.buffer(small.buffer).bytes.value);
    if (out.compressed < codec::least_compressed_bytes(out.bytes / out.codec->element_bytes))
      return bad_input("the room for '{}' is too small", plan_.graph.value(step.value).name);
    out.inputs.push_back(address(step.inputs.front()));
    out.outputs.push_back(address(step.outputs.front()));
    out.overflow = &overflow_.try_emplace(small.buffer, *out.codec, out.bytes).first->second;
    out.seed = mix64(bound_.size());
    if (encodes) out.encoding = &account_of(step, out);
    return {};
  }

  Encoding& account_of(const PlanStep& step, const BoundStep& bound) {
    const ir::Value& value = plan_.graph.value(step.value);
    Encoding& out = encodings_.emplace_back();
    if (!bound.codec->lossless) out.by_block.resize(bound.overflow->blocks());
    out.map.tensor = value.name;
    out.map.form = bound.codec->name;
    out.map.lossless = bound.codec->lossless;
    out.map.plain = Bytes(static_cast<std::int64_t>(bound.bytes));
    out.map.room = Bytes(static_cast<std::int64_t>(bound.compressed));
    out.map.elements = value.type.shape.elements();
    return out;
  }

  void bind_compute(const PlanStep& step, BoundStep& out) {
    const ir::Node& node = plan_.graph.node(step.node);
    out.kernel = &kernels_[step.stream].of(step.node);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      out.inputs.push_back(node.inputs[i].valid() ? address(step.inputs[i]) : nullptr);
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      out.outputs.push_back(address(step.outputs[i]));
    if (step.scratch.buffer.valid()) out.scratch = address(step.scratch);
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
      if (options_.poison) poison_dead(s);
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
    } else if (step.codec != nullptr) {
      run_codec(step);
    } else if (step.bytes > 0) {
      return copy(step);
    }
    return {};
  }

  Status copy(const BoundStep& step) {
    if (step.outputs.front() == nullptr)
      return file_.write(step.in_file, {step.inputs.front(), step.bytes});
    if (step.inputs.front() == nullptr)
      return file_.read(step.in_file, {step.outputs.front(), step.bytes});
    std::memcpy(step.outputs.front(), step.inputs.front(), step.bytes);
    return {};
  }

  // What does not fit its compressed waits in host memory instead: slower, never wrong, never over
  // budget.
  void run_codec(const BoundStep& step) {
    if (step.kind == StepKind::kEncode) return encode(step);
    const std::span compressed{reinterpret_cast<const std::uint8_t*>(step.inputs.front()),
                               step.compressed};
    const std::span values{step.outputs.front(), step.bytes};
    PLIMSOLL_CHECK(kernels::decompress_activation(*step.codec, compressed, *step.overflow, values),
                   "an encoded map was overwritten");
  }

  void encode(const BoundStep& step) {
    const std::span values{step.inputs.front(), step.bytes};
    const std::span compressed{reinterpret_cast<std::uint8_t*>(step.outputs.front()),
                               step.compressed};
    const std::uint64_t seed = mix64(options_.rounding_seed + steps_) ^ step.seed;
    EncodedMap& account = step.encoding->map;
    account.used = Bytes(static_cast<std::int64_t>(
        kernels::compress_activation(*step.codec, values, compressed, *step.overflow, seed)));
    account.overflow = step.overflow->bytes();
    if (account.lossless || steps_ > 0) return;
    const kernels::ActivationError error =
        kernels::error_of(*step.codec, values, compressed, *step.overflow, step.encoding->by_block);
    account.largest_error = error.largest;
    account.squared_error = error.squares;
    account.squared_values = error.value_squares;
  }

  Handed handed(const std::byte* address, std::size_t bytes, ValueId value) const {
    return {Offset(address - memory(0)), Bytes(static_cast<std::int64_t>(bytes)),
            plan_.graph.value(value).name, category_of(plan_.graph, value)};
  }

  std::span<const std::byte> device_memory() const {
    return arenas_->memory.empty() ? std::span<const std::byte>{} : arenas_->memory.front().bytes();
  }

  bool on_device(const std::byte* address) const {
    const std::span<const std::byte> device = device_memory();
    return address != nullptr && address >= device.data() &&
           address < device.data() + device.size();
  }

  void trace_source(ValueId value) {
    const Uncounted own;
    const std::byte* const address = place_[value.index()].address;
    if (!on_device(address)) return;
    arenas_->calls->hand_out(handed(address, bytes_of(value), value),
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
      if (on_device(address)) outputs.push_back(handed(address, bytes_of(output), output));
    }
    arenas_->calls->add_step(std::move(calls), outputs);
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
      if (on_device(address)) to.push_back(handed(address, bytes, value));
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
        call.writes.push_back({Offset(bound.scratch - memory(0)), bound.kernel->scratch(),
                               call.name + " scratch", trace::Category::kScratch});
      }
    } else {
      call.phase = plan::name(step.kind);
      add(call.reads, bound.inputs.front(),
          step.kind == StepKind::kDecode ? bound.compressed : bound.bytes, step.value);
      add(call.writes, bound.outputs.front(),
          step.kind == StepKind::kEncode ? bound.compressed : bound.bytes, step.value);
    }
    return call;
  }

  // By buffer: how many steps touch it in all, none for what is there after the last step.
  void count_users() {
    users_.resize(plan_.steps.size());
    left_ = std::vector<std::atomic<int>>(plan_.buffers.size());
    uses_.assign(plan_.buffers.size(), 0);
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      const PlanStep& step = plan_.steps[s];
      std::vector<Slot> slots = step.inputs;
      slots.insert(slots.end(), step.outputs.begin(), step.outputs.end());
      slots.push_back(step.scratch);
      for (const Slot& slot : slots) {
        if (!slot.buffer.valid() || plan_.buffer(slot.buffer).lifetime.end.value >=
                                        static_cast<std::int32_t>(plan_.steps.size()))
          continue;
        if (std::find(users_[s].begin(), users_[s].end(), slot.buffer) != users_[s].end()) continue;
        users_[s].push_back(slot.buffer);
        ++uses_[slot.buffer.index()];
      }
    }
  }

  // The last to touch a buffer poisons it, before others hear that its step is done: whoever uses
  // the bytes next waits for all who touched them.
  void poison_dead(std::size_t s) {
    for (const BufferId id : users_[s]) {
      if (left_[id.index()].fetch_sub(1, std::memory_order_acq_rel) > 1) continue;
      const plan::PlanBuffer& buffer = plan_.buffer(id);
      if (memory(buffer.arena) == nullptr) continue;  // in the swap file
      std::memset(memory(buffer.arena) + buffer.offset.value, 0xff,
                  static_cast<std::size_t>(buffer.bytes.value));
    }
  }

  plan::Plan plan_;
  std::vector<KernelSet> kernels_;  // by stream: a kernel may hold state while it runs
  ExecutorOptions options_;
  std::shared_ptr<Arenas> arenas_;
  device::SwapFile file_;
  bool swaps_to_file_ = false;
  std::vector<std::byte> lent_;  // a copy of bytes of the file, until the next call
  Offset lent_from_;
  std::mutex failure_;
  Status status_;  // the first failure
  std::atomic<bool> failed_{false};
  std::vector<Spot> place_;
  std::vector<Spot> results_;
  std::vector<BoundStep> bound_;
  std::map<BufferId, kernels::Overflow> overflow_;  // by encoded buffer
  device::CpuArena overflow_room_;                  // host memory for all of them
  std::deque<Encoding> encodings_;                  // in the order of steps, which point into it
  std::uint64_t steps_ = 0;                         // that were run
  int streams_ = 1;
  // by step: the buffers it touches that die in this step
  std::vector<std::vector<BufferId>> users_;
  std::vector<int> uses_;               // by buffer
  std::vector<std::atomic<int>> left_;  // of uses_, in this step
  std::array<std::atomic<std::int32_t>, 8> done_{};
  std::vector<Interval<std::int64_t>> ran_;  // by step: when it ran last, when that is traced
};

}  // namespace

std::string call_name(const plan::Plan& plan, const PlanStep& step) {
  const std::string what = step.node.valid() ? display_name(plan.graph.node(step.node))
                                             : plan.graph.value(step.value).name;
  return step.kind == StepKind::kCompute ? what : fmt::format("{} {}", plan::name(step.kind), what);
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
