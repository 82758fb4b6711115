#include "plimsoll/runtime/paged.h"

#include <algorithm>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/machine_memory.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/runtime/paging/access_order.h"
#include "plimsoll/runtime/paging/rehearsal.h"
#include "plimsoll/runtime/update_owners.h"

namespace plimsoll::runtime {
namespace {

constexpr std::size_t kPagedStreams = AccessOrder::kStreams;

// How long a launch takes does not matter much beside the copies of its operands: a card's memory.
constexpr double kGuessedBytesPerSecond = 2e12;
constexpr double kGuessedLaunchSeconds = 3e-6;

class Paged final : public Executor {
 public:
  Paged(ir::Graph graph, std::shared_ptr<kernels::Backend> backend, KernelSet kernels,
        const PagingOptions& paging, const ExecutorOptions& options)
      : graph_(std::move(graph)),
        backend_(std::move(backend)),
        kernels_(std::move(kernels)),
        options_(options),
        paging_(paging),
        calls_(graph_.nodes.size()),
        owner_(update_owners(graph_)),
        program_(paged_program(graph_, [&](NodeId id) { return kernels_.of(id).scratch(); })),
        block_(program_.tensors.size()) {
    paging_.alignment = device().alignment();
    for (PagedProgram::Launch& launch : program_.launches) {
      Bytes bytes;
      for (const PagedProgram::Use& use : launch.uses) bytes += program_.tensors[use.tensor].bytes;
      launch.seconds =
          kGuessedLaunchSeconds + static_cast<double>(bytes.value) / kGuessedBytesPerSecond;
    }
  }

  ~Paged() override {
    // Nobody may use memory that goes.
    for (const auto& stream : streams_) {
      if (stream) static_cast<void>(stream->synchronize());
    }
  }

  Status start() {
    PLIMSOLL_TRY(const Bytes pool, walk_step());
    paging_.capacity = std::min(paging_.capacity, pool);
    forced_ = forced_copies(program_, paging_.capacity);
    PLIMSOLL_TRY(paging_, chosen_options(program_, paging_));
    if (device().computes_on_host())
      PLIMSOLL_RETURN_IF_ERROR(check_machine_memory(paging_.capacity + pool));
    PLIMSOLL_TRY(arena_, device().make_arena(paging_.capacity));
    pool_ = pool;
    backing_ = options_.backing ? options_.backing : std::make_shared<BackingStore>();
    if (!backing_->memory || backing_->memory->size() < pool) {
      backing_->memory.reset();
      PLIMSOLL_TRY(backing_->memory, device().make_host_arena(pool));
    }
    home_ = backing_->memory.get();
    PLIMSOLL_TRY(streams_[kComputes], device().make_stream());
    PLIMSOLL_TRY(streams_[kCopiesOut], device().make_copy_stream());
    PLIMSOLL_TRY(streams_[kCopiesIn], device().make_copy_stream());
    pager_.emplace(paging_);
    create_lasting(*pager_, block_);
    return {};
  }

  const ir::Graph& graph() const override { return graph_; }
  kernels::Backend& backend() const override { return *backend_; }

  using Executor::read;
  using Executor::result;
  using Executor::write;
  Status write(ValueId source, const WriteBytes& content) override {
    const BlockId block = block_[source.index()];
    pager_->overwritten(block);
    trace_residency();
    return content({home_->data() + pager_->home(block).value, size_of(source)});
  }
  Status read(ValueId source, const ReadBytes& use) override { return read_owner(source, use); }
  Status result(ValueId output, const ReadBytes& use) override {
    return read_owner(owner_of(output), use);
  }

  // Tensors come and go: several ranks, who share them, do not page.
  std::span<std::byte> memory_of(ValueId) const override { return {}; }
  Bytes peak_bytes() const override { return arena_->size(); }
  std::vector<std::span<std::byte>> arenas() const override {
    return {arena_->bytes(), home_->bytes()};
  }
  std::optional<PagingReport> paging() const override {
    return PagingReport{std::string(name(paging_.policy)),
                        paging_.forget_dead,
                        paging_.capacity,
                        home_->size(),
                        pager_->peak(),
                        last_step_,
                        launches_,
                        forced_.out,
                        forced_.in};
  }

  Status step() override {
    PLIMSOLL_RETURN_IF_ERROR(status_);
    const PagingCounts before = pager_->counts();
    pager_->begin_step();
    for (std::size_t n = 0; n < graph_.nodes.size() && status_; ++n) status_ = run_node(NodeId(n));
    for (const auto& stream : streams_) {
      Status over = stream->synchronize();
      if (status_ && !over) status_ = std::move(over);
    }
    on_device_.clear();
    at_home_.clear();
    last_step_ = pager_->counts().since(before);
    return status_;
  }

 private:
  device::Device& device() const { return backend_->device(); }
  ValueId owner_of(ValueId value) const { return owner_[value.index()]; }
  std::size_t size_of(ValueId value) const {
    return static_cast<std::size_t>(ir::bytes_of(graph_.value(value).type).value);
  }

  void create_lasting(Pager& pager, std::vector<BlockId>& blocks) const {
    for (std::size_t t = 0; t < program_.tensors.size(); ++t) {
      const PagedProgram::Tensor& tensor = program_.tensors[t];
      const bool owns = t >= owner_.size() || owner_[t] == ValueId(t);
      if (tensor.lifetime == Lifetime::kPersistent && owns)
        blocks[t] = pager.create(tensor.bytes, Lifetime::kPersistent);
    }
  }

  // A step of bookkeeping alone: how large the virtual pool becomes, and whether every launch fits.
  Result<Bytes> walk_step() {
    Pager pager(paging_);
    std::vector<BlockId> blocks(program_.tensors.size());
    create_lasting(pager, blocks);
    Bytes least;
    std::string largest;
    for (std::size_t n = 0; n < program_.launches.size(); ++n) {
      const PagedProgram::Launch& launch = program_.launches[n];
      VirtualLaunch& touched = launches_.emplace_back();
      Bytes together;
      for (const PagedProgram::Use& use : launch.uses) {
        BlockId& block = blocks[use.tensor];
        if (!block.valid())
          block = pager.create(program_.tensors[use.tensor].bytes, Lifetime::kTransient);
        together += pager.bytes(block);
        const Offset home = pager.home(block);
        touched.push_back({home.value, home.value + pager.bytes(block).value});
      }
      if (together > least) {
        least = together;
        largest = display_name(graph_.nodes[n]);
      }
      for (const std::size_t tensor : launch.dies) {
        pager.forget(blocks[tensor]);
        blocks[tensor] = {};
      }
    }
    if (least > paging_.capacity)
      return fail(ErrorCode::kDoesNotFit,
                  "--capacity {}: {} takes {} at once, operands and scratch; nothing less can be "
                  "paged",
                  human(paging_.capacity), largest, human(least));
    return std::max(pager.virtual_bytes(), least);
  }

  Status read_owner(ValueId value, const ReadBytes& use) {
    const BlockId block = block_[value.index()];
    std::byte* const home = home_->data() + pager_->home(block).value;
    if (const auto move = pager_->bring_home(block))
      PLIMSOLL_RETURN_IF_ERROR(device().read({home, static_cast<std::size_t>(move->bytes.value)},
                                             arena_->data() + move->device.value));
    return use({home, size_of(value)});
  }

  // Enqueued behind what it has to wait for; its mark.
  template <typename Enqueue>
  Result<std::int64_t> issue(std::size_t stream, const AccessOrder::Numbers& waits,
                             const Enqueue& enqueue) {
    for (std::size_t other = 0; other < kPagedStreams; ++other) {
      std::int64_t& waited = waited_[stream][other];
      if (other == stream || waits[other] <= waited) continue;
      PLIMSOLL_RETURN_IF_ERROR(streams_[stream]->wait(*streams_[other], waits[other]));
      waited = waits[other];
    }
    PLIMSOLL_RETURN_IF_ERROR(enqueue(*streams_[stream]));
    return streams_[stream]->mark();
  }

  Status copy(const PageMove& move) {
    const AccessOrder::Range there{move.device.value, move.device.value + move.bytes.value};
    const AccessOrder::Range home{move.host.value, move.host.value + move.bytes.value};
    const bool out = move.kind == PageMove::Kind::kOut;
    const std::size_t stream = out ? kCopiesOut : kCopiesIn;
    AccessOrder::Numbers waits = out ? on_device_.before_read(there) : at_home_.before_read(home);
    AccessOrder::join(waits, out ? at_home_.before_write(home) : on_device_.before_write(there));
    if (move.fault) waits[kComputes] = std::max(waits[kComputes], launched_);
    std::byte* const in_arena = arena_->data() + move.device.value;
    std::byte* const in_home = home_->data() + move.host.value;
    const auto bytes = static_cast<std::size_t>(move.bytes.value);
    const std::int64_t begin = options_.trace != nullptr ? now_ns() : 0;
    PLIMSOLL_TRY(const std::int64_t mark, issue(stream, waits, [&](device::Stream& on) {
                   return out ? on.copy(in_home, in_arena, bytes)
                              : on.copy(in_arena, in_home, bytes);
                 }));
    if (out) {
      on_device_.read(there, stream, mark);
      at_home_.write(home, stream, mark);
    } else {
      at_home_.read(home, stream, mark);
      on_device_.write(there, stream, mark);
    }
    return options_.trace != nullptr ? record_copy(move, stream, begin) : Status();
  }

  Status copy_all(std::span<const PageMove> moves) {
    for (const PageMove& move : moves) PLIMSOLL_RETURN_IF_ERROR(copy(move));
    trace_residency();
    return {};
  }

  AccessOrder::Range range_of(BlockId block) const {
    const Offset at = pager_->place(block);
    return {at.value, at.value + pager_->bytes(block).value};
  }

  std::byte* address(ValueId value) const {
    return arena_->data() + pager_->place(block_[owner_of(value).index()]).value;
  }

  Status run_node(NodeId id) {
    const ir::Node& node = graph_.node(id);
    BoundKernel& call = calls_[id.index()];
    call.kernel = &kernels_.of(id);
    const PagedProgram::Launch& launch_of = program_.launches[id.index()];
    operands_.clear();
    BlockId scratch_block;
    for (const PagedProgram::Use& use : launch_of.uses) {
      BlockId& block = block_[use.tensor];
      if (!block.valid())
        block = pager_->create(program_.tensors[use.tensor].bytes, Lifetime::kTransient);
      if (use.tensor >= graph_.values.size()) scratch_block = block;
      operands_.push_back({block, use.access});
    }
    auto missing = pager_->begin_launch(operands_);
    if (!missing) return forward(missing, display_name(node));
    PLIMSOLL_RETURN_IF_ERROR(copy_all(*missing));
    PLIMSOLL_RETURN_IF_ERROR(launch(node, call, scratch_block));
    for (const std::size_t tensor : launch_of.dies) {
      PLIMSOLL_RETURN_IF_ERROR(forget(block_[tensor]));
      block_[tensor] = {};
    }
    return copy_all(pager_->end_launch());
  }

  Status launch(const ir::Node& node, BoundKernel& call, BlockId scratch) {
    call.inputs.clear();
    call.outputs.clear();
    for (const ValueId input : node.inputs)
      call.inputs.push_back(input.valid() ? address(input) : nullptr);
    for (const ValueId output : node.outputs) call.outputs.push_back(address(output));
    call.scratch = scratch.valid() ? arena_->data() + pager_->place(scratch).value : nullptr;
    PLIMSOLL_RETURN_IF_ERROR(call.check_addresses(backend_->device(), graph_, node));
    AccessOrder::Numbers waits{};
    for (const BlockUse& use : operands_) {
      const AccessOrder::Range range = range_of(use.block);
      AccessOrder::join(waits, use.access == BlockAccess::kRead ? on_device_.before_read(range)
                                                                : on_device_.before_write(range));
    }
    const std::int64_t begin = options_.trace != nullptr ? now_ns() : 0;
    PLIMSOLL_TRY(launched_,
                 issue(kComputes, waits, [&](device::Stream& on) { return on.run(call); }));
    for (const BlockUse& use : operands_) {
      if (use.access == BlockAccess::kRead) {
        on_device_.read(range_of(use.block), kComputes, launched_);
      } else {
        on_device_.write(range_of(use.block), kComputes, launched_);
      }
    }
    return options_.trace != nullptr ? record_operator(node, begin, call.kernel->scratch())
                                     : Status();
  }

  Status forget(BlockId block) {
    if (options_.poison && pager_->resident_at(block)) {
      const AccessOrder::Range range = range_of(block);
      PLIMSOLL_TRY(const std::int64_t mark,
                   issue(kComputes, on_device_.before_write(range), [&](device::Stream& on) {
                     return on.fill(arena_->data() + range.begin, std::byte{0xff},
                                    static_cast<std::size_t>(range.end - range.begin));
                   }));
      on_device_.write(range, kComputes, mark);
    }
    pager_->forget(block);
    return {};
  }

  // Traces: who is in device memory, operators and copies. Commands run one by one then.
  Status record_operator(const ir::Node& node, std::int64_t begin, Bytes scratch) {
    PLIMSOLL_RETURN_IF_ERROR(streams_[kComputes]->synchronize());
    trace::Event& event = options_.trace->add(trace::EventKind::kOperator, display_name(node));
    event.phase = options_.trace->strings.intern(ir::name(node.phase));
    event.bytes = scratch;
    event.start = begin;
    event.end = now_ns();
    return {};
  }
  Status record_copy(const PageMove& move, std::size_t stream, std::int64_t begin) {
    PLIMSOLL_RETURN_IF_ERROR(streams_[stream]->synchronize());
    const bool out = move.kind == PageMove::Kind::kOut;
    trace::Event& event =
        options_.trace->add(trace::EventKind::kOperator, out ? "page_out" : "page_in");
    event.phase = options_.trace->strings.intern("paging");
    event.stream = trace::StreamId{stream};
    event.bytes = move.bytes;
    event.start = begin;
    event.end = now_ns();
    return {};
  }

  struct Traced {
    BlockId block;
    Bytes bytes;
    std::uint64_t address = 0;
    std::string name;
    trace::Category category = trace::Category::kScratch;
  };
  void trace_residency() {
    if (options_.trace == nullptr) return;
    std::vector<Traced> now;
    for (std::size_t v = 0; v < graph_.values.size(); ++v) {
      const BlockId block = block_[v];
      if (!block.valid() || !pager_->resident_at(block)) continue;
      now.push_back({block, pager_->bytes(block),
                     reinterpret_cast<std::uint64_t>(arena_->data() + pager_->place(block).value),
                     graph_.values[v].name, category_of(graph_, ValueId(v))});
    }
    const auto holds = [](const std::vector<Traced>& list, const Traced& one) {
      return std::any_of(list.begin(), list.end(), [&](const Traced& other) {
        return other.block == one.block && other.address == one.address && other.name == one.name;
      });
    };
    const auto add = [&](trace::EventKind kind, const Traced& one) {
      trace::Event& event = options_.trace->add(kind, one.name);
      event.category = one.category;
      event.bytes = one.bytes;
      event.address = one.address;
      event.start = event.end = now_ns();
    };
    for (const Traced& one : traced_) {
      if (!holds(now, one)) add(trace::EventKind::kFree, one);
    }
    for (const Traced& one : now) {
      if (!holds(traced_, one)) add(trace::EventKind::kAllocation, one);
    }
    traced_ = std::move(now);
  }

  ir::Graph graph_;
  std::shared_ptr<kernels::Backend> backend_;
  KernelSet kernels_;
  ExecutorOptions options_;
  PagingOptions paging_;
  std::vector<BoundKernel> calls_;  // by node: there until its stream has run it
  std::vector<ValueId> owner_;      // the value whose memory it lies in
  PagedProgram program_;
  std::vector<BlockId> block_;      // by tensor of it; invalid when it has no memory
  std::vector<BlockUse> operands_;  // of the current launch
  std::unique_ptr<device::Arena> arena_;
  std::shared_ptr<BackingStore> backing_;
  device::Arena* home_ = nullptr;  // of it
  Bytes pool_;
  std::array<std::unique_ptr<device::Stream>, kPagedStreams> streams_;
  std::array<AccessOrder::Numbers, kPagedStreams> waited_{};  // by stream: marks of the others
  std::optional<Pager> pager_;
  AccessOrder on_device_;
  AccessOrder at_home_;
  std::int64_t launched_ = 0;  // the mark of the last launch
  PagingCounts last_step_;
  std::vector<VirtualLaunch> launches_;
  ForcedCopies forced_;
  std::vector<Traced> traced_;
  Status status_;  // the first failure
};

}  // namespace

Result<std::unique_ptr<Executor>> make_paged(ir::Graph graph, const PagingOptions& paging,
                                             const ExecutorOptions& options) {
  std::shared_ptr<kernels::Backend> backend = backend_of(options);
  PLIMSOLL_TRY(KernelSet kernels, KernelSet::make(graph, *backend, options));
  auto out = std::make_unique<Paged>(std::move(graph), std::move(backend), std::move(kernels),
                                     paging, options);
  PLIMSOLL_RETURN_IF_ERROR(out->start());
  return out;
}

}  // namespace plimsoll::runtime
