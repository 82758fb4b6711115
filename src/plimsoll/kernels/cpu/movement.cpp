// Everything that moves elements without changing them: slices, joins, transposes, layouts.
//
// Nearly all of it is copies of boxes (kernels/box_copy.h). Transposes and changes of layout of 32-
// and 16-bit floats go through oneDNN's reorder, which blocks them for the cache.
#include <cstring>

#include "plimsoll/kernels/box_copy.h"
#include "plimsoll/kernels/cpu/onednn.h"
#include "plimsoll/kernels/cpu/parallel.h"
#include "plimsoll/kernels/cpu/strided.h"
#include "plimsoll/kernels/cpu/table.h"
#include "plimsoll/ops/evaluation/array.h"
#include "plimsoll/ops/movement/channel_groups.h"

namespace plimsoll::kernels {
namespace {

template <typename Unit>
void copy_row(Unit* to, std::int64_t to_step, const Unit* from, std::int64_t from_step,
              std::int64_t n) {
  if (to_step == 1 && from_step == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(Unit));
  } else if (to_step == 1 && from_step == 0) {
    std::fill(to, to + n, *from);
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i * to_step] = from[i * from_step];
  }
}

template <typename Unit>
void run_copy(const BoxCopy& copy, std::byte* to, const std::byte* from) {
  auto* target = reinterpret_cast<Unit*>(to) + copy.to;
  const auto* source = reinterpret_cast<const Unit*>(from) + copy.from;
  const StridedLoop& loop = copy.loop;
  parallel_rows(loop.rows(), loop.row(), [&](std::int64_t r) {
    copy_row(target + loop.row_offset(0, r), loop.row_step(0), source + loop.row_offset(1, r),
             loop.row_step(1), loop.row());
  });
}

using RunCopy = void (*)(const BoxCopy&, std::byte*, const std::byte*);

// By width alone: a copy does not care what the bits mean. Null for elements below a byte.
RunCopy copier_for(ir::DType dtype) {
  switch (ir::bits(dtype)) {
    case 8:
      return run_copy<std::uint8_t>;
    case 16:
      return run_copy<std::uint16_t>;
    case 32:
      return run_copy<std::uint32_t>;
    case 64:
      return run_copy<std::uint64_t>;
    default:
      return nullptr;
  }
}

// The bits of the number that `fill` and `pad` write.
std::uint64_t pattern_of(ir::DType dtype, const ops::AttributeReader& attributes) {
  const double value = attributes.real("value");
  if (ir::is_float(dtype)) return ops::encode_real(dtype, value);
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
}

std::unique_ptr<Kernel> nothing_to_do(const Site& site) {
  return make_kernel(site, [](const Arguments&) {});
}

std::unique_ptr<Kernel> make_box_kernel(const Site& site, RunCopy run, const BoxCopy& copy) {
  return make_kernel(site, [=](const Arguments& a) { run(copy, a.outputs[0], a.inputs[0]); });
}

std::unique_ptr<Kernel> onednn_reorder(const Site& site, const dnnl::memory::desc& from,
                                       const dnnl::memory::desc& to) {
  const dnnl::engine& engine = onednn_engine();
  const dnnl::reorder::primitive_desc pd(engine, from, engine, to, user_scratchpad());
  return std::make_unique<PrimitiveKernel>(
      site, Primitive(dnnl::reorder(pd), pd.scratchpad_desc(),
                      {reads(0, DNNL_ARG_FROM, from), writes(0, DNNL_ARG_TO, to)}));
}

// Blocks of 16 channels, the last one padded, to channels last: oneDNN takes three times as long
// for it as for whole blocks.
std::unique_ptr<Kernel> make_unblock(const Site& site) {
  constexpr std::int64_t kChannelBlock = 16;
  const ir::Shape& shape = site.out().shape;
  const std::int64_t channels = shape[1];
  const std::int64_t blocks = (channels + kChannelBlock - 1) / kChannelBlock;
  const std::int64_t plane = shape[2] * shape[3];
  return make_kernel(site, [=, images = shape[0]](const Arguments& a) {
    const auto* from = input<float>(a, 0);
    parallel_rows(images * plane, channels, [&](std::int64_t i) {
      const float* place = from + (i / plane * blocks * plane + i % plane) * kChannelBlock;
      float* to = output<float>(a) + i * channels;
      for (std::int64_t c = 0; c < channels; c += kChannelBlock, place += plane * kChannelBlock) {
        std::copy(place, place + std::min(kChannelBlock, channels - c), to + c);
      }
    });
  });
}

std::unique_ptr<Kernel> make_reorder(const Site& site) {
  if (site.out().shape.elements() == 0) return nothing_to_do(site);
  if (is_f32(site.out()) && site.out().shape.rank() == 4 && site.out().shape[1] % 16 != 0 &&
      site.in(0).layout == *ir::parse_layout("@0123:16b1") &&
      site.out().layout == ir::Layout::channels_last(4)) {
    return make_unblock(site);
  }
  if (onednn_dtype(site.out().dtype))
    return onednn_reorder(site, describe(site.in(0)), describe(site.out()));
  const RunCopy run = copier_for(site.out().dtype);
  if (run == nullptr || !all_unblocked(site)) return nullptr;
  return make_box_kernel(site, run, reorder_box(site));
}

std::unique_ptr<Kernel> make_transpose(const Site& site) {
  if (!all_unblocked(site)) return nullptr;
  if (site.out().shape.elements() == 0) return nothing_to_do(site);
  const int rank = site.out().shape.rank();
  if (onednn_dtype(site.out().dtype) && rank > 1) {
    const dnnl::memory::dims dims = dims_of(site.out().shape);
    const Strides from = transposed_strides(site);
    const auto source = describe(site.out().dtype, dims, {from.begin(), from.begin() + rank});
    return onednn_reorder(site, source, describe(site.out()));
  }
  const RunCopy run = copier_for(site.out().dtype);
  if (run == nullptr) return nullptr;
  return make_box_kernel(site, run, transpose_box(site));
}

std::unique_ptr<Kernel> make_expand(const Site& site) {
  const RunCopy run = copier_for(site.out().dtype);
  if (run == nullptr || !all_unblocked(site)) return nullptr;
  if (site.out().shape.elements() == 0) return nothing_to_do(site);
  return make_box_kernel(site, run, expand_box(site));
}

// When an axis too many is left, the reference does it.
std::unique_ptr<Kernel> make_tile(const Site& site) {
  const RunCopy run = copier_for(site.out().dtype);
  if (run == nullptr || !all_row_major(site)) return nullptr;
  if (site.out().shape.elements() == 0) return nothing_to_do(site);
  const auto box = tile_box(site);
  return box ? make_box_kernel(site, run, *box) : nullptr;
}

template <bool widens>
std::unique_ptr<Kernel> make_depth_to_space(const Site& site) {
  const RunCopy run = copier_for(site.out().dtype);
  if (run == nullptr || !all_row_major(site)) return nullptr;
  if (site.out().shape.elements() == 0) return nothing_to_do(site);
  return make_box_kernel(site, run, depth_to_space_box(site, widens));
}

// identity and reshape, where the executor gave the result memory of its own.
template <bool keeps_shape>
std::unique_ptr<Kernel> make_copy(const Site& site) {
  const bool alike =
      site.in(0).layout == site.out().layout && (keeps_shape || site.in(0).layout.is_row_major());
  const bool cut =
      ops::is_channel_cut(site.in(0), site.out()) || ops::is_channel_cut(site.out(), site.in(0));
  if (!alike && (keeps_shape || !cut)) return nullptr;
  const std::int64_t bytes = ir::bytes_of(site.out()).value;
  return make_kernel(site, [=](const Arguments& a) {
    if (a.outputs[0] == a.inputs[0]) return;
    parallel_ranges(bytes, 16 * kElementGrain, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(a.outputs[0] + begin, a.inputs[0] + begin, static_cast<std::size_t>(end - begin));
    });
  });
}

std::unique_ptr<Kernel> make_slice(const Site& site) {
  const RunCopy run = copier_for(site.out().dtype);
  if (run == nullptr || !all_unblocked(site)) return nullptr;
  if (site.out().shape.elements() == 0) return nothing_to_do(site);
  const BoxCopy copy = slice_box(site);
  const std::int64_t offset = copy.from * ir::bits(site.out().dtype) / 8;
  return make_kernel(site, [=](const Arguments& a) {
    if (a.outputs[0] != a.inputs[0] + offset) run(copy, a.outputs[0], a.inputs[0]);
  });
}

std::unique_ptr<Kernel> make_slice_assign(const Site& site) {
  const RunCopy run = copier_for(site.out().dtype);
  if (run == nullptr || !all_unblocked(site) || site.in(0) != site.out()) return nullptr;
  const std::int64_t bytes = ir::bytes_of(site.out()).value;
  const bool empty = site.in(1).shape.elements() == 0;
  const BoxCopy copy = empty ? BoxCopy() : slice_assign_box(site);
  return make_kernel(site, [=](const Arguments& a) {
    if (a.outputs[0] != a.inputs[0])
      std::memcpy(a.outputs[0], a.inputs[0], static_cast<std::size_t>(bytes));
    if (!empty) run(copy, a.outputs[0], a.inputs[1]);
  });
}

std::unique_ptr<Kernel> make_pad(const Site& site) {
  const RunCopy run = copier_for(site.out().dtype);
  const std::uint64_t value = pattern_of(site.out().dtype, site.attributes());
  if (run == nullptr || !all_unblocked(site)) return nullptr;
  if (site.attributes().text("mode") != "constant") return nullptr;
  if (site.out().shape.elements() == 0) return nothing_to_do(site);
  const std::optional<BoxCopy> copy = pad_box(site);
  const BoxCopy background{{{site.out().shape.elements()}, {{1}, {0}}}};
  return make_kernel(site, [=](const Arguments& a) {
    run(background, a.outputs[0], reinterpret_cast<const std::byte*>(&value));
    if (copy) run(*copy, a.outputs[0], a.inputs[0]);
  });
}

// One tensor and its parts along an axis; a part that lies where it belongs already is not copied.
template <bool joins>
std::unique_ptr<Kernel> make_parts(const Site& site) {
  const ir::TensorType& whole = joins ? site.out() : site.in(0);
  const RunCopy run = copier_for(whole.dtype);
  if (run == nullptr || !all_unblocked(site)) return nullptr;
  const int width = ir::bits(whole.dtype) / 8;
  return make_kernel(site, [copies = part_boxes(site, joins), run, width](const Arguments& a) {
    for (const BoxCopy& copy : copies) {
      std::byte* const to = a.outputs[copy.output];
      const std::byte* const from = a.inputs[copy.input];
      if (from + copy.from * width != to + copy.to * width) run(copy, to, from);
    }
  });
}

std::unique_ptr<Kernel> make_fill(const Site& site) {
  const RunCopy run = copier_for(site.out().dtype);
  if (run == nullptr) return nullptr;
  const std::uint64_t pattern = pattern_of(site.out().dtype, site.attributes());
  const std::int64_t count = ir::bytes_of(site.out()).value * 8 / ir::bits(site.out().dtype);
  if (count == 0) return nothing_to_do(site);
  const BoxCopy copy{{{count}, {{1}, {0}}}};
  return make_kernel(site, [=](const Arguments& a) {
    run(copy, a.outputs[0], reinterpret_cast<const std::byte*>(&pattern));
  });
}

}  // namespace

std::span<const TableEntry> movement_kernels() {
  static constexpr TableEntry kRows[] = {
      {"bit_cast", make_copy<true>},
      {"concat", make_parts<true>},
      {"depth_to_space", make_depth_to_space<true>},
      {"expand", make_expand},
      {"fill", make_fill, true},
      {"identity", make_copy<true>},
      {"pad", make_pad},
      {"reorder", make_reorder},
      {"reshape", make_copy<false>},
      {"slice", make_slice},
      {"slice_assign", make_slice_assign},
      {"space_to_depth", make_depth_to_space<false>},
      {"split", make_parts<false>},
      {"tile", make_tile},
      {"transpose", make_transpose},
  };
  return kRows;
}

}  // namespace plimsoll::kernels
