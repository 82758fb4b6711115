// Everything that moves elements without changing them: slices, joins, transposes, layouts.
//
// Nearly all of it is one thing, a box copy: the same box of elements in two tensors, each with its
// own start and strides. Slicing starts inside the source, concatenation inside the target,
// expansion has source strides of 0, a reversed slice negative ones. Transposes and changes of
// layout of 32- and 16-bit floats go through oneDNN's reorder, which blocks them for the cache.
#include <cstring>

#include "plimsoll/kernels/cpu/onednn.h"
#include "plimsoll/kernels/cpu/parallel.h"
#include "plimsoll/kernels/cpu/strided.h"
#include "plimsoll/kernels/cpu/table.h"
#include "plimsoll/ops/evaluation/array.h"
#include "plimsoll/ops/movement/channel_groups.h"

namespace plimsoll::kernels {
namespace {

using Strides = std::array<std::int64_t, ir::kMaxRank>;

struct BoxCopy {
  StridedLoop loop;  // operand 0: the target, 1: the source
  std::int64_t to = 0;
  std::int64_t from = 0;
};

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

// The box of `shape` elements; the loop runs in the memory order `layout`.
BoxCopy box_copy(const ir::Shape& shape, const ir::Layout& layout, const Strides& to,
                 const Strides& from) {
  return {make_strided_loop({ir::DType::kU8, shape, layout}, {to, from}), 0, 0};
}

// The bits of the number that `fill` and `pad` write.
std::uint64_t pattern_of(ir::DType dtype, const ops::AttributeReader& attributes) {
  const double value = attributes.real("value");
  if (ir::is_float(dtype)) return ops::encode_real(dtype, value);
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
}

struct Slice {
  ir::Ints starts;
  ir::Ints steps;
};

Slice slice_of(const Site& site) {
  const auto rank = static_cast<std::size_t>(site.in(0).shape.rank());
  return {site.attributes().integers("starts", ir::Ints(rank, 0)),
          site.attributes().integers("steps", ir::Ints(rank, 1))};
}

// Strides and start of the sliced elements inside their tensor.
std::pair<Strides, std::int64_t> place_of(const ir::TensorType& tensor, const Slice& slice) {
  Strides strides = physical_strides(tensor);
  std::int64_t start = 0;
  for (std::size_t axis = 0; axis < slice.starts.size(); ++axis) {
    start += slice.starts[axis] * strides[axis];
    strides[axis] *= slice.steps[axis];
  }
  return {strides, start};
}

std::unique_ptr<Kernel> nothing_to_do(const Site& site) {
  return make_kernel(site, [](const Arguments&) {});
}

int axis_of(const Site& site, int rank) {
  const auto axis = static_cast<int>(site.attributes().integer("axis"));
  return axis < 0 ? axis + rank : axis;
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
  const BoxCopy copy = box_copy(site.out().shape, site.out().layout, physical_strides(site.out()),
                                physical_strides(site.in(0)));
  return make_kernel(site, [=](const Arguments& a) { run(copy, a.outputs[0], a.inputs[0]); });
}

std::unique_ptr<Kernel> make_transpose(const Site& site) {
  if (!all_unblocked(site)) return nullptr;
  if (site.out().shape.elements() == 0) return nothing_to_do(site);
  const Strides own = physical_strides(site.in(0));
  const int rank = site.in(0).shape.rank();
  Strides from{};
  ir::Ints perm = site.attributes().integers("perm");
  for (int axis = 0; axis < rank && perm.size() < static_cast<std::size_t>(rank); ++axis)
    perm.push_back(rank - 1 - axis);
  for (std::size_t axis = 0; axis < perm.size(); ++axis)
    from[axis] = own[static_cast<std::size_t>(perm[axis])];
  if (onednn_dtype(site.out().dtype) && rank > 1) {
    const dnnl::memory::dims dims = dims_of(site.out().shape);
    const auto source = describe(site.out().dtype, dims, {from.begin(), from.begin() + rank});
    return onednn_reorder(site, source, describe(site.out()));
  }
  const RunCopy run = copier_for(site.out().dtype);
  if (run == nullptr) return nullptr;
  const BoxCopy copy =
      box_copy(site.out().shape, site.out().layout, physical_strides(site.out()), from);
  return make_kernel(site, [=](const Arguments& a) { run(copy, a.outputs[0], a.inputs[0]); });
}

std::unique_ptr<Kernel> make_expand(const Site& site) {
  const RunCopy run = copier_for(site.out().dtype);
  if (run == nullptr || !all_unblocked(site)) return nullptr;
  if (site.out().shape.elements() == 0) return nothing_to_do(site);
  const BoxCopy copy = box_copy(site.out().shape, site.out().layout, physical_strides(site.out()),
                                broadcast_strides_in(site.in(0), site.out().shape));
  return make_kernel(site, [=](const Arguments& a) { run(copy, a.outputs[0], a.inputs[0]); });
}

// One expansion: the result seen as [repeat, extent] per axis, the source standing still along the
// repeats. Axes that neither repeat nor have more than one element take no place; when more than
// ir::kMaxRank are left the reference does it.
std::unique_ptr<Kernel> make_tile(const Site& site) {
  const RunCopy run = copier_for(site.out().dtype);
  if (run == nullptr || !all_row_major(site)) return nullptr;
  if (site.out().shape.elements() == 0) return nothing_to_do(site);
  const ir::Shape& x = site.in(0).shape;
  const Strides own = physical_strides(site.in(0));
  const ir::Ints repeats = site.attributes().integers("repeats");
  ir::Ints extents;
  ir::Ints steps;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    if (repeats[at] > 1) extents.push_back(repeats[at]), steps.push_back(0);
    if (x[axis] > 1) extents.push_back(x[axis]), steps.push_back(own[at]);
  }
  if (extents.size() > static_cast<std::size_t>(ir::kMaxRank)) return nullptr;
  const ir::Shape shape(extents);
  Strides from{};
  std::copy(steps.begin(), steps.end(), from.begin());
  const BoxCopy copy = box_copy(shape, {}, shape.strides(), from);
  return make_kernel(site, [=](const Arguments& a) { run(copy, a.outputs[0], a.inputs[0]); });
}

// Both directions: the wide tensor [N, C, H b, W b] seen as [N, C, H, b, W, b], the deep one with
// its channels as [b, b, C] ("DCR") or [C, b, b] ("CRD").
template <bool widens>
std::unique_ptr<Kernel> make_depth_to_space(const Site& site) {
  const RunCopy run = copier_for(site.out().dtype);
  if (run == nullptr || !all_row_major(site)) return nullptr;
  if (site.out().shape.elements() == 0) return nothing_to_do(site);
  const ir::Shape& wide = widens ? site.out().shape : site.in(0).shape;
  const std::int64_t b = site.attributes().integer("block");
  const std::int64_t plane = wide[2] / b * (wide[3] / b);
  const bool block_first = site.attributes().text("mode") == "DCR";
  const std::int64_t channel = block_first ? plane : b * b * plane;
  const std::int64_t place = block_first ? wide[1] * plane : plane;
  const ir::Shape box{wide[0], wide[1], wide[2] / b, b, wide[3] / b, b};
  const Strides in_wide = box.strides();
  const Strides in_deep{wide[1] * b * b * plane, channel, wide[3] / b, b * place, 1, place};
  const BoxCopy copy = box_copy(box, {}, widens ? in_wide : in_deep, widens ? in_deep : in_wide);
  return make_kernel(site, [=](const Arguments& a) { run(copy, a.outputs[0], a.inputs[0]); });
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
  const auto [strides, start] = place_of(site.in(0), slice_of(site));
  BoxCopy copy =
      box_copy(site.out().shape, site.out().layout, physical_strides(site.out()), strides);
  copy.from = start;
  const std::int64_t offset = start * ir::bits(site.out().dtype) / 8;
  return make_kernel(site, [=](const Arguments& a) {
    if (a.outputs[0] != a.inputs[0] + offset) run(copy, a.outputs[0], a.inputs[0]);
  });
}

std::unique_ptr<Kernel> make_slice_assign(const Site& site) {
  const RunCopy run = copier_for(site.out().dtype);
  if (run == nullptr || !all_unblocked(site) || site.in(0) != site.out()) return nullptr;
  const std::int64_t bytes = ir::bytes_of(site.out()).value;
  const bool empty = site.in(1).shape.elements() == 0;
  const auto [strides, start] = place_of(site.out(), slice_of(site));
  BoxCopy copy;
  if (!empty)
    copy = box_copy(site.in(1).shape, site.in(1).layout, strides, physical_strides(site.in(1)));
  copy.to = start;
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
  const ir::Shape& x = site.in(0).shape;
  const ir::Ints pads = site.attributes().integers("pads");
  const Strides to = physical_strides(site.out());
  const Strides from = physical_strides(site.in(0));
  ir::Shape box = x;
  std::int64_t target = 0;
  std::int64_t source = 0;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    const std::int64_t before = pads[at];
    const std::int64_t after = pads[at + static_cast<std::size_t>(x.rank())];
    box[axis] = std::max<std::int64_t>(
        0, x[axis] + std::min<std::int64_t>(before, 0) + std::min<std::int64_t>(after, 0));
    target += std::max<std::int64_t>(before, 0) * to[at];
    source += std::max<std::int64_t>(-before, 0) * from[at];
  }
  const bool empty = box.elements() == 0;
  BoxCopy copy;
  if (!empty) copy = box_copy(box, site.out().layout, to, from);
  copy.to = target;
  copy.from = source;
  const BoxCopy background{{{site.out().shape.elements()}, {{1}, {0}}}, 0, 0};
  return make_kernel(site, [=](const Arguments& a) {
    run(background, a.outputs[0], reinterpret_cast<const std::byte*>(&value));
    if (!empty) run(copy, a.outputs[0], a.inputs[0]);
  });
}

// One tensor and its parts along an axis; a part that lies where it belongs already is not copied.
template <bool joins>
std::unique_ptr<Kernel> make_parts(const Site& site) {
  const ir::TensorType& whole = joins ? site.out() : site.in(0);
  const RunCopy run = copier_for(whole.dtype);
  if (run == nullptr || !all_unblocked(site)) return nullptr;
  const Strides strides = physical_strides(whole);
  const int axis = axis_of(site, whole.shape.rank());
  const std::int64_t step = strides[static_cast<std::size_t>(axis)];
  std::vector<std::pair<std::size_t, BoxCopy>> copies;
  std::int64_t start = 0;
  for (int i = 0; i < (joins ? site.inputs() : site.outputs()); ++i) {
    const ir::TensorType& part = joins ? site.in(i) : site.out(i);
    if (part.shape.elements() == 0) continue;
    BoxCopy copy = joins ? box_copy(part.shape, whole.layout, strides, physical_strides(part))
                         : box_copy(part.shape, part.layout, physical_strides(part), strides);
    (joins ? copy.to : copy.from) = start * step;
    copies.emplace_back(static_cast<std::size_t>(i), std::move(copy));
    start += part.shape[axis];
  }
  const int width = ir::bits(whole.dtype) / 8;
  return make_kernel(site, [copies = std::move(copies), run, width](const Arguments& a) {
    for (const auto& [i, copy] : copies) {
      std::byte* const to = a.outputs[joins ? 0 : i];
      const std::byte* const from = a.inputs[joins ? i : 0];
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
  const BoxCopy copy{{{count}, {{1}, {0}}}, 0, 0};
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
