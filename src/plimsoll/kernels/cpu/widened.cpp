#include "plimsoll/kernels/cpu/widened.h"

#include <algorithm>

#include "plimsoll/base/checked.h"
#include "plimsoll/kernels/cpu/elementwise.h"

namespace plimsoll::kernels {
namespace {

template <typename From, typename To>
PLIMSOLL_VECTORIZED void convert_range(const From* from, To* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) store(to[i], load(from[i]));
}

template <typename From, typename To>
void convert(const From* from, To* to, std::int64_t n) {
  parallel_ranges(n, kElementGrain, [&](std::int64_t begin, std::int64_t end) {
    convert_range(from + begin, to + begin, end - begin);
  });
}

// Where the fp32 form of a tensor lies in scratch; nothing when it is used as it is.
struct Wide {
  bool is_wide = false;
  std::int64_t offset = 0;
  std::int64_t elements = 0;
};

class WidenedKernel final : public Kernel {
 public:
  WidenedKernel(int threads, std::unique_ptr<Kernel> inner, std::vector<Wide> inputs,
                std::vector<Wide> outputs, std::int64_t wide_bytes)
      : threads_(threads),
        inner_(std::move(inner)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        wide_bytes_(wide_bytes),
        in_addresses_(inputs_.size()),
        out_addresses_(outputs_.size()) {}

  Bytes scratch() const override { return Bytes(wide_bytes_) + inner_->scratch(); }

  void run(const Arguments& a) override {
    use_threads(threads_);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      in_addresses_[i] = a.inputs[i];
      if (!inputs_[i].is_wide) continue;
      auto* wide = reinterpret_cast<float*>(a.scratch + inputs_[i].offset);
      convert(reinterpret_cast<const Bf16*>(a.inputs[i]), wide, inputs_[i].elements);
      in_addresses_[i] = a.scratch + inputs_[i].offset;
    }
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      out_addresses_[i] = outputs_[i].is_wide ? a.scratch + outputs_[i].offset : a.outputs[i];
    }
    inner_->run({in_addresses_, out_addresses_, a.scratch + wide_bytes_});
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      if (!outputs_[i].is_wide) continue;
      convert(reinterpret_cast<const float*>(a.scratch + outputs_[i].offset),
              reinterpret_cast<Bf16*>(a.outputs[i]), outputs_[i].elements);
    }
  }

 private:
  int threads_;
  std::unique_ptr<Kernel> inner_;
  std::vector<Wide> inputs_;
  std::vector<Wide> outputs_;
  std::int64_t wide_bytes_;
  std::vector<const std::byte*> in_addresses_;
  std::vector<std::byte*> out_addresses_;
};

// The node with every bf16 tensor as fp32, and where those lie.
struct WideNode {
  ir::Graph graph;
  std::vector<Wide> inputs;
  std::vector<Wide> outputs;
  std::int64_t bytes = 0;

  Wide widen(ir::TensorType& type) {
    if (type.dtype != ir::DType::kBF16) return {};
    const std::int64_t elements = stored_elements(type);
    const Wide out{true, bytes, elements};
    type.dtype = ir::DType::kF32;
    bytes += round_up(elements * static_cast<std::int64_t>(sizeof(float)), kAlignment);
    return out;
  }
};

// The node on a row of so many elements instead of every tensor like its first.
ir::Graph node_on(const Site& site, std::int64_t elements) {
  const ir::TensorType whole = site.in(0);
  const auto piece = [&](const ir::TensorType& type) {
    return type == whole ? ir::TensorType{type.dtype, {elements}, {}} : type;
  };
  ir::Graph out;
  ir::Node node = site.node;
  for (int i = 0; i < site.inputs(); ++i) {
    if (!site.has(i)) continue;
    node.inputs[static_cast<std::size_t>(i)] =
        out.add_source(fmt::format("x{}", i), ir::ValueKind::kInput, piece(site.in(i)));
  }
  std::vector<ir::TensorType> types;
  for (int i = 0; i < site.outputs(); ++i) types.push_back(piece(site.out(i)));
  out.add_node(std::move(node), types, ir::ValueKind::kActivation);
  return out;
}

// The same kernel on one piece after another; the last one may be shorter.
class PiecewiseKernel final : public Kernel {
 public:
  PiecewiseKernel(const Site& site, std::unique_ptr<Kernel> piece, std::unique_ptr<Kernel> last)
      : elements_(stored_elements(site.in(0))), piece_(std::move(piece)), last_(std::move(last)) {
    const std::int64_t bytes = ir::bytes_of(site.in(0)).value / elements_;
    const auto moves = [&](const ir::TensorType& type) {
      return type == site.in(0) ? bytes : std::int64_t{0};
    };
    for (int i = 0; i < site.inputs(); ++i)
      in_bytes_.push_back(site.has(i) ? moves(site.in(i)) : 0);
    for (int i = 0; i < site.outputs(); ++i) out_bytes_.push_back(moves(site.out(i)));
  }

  Bytes scratch() const override { return std::max(piece_->scratch(), last_->scratch()); }

  void run(const Arguments& a) override {
    std::vector<const std::byte*> inputs(in_bytes_.size());
    std::vector<std::byte*> outputs(out_bytes_.size());
    for (std::int64_t begin = 0; begin < elements_; begin += kPiece) {
      for (std::size_t i = 0; i < inputs.size(); ++i)
        inputs[i] = a.inputs[i] == nullptr ? nullptr : a.inputs[i] + begin * in_bytes_[i];
      for (std::size_t i = 0; i < outputs.size(); ++i)
        outputs[i] = a.outputs[i] + begin * out_bytes_[i];
      Kernel& kernel = elements_ - begin < kPiece ? *last_ : *piece_;
      kernel.run({inputs, outputs, a.scratch});
    }
  }

 private:
  std::int64_t elements_;
  std::unique_ptr<Kernel> piece_;
  std::unique_ptr<Kernel> last_;
  std::vector<std::int64_t> in_bytes_;  // of an element; 0: a scalar
  std::vector<std::int64_t> out_bytes_;
};

// Every tensor is like the first, or a scalar.
bool can_be_cut(const Site& site) {
  const ir::TensorType& whole = site.in(0);
  return stored_elements(whole) > kPiece && site.every_type([&](const ir::TensorType& type) {
    return type == whole || stored_elements(type) == 1;
  });
}

std::unique_ptr<Kernel> make_piecewise(const Site& site, Factory make) {
  const auto on = [&](std::int64_t elements) {
    const ir::Graph graph = node_on(site, elements);
    return make_widened(Site{{graph, graph.nodes.front()}, site.threads}, make);
  };
  const std::int64_t rest = stored_elements(site.in(0)) % kPiece;
  auto piece = on(kPiece);
  auto last = on(rest == 0 ? kPiece : rest);
  if (piece == nullptr || last == nullptr) return nullptr;
  return std::make_unique<PiecewiseKernel>(site, std::move(piece), std::move(last));
}

WideNode wide_node(const Site& site) {
  WideNode out;
  ir::Node node = site.node;
  for (int i = 0; i < site.inputs(); ++i) {
    out.inputs.emplace_back();
    if (!site.has(i)) continue;
    ir::TensorType type = site.in(i);
    out.inputs.back() = out.widen(type);
    node.inputs[static_cast<std::size_t>(i)] =
        out.graph.add_source(fmt::format("x{}", i), ir::ValueKind::kInput, type);
  }
  std::vector<ir::TensorType> types;
  for (int i = 0; i < site.outputs(); ++i) {
    types.push_back(site.out(i));
    out.outputs.push_back(out.widen(types.back()));
  }
  out.graph.add_node(std::move(node), types, ir::ValueKind::kActivation);
  return out;
}

}  // namespace

std::unique_ptr<Kernel> make_widened(const Site& site, Factory make, bool pointwise) {
  if (pointwise && can_be_cut(site)) return make_piecewise(site, make);
  WideNode wide = wide_node(site);
  if (wide.bytes == 0) return nullptr;
  auto inner = make(Site{{wide.graph, wide.graph.nodes.front()}, site.threads});
  if (inner == nullptr) return nullptr;
  return std::make_unique<WidenedKernel>(site.threads, std::move(inner), std::move(wide.inputs),
                                         std::move(wide.outputs), wide.bytes);
}

}  // namespace plimsoll::kernels
