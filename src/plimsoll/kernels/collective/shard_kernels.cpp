#include "plimsoll/kernels/collective/shard_kernels.h"

#include <algorithm>

#include "plimsoll/ops/collective/shard.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::kernels {
namespace {

using dist::Communicator;
using ops::RunParts;

// A run, and which part of it is ours.
class SharedRun {
 public:
  // `first`: of the one tensor's elements that are in the run.
  SharedRun(std::shared_ptr<Communicator> comm, RunParts parts, ir::DType dtype, std::int64_t first,
            bool side_by_side)
      : side_by_side_(side_by_side),
        comm_(std::move(comm)),
        parts_(std::move(parts)),
        dtype_(dtype),
        element_(ir::bits(dtype) / 8),
        skipped_(first * element_),
        own_begin_(parts_.begin_of(comm_->rank())),
        own_end_(parts_.begin_of(comm_->rank() + 1)) {}

  Communicator& comm() const { return *comm_; }
  ir::DType dtype() const { return dtype_; }
  std::size_t tensors() const { return parts_.first.size(); }

  // The longest part of any stretch: at most a part.
  Bytes longest() const { return Bytes(parts_.part * element_); }
  // Where an element of the run that is ours stands in our part.
  std::byte* in_part(std::byte* part, std::int64_t at) const {
    return part + (at - own_begin_) * element_;
  }

  // body(address, first element, end): of tensors that lie side by side.
  template <typename Pointer, typename Body>
  void for_stretches(std::span<Pointer> tensors, Body body) const {
    for (std::size_t t = 0; t < tensors.size();) {
      const std::size_t first = t++;
      while (side_by_side_ && t < tensors.size() &&
             tensors[t] == tensors[first] + (parts_.first[t] - parts_.first[first]) * element_)
        ++t;
      const std::int64_t end = parts_.first[t - 1] + parts_.count[t - 1];
      if (end > parts_.first[first]) body(tensors[first] + skipped_, parts_.first[first], end);
    }
  }

  // Of each rank, within [first, end), in units of so many bytes.
  std::vector<std::int64_t> begins(std::int64_t first, std::int64_t end, std::int64_t unit) const {
    std::vector<std::int64_t> out;
    for (int r = 0; r <= comm_->size(); ++r)
      out.push_back((std::clamp(parts_.begin_of(r), first, end) - first) * unit);
    return out;
  }
  std::int64_t element() const { return element_; }
  Interval<std::int64_t> own_of(std::int64_t first, std::int64_t end) const {
    return {std::clamp(own_begin_, first, end), std::clamp(own_end_, first, end)};
  }

  // What is nobody's in our part: between tensors, and behind the last one.
  void zero_padding(std::byte* part, void* queue) const {
    std::int64_t at = own_begin_;
    const auto zero_until = [&](std::int64_t end) {
      if (at < end)
        comm_->zero(in_part(part, at), static_cast<std::size_t>((end - at) * element_), queue);
    };
    for (std::size_t t = 0; t < tensors(); ++t) {
      const std::int64_t first = parts_.first[t], end = first + parts_.count[t];
      if (end <= own_begin_ || first >= own_end_) continue;
      zero_until(first);
      at = std::min(end, own_end_);
    }
    zero_until(own_begin_ + parts_.part);
  }

  // Our part into the tensors, and then everybody's.
  void gather(const std::byte* part, std::span<std::byte* const> tensors, void* queue) const {
    for_stretches(tensors, [&](std::byte* data, std::int64_t first, std::int64_t end) {
      const Interval<std::int64_t> own = own_of(first, end);
      if (!own.empty())
        comm_->copy(data + (own.begin - first) * element_,
                    part + (own.begin - own_begin_) * element_,
                    static_cast<std::size_t>((own.end - own.begin) * element_), queue);
      comm_->gather_run(data, begins(first, end, element_), queue);
    });
  }

 private:
  bool side_by_side_;
  std::shared_ptr<Communicator> comm_;
  RunParts parts_;
  ir::DType dtype_;
  std::int64_t element_;
  std::int64_t skipped_;  // bytes of the one tensor
  std::int64_t own_begin_;
  std::int64_t own_end_;
};

class ScatterSums final : public Kernel {
 public:
  explicit ScatterSums(SharedRun run) : run_(std::move(run)) {}
  Bytes scratch() const override { return run_.comm().scatter_scratch(run_.longest()); }
  void run(const Arguments& arguments) override {
    std::byte* const part = arguments.outputs[0];
    run_.for_stretches(
        arguments.inputs, [&](const std::byte* data, std::int64_t first, std::int64_t end) {
          const Interval<std::int64_t> own = run_.own_of(first, end);
          run_.comm().scatter_sums(data, run_.begins(first, end, 1),
                                   own.empty() ? part : run_.in_part(part, own.begin), run_.dtype(),
                                   arguments.scratch, arguments.queue);
        });
    run_.zero_padding(part, arguments.queue);
  }

 private:
  SharedRun run_;
};

class OwnPart final : public Kernel {
 public:
  explicit OwnPart(SharedRun run) : run_(std::move(run)) {}
  void run(const Arguments& arguments) override {
    std::byte* const part = arguments.outputs[0];
    run_.for_stretches(
        arguments.inputs, [&](const std::byte* data, std::int64_t first, std::int64_t end) {
          const Interval<std::int64_t> own = run_.own_of(first, end);
          if (!own.empty())
            run_.comm().copy(
                run_.in_part(part, own.begin), data + (own.begin - first) * run_.element(),
                static_cast<std::size_t>((own.end - own.begin) * run_.element()), arguments.queue);
        });
    run_.zero_padding(part, arguments.queue);
  }

 private:
  SharedRun run_;
};

class GatherWeights final : public Kernel {
 public:
  explicit GatherWeights(SharedRun run) : run_(std::move(run)) {}
  void run(const Arguments& arguments) override {
    run_.gather(arguments.inputs[0], arguments.outputs, arguments.queue);
  }

 private:
  SharedRun run_;
};

}  // namespace

std::unique_ptr<Kernel> make_shard_kernel(const std::shared_ptr<Communicator>& communicator,
                                          const ir::Graph& graph, const ir::Node& node,
                                          bool side_by_side) {
  SharedRun run(communicator, ops::run_parts(graph, node),
                graph.value(node.outputs.front()).type.dtype, ops::first_of_range(node),
                side_by_side);
  if (node.op == "scatter_sums") return std::make_unique<ScatterSums>(std::move(run));
  if (node.op == "own_part") return std::make_unique<OwnPart>(std::move(run));
  return std::make_unique<GatherWeights>(std::move(run));  // over the old version, or not
}

}  // namespace plimsoll::kernels
