// Everything that moves elements without changing them: the boxes of kernels/box_copy.h, each
// copied by a generated kernel; transposes of matrices by tiles (transpose.cu).
#include "plimsoll/kernels/box_copy.h"
#include "plimsoll/kernels/cuda/launch.h"
#include "plimsoll/kernels/cuda/pointwise.h"
#include "plimsoll/kernels/cuda/source_math.h"
#include "plimsoll/kernels/cuda/table.h"
#include "plimsoll/ops/evaluation/array.h"
#include "plimsoll/ops/movement/channel_groups.h"

namespace plimsoll::kernels::cuda {
namespace {

// A copy does not care what the bits mean.
std::optional<ir::DType> word_of(ir::DType dtype) {
  switch (ir::bits(dtype)) {
    case 8:
      return ir::DType::kU8;
    case 16:
      return ir::DType::kU16;
    case 32:
      return ir::DType::kU32;
    case 64:
      return ir::DType::kU64;
    default:
      return std::nullopt;
  }
}

// A box that is [batch, rows, columns] in the target and [batch, columns, rows] in the source.
std::optional<TiledTranspose> tiled(const BoxCopy& box) {
  const StridedLoop& loop = box.loop;
  const std::size_t rank = loop.extents.size();
  if (rank < 2 || rank > 3) return std::nullopt;
  const auto& to = loop.steps[0];
  const auto& from = loop.steps[1];
  if (to[rank - 1] != 1 || from[rank - 2] != 1) return std::nullopt;
  const std::int64_t rows = loop.extents[rank - 2];
  const std::int64_t columns = loop.extents[rank - 1];
  constexpr std::int64_t kLeast = 8;
  if (rows < kLeast || columns < kLeast) return std::nullopt;
  return TiledTranspose{rank == 3 ? loop.extents[0] : 1,
                        rows,
                        columns,
                        to[rank - 2],
                        from[rank - 1],
                        rank == 3 ? to[0] : 0,
                        rank == 3 ? from[0] : 0};
}

// One box, ready to be copied.
class Mover {
 public:
  static Result<Mover> make(const BoxCopy& box, ir::DType word) {
    Mover out(box, word);
    if (out.tiled_) return out;
    const StridedLoop& loop = box.loop;
    Pointwise copy;
    copy.space = {word, ir::Shape(loop.extents), {}};
    Strides to{};
    Strides from{};
    std::copy(loop.steps[0].begin(), loop.steps[0].end(), to.begin());
    std::copy(loop.steps[1].begin(), loop.steps[1].end(), from.begin());
    copy.inputs = {{word, from, box.from}};
    copy.outputs = {{word, to, box.to}};
    copy.results = {"a"};
    PLIMSOLL_TRY(out.kernel_, PointwiseKernel::make(copy));
    return out;
  }

  // Nothing is moved that lies where it belongs already.
  void run(const Arguments& a, cudaStream_t stream) const {
    const std::byte* from = a.inputs[input_];
    std::byte* to = a.outputs[output_];
    if (from + from_bytes_ == to + to_bytes_) return;
    if (tiled_) {
      transpose_tiles(*tiled_, width_, from + from_bytes_, to + to_bytes_, stream);
    } else {
      kernel_.launch(stream, {&from, 1}, {&to, 1});
    }
  }

 private:
  Mover(const BoxCopy& box, ir::DType word)
      : tiled_(tiled(box)),
        width_(width_of(word)),
        from_bytes_(box.from * width_),
        to_bytes_(box.to * width_),
        input_(box.input),
        output_(box.output) {}

  std::optional<TiledTranspose> tiled_;
  PointwiseKernel kernel_;
  std::int64_t width_;
  std::int64_t from_bytes_;
  std::int64_t to_bytes_;
  std::size_t input_;
  std::size_t output_;
};

// Whether the lie-alike test in Mover::run may be trusted: a view begins where its box begins.
Made make_boxes(const Site& site, const std::vector<BoxCopy>& boxes) {
  const auto word = word_of(site.out().dtype);
  if (!word) return no_kernel();
  std::vector<Mover> movers;
  for (const BoxCopy& box : boxes) {
    PLIMSOLL_TRY(Mover mover, Mover::make(box, *word));
    movers.push_back(std::move(mover));
  }
  return make_kernel([movers = std::move(movers)](const Arguments& a, cudaStream_t stream) {
    for (const Mover& mover : movers) mover.run(a, stream);
  });
}

Made make_transpose(const Site& site) {
  return all_unblocked(site) ? make_boxes(site, {transpose_box(site)}) : no_kernel();
}
Made make_reorder(const Site& site) {
  return all_unblocked(site) ? make_boxes(site, {reorder_box(site)}) : no_kernel();
}
Made make_expand(const Site& site) {
  return all_unblocked(site) ? make_boxes(site, {expand_box(site)}) : no_kernel();
}
Made make_slice(const Site& site) {
  return all_unblocked(site) ? make_boxes(site, {slice_box(site)}) : no_kernel();
}
Made make_tile(const Site& site) {
  if (!all_row_major(site)) return no_kernel();
  const auto box = tile_box(site);
  return box ? make_boxes(site, {*box}) : no_kernel();
}
template <bool widens>
Made make_depth_to_space(const Site& site) {
  return all_row_major(site) ? make_boxes(site, {depth_to_space_box(site, widens)}) : no_kernel();
}
template <bool joins>
Made make_parts(const Site& site) {
  return all_unblocked(site) ? make_boxes(site, part_boxes(site, joins)) : no_kernel();
}

// identity, bit_cast and reshape, where the executor gave the result memory of its own.
template <bool keeps_shape>
Made make_copy(const Site& site) {
  const bool alike =
      site.in(0).layout == site.out().layout && (keeps_shape || site.in(0).layout.is_row_major());
  const bool cut =
      ops::is_channel_cut(site.in(0), site.out()) || ops::is_channel_cut(site.out(), site.in(0));
  if (!alike && (keeps_shape || !cut)) return no_kernel();
  const auto bytes = static_cast<std::size_t>(ir::bytes_of(site.out()).value);
  return make_kernel([bytes](const Arguments& a, cudaStream_t stream) {
    if (a.outputs[0] == a.inputs[0]) return;
    cudaMemcpyAsync(a.outputs[0], a.inputs[0], bytes, cudaMemcpyDeviceToDevice, stream);
  });
}

Made make_slice_assign(const Site& site) {
  const auto word = word_of(site.out().dtype);
  if (!word || !all_unblocked(site) || site.in(0) != site.out()) return no_kernel();
  std::optional<Mover> mover;
  if (site.in(1).shape.elements() > 0) {
    PLIMSOLL_TRY(mover, Mover::make(slice_assign_box(site), *word));
  }
  const auto bytes = static_cast<std::size_t>(ir::bytes_of(site.out()).value);
  return make_kernel([mover = std::move(mover), bytes](const Arguments& a, cudaStream_t stream) {
    if (a.outputs[0] != a.inputs[0])
      cudaMemcpyAsync(a.outputs[0], a.inputs[0], bytes, cudaMemcpyDeviceToDevice, stream);
    if (mover) mover->run(a, stream);
  });
}

// The value everywhere, then what is kept of the input over it.
Made make_constant_pad(const Site& site) {
  const auto word = word_of(site.out().dtype);
  if (!word || !all_unblocked(site) || site.attributes().text("mode") != "constant")
    return no_kernel();
  const double value = site.attributes().real("value");
  const std::int64_t count = site.out().shape.elements();
  Pointwise background;
  background.space = {site.out().dtype, {count}, {}};
  background.outputs = {{site.out().dtype, Strides{1}}};
  background.results = {ir::is_float(site.out().dtype) ? literal(value)
                                                       : integer_literal(ops::to_integer(value))};
  PLIMSOLL_TRY(PointwiseKernel fill, PointwiseKernel::make(background));
  std::optional<Mover> mover;
  if (const auto box = pad_box(site)) {
    PLIMSOLL_TRY(mover, Mover::make(*box, *word));
  }
  return make_kernel(
      [fill = std::move(fill), mover = std::move(mover)](const Arguments& a, cudaStream_t stream) {
        fill.launch(stream, {}, a.outputs.first(1));
        if (mover) mover->run(a, stream);
      });
}

}  // namespace

std::span<const TableEntry> movement_kernels() {
  static constexpr TableEntry kRows[] = {
      {"bit_cast", make_copy<true>},
      {"concat", make_parts<true>},
      {"depth_to_space", make_depth_to_space<true>},
      {"expand", make_expand},
      {"identity", make_copy<true>},
      {"pad", make_constant_pad},
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

}  // namespace plimsoll::kernels::cuda
