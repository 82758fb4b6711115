#include "plimsoll/runtime/on_demand.h"
#include "plimsoll/runtime/update_owners.h"

#include "plimsoll/ops/registry.h"

namespace plimsoll::runtime {
namespace {

class OnDemand final : public Executor {
 public:
  OnDemand(ir::Graph graph, std::shared_ptr<kernels::Backend> backend, KernelSet kernels,
           const ExecutorOptions& options)
      : graph_(std::move(graph)),
        backend_(std::move(backend)),
        kernels_(std::move(kernels)),
        options_(options),
        staging_(backend_->device()),
        calls_(graph_.nodes.size()),
        memory_(graph_.values.size()),
        owner_(update_owners(graph_)),
        uses_(graph_.values.size(), 0),
        stays_(graph_.values.size(), false) {
    for (const ir::Node& node : graph_.nodes) {
      for (const ValueId input : node.inputs) {
        if (input.valid()) ++uses_[owner_[input.index()].index()];
      }
    }
    for (const ValueId output : graph_.outputs) stays_[owner_[output.index()].index()] = true;
  }

  ~OnDemand() override {
    if (stream_ && !stream_->synchronize()) return;  // the device failed: its memory is lost
    for (std::byte* memory : memory_) {
      if (memory != nullptr) pool_->free(memory);
    }
  }

  Status start() {
    PLIMSOLL_TRY(stream_, backend_->device().make_stream());
    PLIMSOLL_TRY(pool_, backend_->device().make_pool(*stream_));
    for (std::size_t v = 0; v < graph_.values.size(); ++v) {
      if (!ir::is_source(graph_.values[v].kind)) continue;
      stays_[v] = true;
      PLIMSOLL_RETURN_IF_ERROR(take(ValueId(v)));
    }
    return {};
  }

  const ir::Graph& graph() const override { return graph_; }

  kernels::Backend& backend() const override { return *backend_; }

  using Executor::read;
  using Executor::result;
  using Executor::write;
  Status write(ValueId source, const WriteBytes& content) override {
    return staging_.write(memory_[source.index()], size_of(source), content);
  }
  Status read(ValueId source, const ReadBytes& use) override {
    return staging_.read(memory_[source.index()], size_of(source), use);
  }
  Status result(ValueId output, const ReadBytes& use) override {
    return staging_.read(memory_[owner_[output.index()].index()], size_of(output), use);
  }

  std::span<std::byte> memory_of(ValueId source) const override {
    return {memory_[source.index()], size_of(source)};
  }
  Bytes peak_bytes() const override { return pool_->peak_in_use(); }
  std::optional<kernels::Rounding> rounding() const override {
    std::optional<kernels::Rounding> out;
    kernels_.add_rounding(out);
    return out;
  }

  Status step() override {
    left_ = uses_;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n)
      PLIMSOLL_RETURN_IF_ERROR(run_node(NodeId(n)));
    return stream_->synchronize();
  }

 private:
  std::size_t size_of(ValueId value) const {
    return static_cast<std::size_t>(ir::bytes_of(graph_.value(value).type).value);
  }

  Status take(ValueId value) {
    std::byte*& memory = memory_[value.index()];
    if (memory != nullptr) return {};
    memory = pool_->allocate(Bytes(static_cast<std::int64_t>(size_of(value))));
    if (memory == nullptr) {
      return fail(ErrorCode::kDoesNotFit, "{} has no {} bytes left for '{}'",
                  backend_->device().name(), size_of(value), graph_.value(value).name);
    }
    record(trace::EventKind::kAllocation, value);
    return {};
  }

  Status give_back(ValueId value) {
    std::byte*& memory = memory_[value.index()];
    if (options_.poison)
      PLIMSOLL_RETURN_IF_ERROR(stream_->fill(memory, std::byte{0xff}, size_of(value)));
    record(trace::EventKind::kFree, value);
    pool_->free(memory);
    memory = nullptr;
    return {};
  }

  void record(trace::EventKind kind, ValueId value) {
    if (options_.trace == nullptr) return;
    trace::Event& event = options_.trace->add(kind, graph_.value(value).name);
    event.category = category_of(graph_, value);
    event.bytes = Bytes(static_cast<std::int64_t>(size_of(value)));
    event.address = reinterpret_cast<std::uint64_t>(memory_[value.index()]);
    event.start = event.end = now_ns();
  }

  Status run_node(NodeId id) {
    const ir::Node& node = graph_.node(id);
    BoundKernel& call = calls_[id.index()];
    call.kernel = &kernels_.of(id);
    call.inputs.clear();
    call.outputs.clear();
    for (const ValueId input : node.inputs) {
      call.inputs.push_back(input.valid() ? memory_[owner_[input.index()].index()] : nullptr);
    }
    for (const ValueId output : node.outputs) {
      const ValueId owner = owner_[output.index()];
      PLIMSOLL_RETURN_IF_ERROR(take(owner));
      call.outputs.push_back(memory_[owner.index()]);
    }
    const Bytes scratch = call.kernel->scratch();
    call.scratch = scratch.value > 0 ? pool_->allocate(scratch) : nullptr;
    if (call.scratch == nullptr && scratch.value > 0) {
      return fail(ErrorCode::kDoesNotFit, "{} has no {} bytes left for the scratch of {}",
                  backend_->device().name(), scratch, display_name(node));
    }
    const std::int64_t begin = options_.trace != nullptr ? now_ns() : 0;
    PLIMSOLL_RETURN_IF_ERROR(call.check_addresses(backend_->device(), graph_, node));
    PLIMSOLL_RETURN_IF_ERROR(stream_->run(call));
    if (options_.trace != nullptr) {
      PLIMSOLL_RETURN_IF_ERROR(stream_->synchronize());
      record_operator(node, begin, scratch);
    }
    if (call.scratch != nullptr) pool_->free(call.scratch);
    return release_operands(node);
  }

  void record_operator(const ir::Node& node, std::int64_t begin, Bytes scratch) {
    trace::Event& event = options_.trace->add(trace::EventKind::kOperator, display_name(node));
    event.phase = options_.trace->strings.intern(ir::name(node.phase));
    event.bytes = scratch;
    event.start = begin;
    event.end = now_ns();
  }

  Status release_operands(const ir::Node& node) {
    for (const ValueId input : node.inputs) {
      if (!input.valid()) continue;
      const ValueId owner = owner_[input.index()];
      if (--left_[owner.index()] == 0 && !stays_[owner.index()])
        PLIMSOLL_RETURN_IF_ERROR(give_back(owner));
    }
    for (const ValueId output : node.outputs) {
      const ValueId owner = owner_[output.index()];
      if (uses_[owner.index()] == 0 && !stays_[owner.index()])
        PLIMSOLL_RETURN_IF_ERROR(give_back(owner));
    }
    return {};
  }

  ir::Graph graph_;
  std::shared_ptr<kernels::Backend> backend_;
  KernelSet kernels_;
  ExecutorOptions options_;
  Staging staging_;
  std::vector<BoundKernel> calls_;  // by node: there until its stream has run it
  std::unique_ptr<device::Stream> stream_;
  std::unique_ptr<device::Pool> pool_;
  std::vector<std::byte*> memory_;  // by value; null when it has none
  std::vector<ValueId> owner_;      // the value whose memory it lies in
  std::vector<int> uses_;           // reads per step, by owner
  std::vector<int> left_;
  std::vector<bool> stays_;
};

}  // namespace

Result<std::unique_ptr<Executor>> make_on_demand(ir::Graph graph, const ExecutorOptions& options) {
  std::shared_ptr<kernels::Backend> backend = backend_of(options);
  PLIMSOLL_TRY(KernelSet kernels, KernelSet::make(graph, *backend, options));
  auto out =
      std::make_unique<OnDemand>(std::move(graph), std::move(backend), std::move(kernels), options);
  PLIMSOLL_RETURN_IF_ERROR(out->start());
  return out;
}

}  // namespace plimsoll::runtime
