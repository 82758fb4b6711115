#include "plimsoll/kernels/cpu/onednn.h"

#include <algorithm>
#include <numeric>

#include "plimsoll/kernels/strided_loop.h"

namespace plimsoll::kernels {

const dnnl::engine& onednn_engine() {
  static const dnnl::engine kEngine(dnnl::engine::kind::cpu, 0);
  return kEngine;
}

std::optional<dnnl::memory::data_type> onednn_dtype(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kF32:
      return dnnl::memory::data_type::f32;
    case ir::DType::kBF16:
      return dnnl::memory::data_type::bf16;
    case ir::DType::kI32:
      return dnnl::memory::data_type::s32;
    case ir::DType::kI8:
      return dnnl::memory::data_type::s8;
    case ir::DType::kU8:
      return dnnl::memory::data_type::u8;
    default:
      return std::nullopt;
  }
}

namespace {

dnnl::memory::data_type required_dtype(ir::DType dtype) {
  const auto out = onednn_dtype(dtype);
  PLIMSOLL_CHECK(out.has_value(), "oneDNN has no {}", ir::name(dtype));
  return *out;
}

}  // namespace

dnnl::memory::desc describe(const ir::TensorType& type) {
  const int rank = type.shape.rank();
  if (rank == 0) return describe(type.dtype, {1}, {1});
  dnnl_memory_desc_t raw{};
  raw.ndims = rank;
  raw.data_type = dnnl::memory::convert_to_c(required_dtype(type.dtype));
  raw.format_kind = dnnl_blocked;
  const ir::Shape outer = *ir::padded(type.shape, type.layout);
  dnnl_blocking_desc_t& blocking = raw.format_desc.blocking;
  std::array<std::int64_t, ir::kMaxRank> blocks{};
  blocks.fill(1);
  std::int64_t stride = 1;
  blocking.inner_nblks = type.layout.block_count;
  for (int i = 0; i < type.layout.block_count; ++i) {
    const ir::Block& block = type.layout.blocks[static_cast<std::size_t>(i)];
    blocking.inner_blks[i] = block.size;
    blocking.inner_idxs[i] = block.dim;
    blocks[block.dim] *= block.size;
    stride *= block.size;
  }
  const auto order = axes_in_memory(type.shape, type.layout);
  for (int i = rank - 1; i >= 0; --i) {
    const int axis = order[static_cast<std::size_t>(i)];
    blocking.strides[axis] = stride;
    stride *= outer[axis] / blocks[static_cast<std::size_t>(axis)];
  }
  for (int axis = 0; axis < rank; ++axis) {
    raw.dims[axis] = type.shape[axis];
    raw.padded_dims[axis] = outer[axis];
  }
  return dnnl::memory::desc(raw);
}

dnnl::memory::desc describe(ir::DType dtype, const dnnl::memory::dims& dims,
                            const dnnl::memory::dims& strides) {
  return {dims, required_dtype(dtype), strides};
}

std::optional<ir::Layout> layout_of(const dnnl::memory::desc& desc) {
  const dnnl_memory_desc_t& raw = desc.data;
  if (raw.format_kind != dnnl_blocked || raw.ndims > ir::kMaxRank || raw.extra.flags != 0)
    return std::nullopt;
  const dnnl_blocking_desc_t& blocking = raw.format_desc.blocking;
  if (blocking.inner_nblks > ir::Layout::kMaxBlocks) return std::nullopt;
  ir::Layout out;
  out.rank = static_cast<std::uint8_t>(raw.ndims);
  std::iota(out.order.begin(), out.order.begin() + out.rank, std::uint8_t{0});
  std::stable_sort(out.order.begin(), out.order.begin() + out.rank,
                   [&](int a, int b) { return blocking.strides[a] > blocking.strides[b]; });
  out.block_count = static_cast<std::uint8_t>(blocking.inner_nblks);
  for (int i = 0; i < blocking.inner_nblks; ++i) {
    out.blocks[static_cast<std::size_t>(i)] = {static_cast<std::uint8_t>(blocking.inner_idxs[i]),
                                               static_cast<std::uint16_t>(blocking.inner_blks[i])};
  }
  ir::Layout plain = out;
  std::iota(plain.order.begin(), plain.order.begin() + plain.rank, std::uint8_t{0});
  if (out == plain && out.block_count == 0) return ir::Layout::row_major();
  return out;
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

Primitive::Primitive(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
                     const std::vector<Binding>& bindings)
    : primitive_(primitive),
      stream_(onednn_engine()),
      scratch_(static_cast<std::int64_t>(scratchpad.get_size())) {
  for (const Binding& binding : bindings) {
    dnnl::memory memory(binding.desc, onednn_engine(), DNNL_MEMORY_NONE);
    bound_.push_back({binding.from, binding.index, memory});
    arguments_.emplace(binding.argument, memory);
  }
  if (scratch_.value > 0) {
    scratchpad_ = dnnl::memory(scratchpad, onednn_engine(), DNNL_MEMORY_NONE);
    arguments_.emplace(DNNL_ARG_SCRATCHPAD, scratchpad_);
  }
}

void Primitive::run(const Arguments& arguments) {
  for (Bound& bound : bound_) {
    const auto place = static_cast<std::size_t>(bound.index);
    // oneDNN takes every address as mutable; inputs are only read.
    void* address = bound.from == Binding::From::kOutput
                        ? arguments.outputs[place]
                        : const_cast<std::byte*>(arguments.inputs[place]);
    bound.memory.set_data_handle(address);
  }
  if (scratch_.value > 0) scratchpad_.set_data_handle(arguments.scratch);
  primitive_.execute(stream_, arguments_);
}

}  // namespace plimsoll::kernels
