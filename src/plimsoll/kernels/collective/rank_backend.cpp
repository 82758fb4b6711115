#include "plimsoll/kernels/collective/rank_backend.h"

#include <algorithm>

#include "plimsoll/base/checked.h"
#include "plimsoll/kernels/collective/shard_kernels.h"
#include "plimsoll/ops/collective/collective.h"
#include "plimsoll/ops/collective/shard.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::kernels {
namespace {

using dist::Communicator;

struct CollectiveSite {
  std::shared_ptr<Communicator> comm;
  dist::Reduction how = dist::Reduction::kAny;
  ir::DType dtype = ir::DType::kF32;
  std::int64_t alignment = 1;
  bool side_by_side = true;
  std::vector<std::int64_t> input_bytes;
  std::vector<std::int64_t> output_bytes;

  std::int64_t element() const { return ir::bits(dtype) / 8; }
};

class AllReduce final : public Kernel {
 public:
  explicit AllReduce(CollectiveSite site) : site_(std::move(site)) {
    for (const std::int64_t bytes : site_.output_bytes)
      most_ =
          site_.side_by_side ? most_ + round_up(bytes, site_.alignment) : std::max(most_, bytes);
  }

  Bytes scratch() const override {
    return site_.comm->scratch(Bytes(most_), site_.dtype, site_.how);
  }

  void run(const Arguments& arguments) override {
    const std::size_t count = arguments.outputs.size();
    for (std::size_t i = 0; i < count; ++i) {
      if (arguments.outputs[i] != arguments.inputs[i])
        site_.comm->copy(arguments.outputs[i], arguments.inputs[i],
                         static_cast<std::size_t>(site_.output_bytes[i]), arguments.queue);
    }
    for (std::size_t i = 0; i < count;) {
      std::byte* const begin = arguments.outputs[i];
      std::byte* end = begin + site_.output_bytes[i];
      for (++i; i < count && follows(begin, end, arguments.outputs[i]); ++i)
        end = arguments.outputs[i] + site_.output_bytes[i];
      site_.comm->all_reduce(begin, (end - begin) / site_.element(), site_.dtype, site_.how,
                             arguments.scratch, arguments.queue);
    }
  }

 private:
  // Whether only the padding of what ends here lies between.
  bool follows(const std::byte* begin, const std::byte* end, const std::byte* next) const {
    return site_.side_by_side && next == begin + round_up(end - begin, site_.alignment);
  }

  CollectiveSite site_;
  std::int64_t most_ = 0;  // bytes of the longest run
};

// In a copy, because what it reads must stay as it is.
class ReduceScatter final : public Kernel {
 public:
  explicit ReduceScatter(CollectiveSite site) : site_(std::move(site)) {}
  Bytes scratch() const override {
    return Bytes(copy_bytes()) +
           site_.comm->scratch(Bytes(site_.input_bytes[0]), site_.dtype, site_.how);
  }
  void run(const Arguments& arguments) override {
    const auto part = static_cast<std::size_t>(site_.output_bytes[0]);
    std::byte* const copy = arguments.scratch;
    site_.comm->copy(copy, arguments.inputs[0], static_cast<std::size_t>(site_.input_bytes[0]),
                     arguments.queue);
    site_.comm->reduce_scatter(copy, site_.output_bytes[0] / site_.element(), site_.dtype,
                               site_.how, copy + copy_bytes(), arguments.queue);
    site_.comm->copy(arguments.outputs[0],
                     copy + part * static_cast<std::size_t>(site_.comm->rank()), part,
                     arguments.queue);
  }

 private:
  std::int64_t copy_bytes() const { return round_up(site_.input_bytes[0], site_.alignment); }

  CollectiveSite site_;
};

class AllGather final : public Kernel {
 public:
  explicit AllGather(CollectiveSite site) : site_(std::move(site)) {}
  void run(const Arguments& arguments) override {
    const auto part = static_cast<std::size_t>(site_.input_bytes[0]);
    site_.comm->copy(arguments.outputs[0] + part * static_cast<std::size_t>(site_.comm->rank()),
                     arguments.inputs[0], part, arguments.queue);
    site_.comm->all_gather(arguments.outputs[0], Bytes(site_.input_bytes[0]), arguments.queue);
  }

 private:
  CollectiveSite site_;
};

class Broadcast final : public Kernel {
 public:
  explicit Broadcast(CollectiveSite site) : site_(std::move(site)) {}
  void run(const Arguments& arguments) override {
    if (arguments.outputs[0] != arguments.inputs[0])
      site_.comm->copy(arguments.outputs[0], arguments.inputs[0],
                       static_cast<std::size_t>(site_.output_bytes[0]), arguments.queue);
    site_.comm->broadcast(arguments.outputs[0], Bytes(site_.output_bytes[0]), 0, arguments.queue);
  }

 private:
  CollectiveSite site_;
};

class RankBackend final : public Backend {
 public:
  RankBackend(std::shared_ptr<Backend> others, std::shared_ptr<Communicator> comm,
              bool side_by_side)
      : others_(std::move(others)), comm_(std::move(comm)), side_by_side_(side_by_side) {}

  device::Device& device() const override { return others_->device(); }
  Result<std::unique_ptr<Kernel>> make_kernel(const ir::Graph& graph, NodeId id) override {
    const ir::Node& node = graph.node(id);
    if (!ops::is_collective(node.op)) return others_->make_kernel(graph, id);
    const ops::AttributeReader attributes = ops::attributes_of(node);
    if (attributes.integer("ranks") != comm_->size())
      return bad_input("{}: is a step of {} ranks, here are {}", node.op,
                       attributes.integer("ranks"), comm_->size());
    const bool fixed = attributes.text("order") == "fixed";
    if (fixed && !comm_->adds_in_order())
      return fail(ErrorCode::kUsage, "--reduction fixed: {} adds in an order of its own",
                  comm_->name());
    if (ops::is_shard_operator(node.op))
      return make_shard_kernel(comm_, graph, node, side_by_side_);
    CollectiveSite site{.comm = comm_,
                        .how = fixed ? dist::Reduction::kFixed : dist::Reduction::kAny,
                        .dtype = graph.value(node.outputs.front()).type.dtype,
                        .alignment = device().alignment().value,
                        .side_by_side = side_by_side_,
                        .input_bytes = {},
                        .output_bytes = {}};
    for (const ValueId input : node.inputs)
      site.input_bytes.push_back(ir::bytes_of(graph.value(input).type).value);
    for (const ValueId output : node.outputs)
      site.output_bytes.push_back(ir::bytes_of(graph.value(output).type).value);
    return kernel_of(node.op, std::move(site));
  }
  ir::Layout weights_layout(const ir::Graph& graph, const ir::Node& node) const override {
    return others_->weights_layout(graph, node);
  }
  std::int64_t least_channels_last() const override { return others_->least_channels_last(); }
  BackendRewrites rewrites() const override { return others_->rewrites(); }
  std::string instruction_set() const override { return others_->instruction_set(); }
  std::string library() const override { return others_->library(); }
  std::optional<ops::KernelFacts> known_facts(const std::string& signature) const override {
    return is_collective(signature) ? std::nullopt : others_->known_facts(signature);
  }
  void use_engines(const std::map<std::string, std::string>& engines) override {
    others_->use_engines(engines);
  }
  bool is_here() const override { return others_->is_here(); }
  Status call_host(void* queue, void (*call)(void*), void* subject) override {
    return others_->call_host(queue, call, subject);
  }
  Status encode(const ActivationEncoding& encoding, void* queue) override {
    return others_->encode(encoding, queue);
  }
  Status decode(const ActivationEncoding& encoding, void* queue) override {
    return others_->decode(encoding, queue);
  }
  void keep(const std::string& signature, std::unique_ptr<Kernel> kernel) override {
    if (!is_collective(signature)) others_->keep(signature, std::move(kernel));
  }
  Bytes context_bytes() const override { return others_->context_bytes(); }
  Bytes bare_context_bytes() const override { return others_->bare_context_bytes(); }
  std::string neighbours() const override { return others_->neighbours(); }

 private:
  static bool is_collective(std::string_view signature) {
    return ops::is_collective(signature.substr(0, signature.find('(')));
  }
  static std::unique_ptr<Kernel> kernel_of(std::string_view op, CollectiveSite site) {
    if (op == "reduce_scatter") return std::make_unique<ReduceScatter>(std::move(site));
    if (op == "all_gather") return std::make_unique<AllGather>(std::move(site));
    if (op == "broadcast") return std::make_unique<Broadcast>(std::move(site));
    return std::make_unique<AllReduce>(std::move(site));
  }

  std::shared_ptr<Backend> others_;
  std::shared_ptr<Communicator> comm_;
  bool side_by_side_;
};

}  // namespace

std::shared_ptr<Backend> make_rank_backend(std::shared_ptr<Backend> others,
                                           std::shared_ptr<Communicator> communicator,
                                           bool side_by_side) {
  return std::make_shared<RankBackend>(std::move(others), std::move(communicator), side_by_side);
}

}  // namespace plimsoll::kernels
