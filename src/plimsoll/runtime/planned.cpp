#include "plimsoll/runtime/planned.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "plimsoll/ops/in_place_pairs.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/plan/check_plan.h"
#include "plimsoll/plan/step_words.h"
#include "plimsoll/runtime/activation_encodings.h"
#include "plimsoll/runtime/dead_buffers.h"
#include "plimsoll/runtime/outside_bytes.h"

namespace plimsoll::runtime {
namespace {

using plan::PlanStep;
using plan::StepKind;

class Planned final : public Executor {
 public:
  Planned(plan::Plan plan, std::shared_ptr<kernels::Backend> backend,
          std::vector<KernelSet> kernels, const ExecutorOptions& options,
          std::shared_ptr<Arenas> arenas)
      : plan_(std::move(plan)),
        backend_(std::move(backend)),
        kernels_(std::move(kernels)),
        options_(options),
        own_arenas_(arenas == nullptr),
        memory_(plan_, backend_->device(), std::move(arenas)),
        encodings_(options.rounding_seed) {}

  Status start() {
    if (!memory_.taken()) PLIMSOLL_RETURN_IF_ERROR(memory_.take(options_));
    place_.resize(plan_.graph.values.size());
    for (const plan::ValueSlot& source : plan_.sources)
      place_[source.value.index()] = memory_.spot(source.slot);
    results_.resize(plan_.graph.values.size());
    for (const plan::ValueSlot& result : plan_.results)
      results_[result.value.index()] = memory_.spot(result.slot);
    bound_.reserve(plan_.steps.size());  // commands point into it
    for (const PlanStep& step : plan_.steps) {
      bound_.emplace_back(*this, bound_.size());
      PLIMSOLL_RETURN_IF_ERROR(bind(step, bound_.back()));
    }
    PLIMSOLL_RETURN_IF_ERROR(encodings_.take_memory(backend_->device()));
    if (options_.poison) dead_.emplace(plan_);
    PLIMSOLL_TRY(sequence_, backend_->device().make_sequence(commands()));
    if (options_.trace != nullptr) {
      Arenas& arenas = memory_.arenas();
      if (!arenas.calls) arenas.calls = std::make_unique<CallTrace>(*options_.trace);
    }
    return {};
  }

  const ir::Graph& graph() const override { return plan_.graph; }
  kernels::Backend& backend() const override { return *backend_; }

  using Executor::read;
  using Executor::result;
  using Executor::write;
  Status write(ValueId source, const WriteBytes& content) override {
    if (options_.trace != nullptr) trace_source(source);
    return memory_.write(place_[source.index()], bytes_of(source), content);
  }
  Status read(ValueId source, const ReadBytes& use) override {
    if (options_.trace != nullptr) trace_source(source);
    return memory_.read(place_[source.index()], bytes_of(source), use);
  }
  Status result(ValueId output, const ReadBytes& use) override {
    return memory_.read(results_[output.index()], bytes_of(output), use);
  }
  Bytes peak_bytes() const override {
    Bytes out;
    const auto& arenas = memory_.arenas().memory;
    for (std::size_t a = 0; a < arenas.size(); ++a) {
      if (a != kHostArena && arenas[a]) out += arenas[a]->size();
    }
    return out;
  }
  std::vector<std::span<std::byte>> arenas() const override {
    std::vector<std::span<std::byte>> out;
    for (const auto& arena : memory_.arenas().memory)
      out.push_back(arena ? arena->bytes() : std::span<std::byte>{});
    return out;
  }
  bool keep(const std::shared_ptr<const void>& what) override {
    if (own_arenas_) kept_.push_back(what);
    return own_arenas_;
  }
  // The largest gap between sources.
  std::optional<std::span<std::byte>> free_memory() const override {
    if (!own_arenas_ || !backend_->device().computes_on_host() || !memory_.arenas().memory[0])
      return std::nullopt;
    const std::span<std::byte> all = memory_.arenas().memory[0]->bytes();
    std::vector<Interval<std::size_t>> taken{{all.size(), all.size()}};
    for (const plan::ValueSlot& source : plan_.sources) {
      const std::byte* const begin = place_[source.value.index()].address;
      if (begin < all.data() || begin >= all.data() + all.size()) continue;
      const auto at = static_cast<std::size_t>(begin - all.data());
      taken.push_back({at, at + bytes_of(source.value)});
    }
    std::sort(taken.begin(), taken.end(),
              [](const auto& a, const auto& b) { return a.begin < b.begin; });
    std::span<std::byte> largest;
    std::size_t end = 0;
    for (const Interval<std::size_t>& one : taken) {
      if (one.begin > end && one.begin - end > largest.size())
        largest = all.subspan(end, one.begin - end);
      end = std::max(end, one.end);
    }
    return largest;
  }
  std::span<std::byte> memory_of(ValueId source) const override {
    return {place_[source.index()].address, bytes_of(source)};
  }
  Bytes overflow_bytes() const override { return encodings_.overflow_bytes(); }
  std::vector<EncodedActivation> encoded_activations() const override {
    return encodings_.accounts();
  }
  std::optional<kernels::Rounding> rounding() const override {
    std::optional<kernels::Rounding> out;
    for (const KernelSet& set : kernels_) set.add_rounding(out);
    return out;
  }

  Status step() override {
    PLIMSOLL_RETURN_IF_ERROR(status_);
    if (dead_) dead_->begin_step();
    encodings_.begin_step(steps_);
    // Who watches kernels reads between them: they are launched one by one.
    const bool timed = options_.trace != nullptr || options_.step_seconds != nullptr ||
                       (options_.watch_kernel && !backend_->device().computes_on_host());
    status_ = timed ? sequence_->run_timed(ran_) : sequence_->run();
    for (const FileCopy& copy : file_copies_) {
      if (status_ && !copy.status) status_ = copy.status;
    }
    if (options_.step_seconds != nullptr) tell_seconds();
    if (options_.trace != nullptr && status_) trace_step();
    ++steps_;
    return status_;
  }

 private:
  // A step with its addresses, ready to run.
  struct BoundStep final : device::Work {
    BoundStep(Planned& of, std::size_t step) : planned(of), number(step) {}

    Status run(void* queue) override { return planned.run(*this, queue); }

    Planned& planned;
    std::size_t number;  // of the step in its plan
    BoundKernel call;    // without a kernel: it is none
    // Of a copy, and of an encoding or a decoding.
    Spot from;
    Spot to;
    std::size_t bytes = 0;  // in plain form
    const kernels::ActivationEncoding* encoding = nullptr;
  };

  // The half of a copy that the host does: between pinned memory and the swap file, in the order of
  // the stream that does the other half.
  struct FileCopy final : device::Work {
    FileCopy(Planned& of, Spot source, Spot target, std::size_t count)
        : planned(of), from(source), to(target), bytes(count) {}

    Status run(void* queue) override {
      return planned.backend_->call_host(
          queue,
          [](void* subject) {
            auto& copy = *static_cast<FileCopy*>(subject);
            if (copy.status)
              copy.status = copy.planned.memory_.copy(copy.from, copy.to, copy.bytes);
          },
          this);
    }

    Planned& planned;
    Spot from;
    Spot to;
    std::size_t bytes;
    Status status;  // of its stream; read when the step is over
  };

  std::size_t bytes_of(ValueId value) const {
    return static_cast<std::size_t>(ir::bytes_of(plan_.graph.value(value).type).value);
  }

  Status bind(const PlanStep& step, BoundStep& out) {
    if (step.kind == StepKind::kCompute || step.kind == StepKind::kRecompute)
      return bind_compute(step, out.call);
    if (step.kind == StepKind::kDrop) return {};
    out.bytes = bytes_of(step.value);
    out.from = memory_.spot(step.inputs.front());
    out.to = memory_.spot(step.outputs.front());
    if (step.kind != StepKind::kEncode && step.kind != StepKind::kDecode) return {};
    PLIMSOLL_TRY(out.encoding, encodings_.bind(plan_, step, out.number, memory_));
    return {};
  }

  // A plan was made with what kernels said where it was made; here they may say otherwise.
  static Status check_in_place(const ir::Node& node, const BoundKernel& call) {
    const ops::InPlace& rule = ops::definition_of(node).in_place;
    if (rule.must() || call.kernel->in_place()) return {};
    for (const ops::InPlace::Pair& pair : ops::pairs_of(rule, node)) {
      const std::byte* input = call.inputs[static_cast<std::size_t>(pair.input)];
      if (input != nullptr && input == call.outputs[static_cast<std::size_t>(pair.output)])
        return bad_input("{}: its kernel cannot write over its input here, and the plan has it so",
                         display_name(node));
    }
    return {};
  }

  Status bind_compute(const PlanStep& step, BoundKernel& out) {
    const ir::Node& node = plan_.graph.node(step.node);
    out.kernel = &kernels_[step.stream].of(step.node);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      out.inputs.push_back(node.inputs[i].valid() ? memory_.address(step.inputs[i]) : nullptr);
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      out.outputs.push_back(memory_.address(step.outputs[i]));
    PLIMSOLL_RETURN_IF_ERROR(check_in_place(node, out));
    const Bytes wanted = out.kernel->scratch();
    if (!step.scratch.buffer.valid()) {
      if (wanted.value == 0) return {};
      return bad_input("{}: its kernel wants {} bytes of scratch here, the plan has none",
                       display_name(node), wanted);
    }
    const Bytes planned = plan_.buffer(step.scratch.buffer).bytes;
    if (wanted > planned) {
      return bad_input("{}: its kernel wants {} bytes of scratch here, the plan has {}",
                       display_name(node), wanted, planned);
    }
    out.scratch = memory_.address(step.scratch);
    return {};
  }

  // One for each step of the plan, in order, and two for a copy between the swap file and a device
  // that the host cannot write to. Where the host cannot poison what dies, steps run one after the
  // other and commands behind them do.
  std::vector<device::Command> commands() {
    const bool serial = dead_ && !backend_->device().computes_on_host();
    std::vector<std::vector<BufferId>> dying(plan_.steps.size());
    if (serial) dying = dead_->last_touched();
    std::vector<device::Command> out;
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      std::vector<device::Command> parts = commands_of(s);
      command_of_step_.push_back({out.size(), out.size() + parts.size()});
      for (device::Command& part : parts) {
        if (!serial) part.stream = plan_.steps[s].stream;
        out.push_back(std::move(part));
      }
      if (!serial) {
        std::vector<std::uint32_t>& waits = out[command_of_step_.back().begin].waits;
        for (const std::uint32_t wait : plan_.steps[s].waits)
          waits.push_back(static_cast<std::uint32_t>(command_of_step_[wait].end - 1));
      }
      for (const BufferId id : dying[s]) {
        const plan::PlanBuffer& buffer = plan_.buffer(id);
        if (memory_.arena(buffer.arena) == nullptr) continue;  // in the swap file
        device::Command poison;
        poison.kind = device::Command::Kind::kFill;
        poison.to = memory_.arena(buffer.arena) + buffer.offset.value;
        poison.bytes = static_cast<std::size_t>(buffer.bytes.value);
        poison.value = std::byte{0xff};
        out.push_back(std::move(poison));
      }
    }
    if (serial) dead_.reset();
    ran_.resize(out.size());
    return out;
  }

  std::vector<device::Command> commands_of(std::size_t s) {
    const BoundStep& bound = bound_[s];
    const bool to_file = bound.bytes > 0 && bound.to.address == nullptr;
    const bool from_file = bound.bytes > 0 && bound.from.address == nullptr;
    if (backend_->device().computes_on_host() || (!to_file && !from_file)) return {command_of(s)};
    const Spot staged{to_file ? memory_.staged_out() : memory_.staged_in(), Offset(0)};
    device::Command copy;
    copy.kind = device::Command::Kind::kCopy;
    copy.to = to_file ? staged.address : bound.to.address;
    copy.from = to_file ? bound.from.address : staged.address;
    copy.bytes = bound.bytes;
    copy.tensor = plan_.graph.value(plan_.steps[s].value).name;
    device::Command file;
    file.kind = device::Command::Kind::kWork;
    file.work = to_file ? &file_copies_.emplace_back(*this, staged, bound.to, bound.bytes)
                        : &file_copies_.emplace_back(*this, bound.from, staged, bound.bytes);
    if (to_file) return {copy, file};
    return {file, copy};
  }

  Interval<std::int64_t> ran(std::size_t step) const {
    const Interval<std::size_t>& parts = command_of_step_[step];
    return {ran_[parts.begin].begin, ran_[parts.end - 1].end};
  }

  device::Command command_of(std::size_t s) {
    BoundStep& bound = bound_[s];
    device::Command out;
    const bool in_arenas = bound.from.address != nullptr && bound.to.address != nullptr;
    const bool on_host = backend_->device().computes_on_host();
    if (bound.call.kernel != nullptr || bound.encoding != nullptr ||
        (on_host && (dead_ || (bound.bytes > 0 && !in_arenas)))) {
      out.kind = device::Command::Kind::kWork;
      out.work = &bound;
    } else if (bound.bytes > 0) {
      out.kind = device::Command::Kind::kCopy;
      out.to = bound.to.address;
      out.from = bound.from.address;
      out.bytes = bound.bytes;
      out.tensor = plan_.graph.value(plan_.steps[s].value).name;
    }
    return out;
  }

  Status run(BoundStep& step, void* queue) {
    Status status;
    if (step.call.kernel != nullptr) {
      PLIMSOLL_RETURN_IF_ERROR(step.call.check_addresses(
          backend_->device(), plan_.graph, plan_.graph.node(plan_.steps[step.number].node)));
      status = step.call.run(queue);
    } else if (step.encoding != nullptr) {
      status = plan_.steps[step.number].kind == StepKind::kEncode
                   ? backend_->encode(*step.encoding, queue)
                   : backend_->decode(*step.encoding, queue);
    } else if (step.bytes > 0) {
      status = memory_.copy(step.from, step.to, step.bytes);
    }
    if (dead_) dead_->touched(step.number, plan_, memory_);
    return status;
  }

  // Here, because several plans may write to the same one in turn.
  void tell_seconds() {
    options_.step_seconds->resize(plan_.steps.size());
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      const Interval<std::int64_t> took = ran(s);
      (*options_.step_seconds)[s] = 1e-9 * static_cast<double>(took.end - took.begin);
    }
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
    call.start = ran(s).begin;
    call.end = ran(s).end;
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
          add(call.reads, bound.call.inputs[i], bytes_of(node.inputs[i]), node.inputs[i]);
      }
      for (std::size_t i = 0; i < node.outputs.size(); ++i)
        add(call.writes, bound.call.outputs[i], bytes_of(node.outputs[i]), node.outputs[i]);
      if (bound.call.scratch != nullptr) {
        call.writes.push_back({Offset(bound.call.scratch - memory_.arena(0)),
                               bound.call.kernel->scratch(), call.name + " scratch",
                               trace::Category::kScratch});
      }
    } else {
      call.phase = plan::name(step.kind);
      const std::size_t compressed =
          bound.encoding != nullptr ? bound.encoding->compressed.size() : 0;
      add(call.reads, bound.from.address, step.kind == StepKind::kDecode ? compressed : bound.bytes,
          step.value);
      add(call.writes, bound.to.address, step.kind == StepKind::kEncode ? compressed : bound.bytes,
          step.value);
    }
    return call;
  }

  plan::Plan plan_;
  std::shared_ptr<kernels::Backend> backend_;
  std::vector<KernelSet> kernels_;  // by stream: a kernel may hold state while it runs
  ExecutorOptions options_;
  bool own_arenas_;  // no other plan runs in them
  PlanMemory memory_;
  std::vector<std::shared_ptr<const void>> kept_;  // goes before the memory does
  Status status_;                                  // the first failure
  std::vector<Spot> place_;
  std::vector<Spot> results_;
  std::vector<BoundStep> bound_;
  ActivationEncodings encodings_;
  std::uint64_t steps_ = 0;                             // that were run
  std::optional<DeadBuffers> dead_;                     // when poison is wanted, and the host can
  std::vector<Interval<std::size_t>> command_of_step_;  // numbers in sequence_
  std::deque<FileCopy> file_copies_;                    // commands point into it
  std::vector<Interval<std::int64_t>> ran_;  // by command: when it ran last, when that is timed
  std::unique_ptr<device::Sequence> sequence_;
};

}  // namespace

std::string call_name(const plan::Plan& plan, const PlanStep& step) {
  const std::string what = step.node.valid() ? display_name(plan.graph.node(step.node))
                                             : plan.graph.value(step.value).name;
  return plan::step_words(step, what);
}

Result<std::unique_ptr<Executor>> make_planned(plan::Plan plan, const ExecutorOptions& options,
                                               std::shared_ptr<Arenas> arenas) {
  const plan::PlanCheck check = plan::check_plan(plan);
  if (!check.ok()) return bad_input("the plan is wrong: {}", check.problems.front());
  std::shared_ptr<kernels::Backend> backend = backend_of(options);
  if (plan.alignment < backend->device().alignment()) {
    return bad_input("the plan aligns to {} bytes, {} wants {}: plan with --device {}",
                     plan.alignment, backend->device().name(), backend->device().alignment(),
                     backend->device().name());
  }
  std::vector<std::vector<bool>> on_stream;
  for (const PlanStep& step : plan.steps) {
    if (!step.node.valid()) continue;
    if (on_stream.size() <= step.stream)
      on_stream.resize(step.stream + 1U, std::vector<bool>(plan.graph.nodes.size()));
    on_stream[step.stream][step.node.index()] = true;
  }
  backend->use_engines(plan.engines);
  std::vector<KernelSet> kernels;
  for (const std::vector<bool>& nodes : on_stream) {
    PLIMSOLL_TRY(KernelSet set, KernelSet::make(plan.graph, *backend, options, nodes));
    kernels.push_back(std::move(set));
  }
  auto out = std::make_unique<Planned>(std::move(plan), std::move(backend), std::move(kernels),
                                       options, std::move(arenas));
  PLIMSOLL_RETURN_IF_ERROR(out->start());
  return out;
}

}  // namespace plimsoll::runtime
