// decode_weight, encoded_linear and encoded_gather (ops/products/encoded_weight.h).
//
// decode_weight      chunks in parallel, each straight to its place
// encoded_gather     indices in parallel; of forms with blocks only those of the row are decoded
// encoded_linear     one to eight rows of x: chunks in parallel, each times all rows. Sums of
//                    a chunk have a place of their own and are added in order, so the bits do not
//                    depend on the number of threads.
//                    More rows: tiles of the weight, about 1.5 MB of it in fp32, are decoded into
//                    scratch; the product of each is dense there and copied to its columns of the
//                    result. Straight into columns oneDNN has gemm:jit only, which takes megabytes
//                    of its own.
//                    Activations rounded to int8: x becomes whole numbers in scratch, in 16 bits;
//                    then each row of the weight times eight rows of x at a time, codes times
//                    codes. What the rounding lost is summed on the way.
#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "plimsoll/base/checked.h"
#include "plimsoll/kernels/cpu/onednn.h"
#include "plimsoll/kernels/cpu/parallel.h"
#include "plimsoll/kernels/cpu/table.h"
#include "plimsoll/ops/movement/scatter_reduction.h"
#include "plimsoll/ops/products/encoded_weight.h"

namespace plimsoll::kernels {
namespace {

using codec::EncodedMatrix;
using codec::EncodedType;

constexpr std::int64_t kFewRows = 8;
constexpr std::int64_t kGroups = 8;
constexpr std::int64_t kTileBytes = 3 << 19;

std::optional<EncodedMatrix> weight_at(const Arguments& a, int index, std::size_t bytes,
                                       const EncodedType& type) {
  return EncodedMatrix::view({input<std::uint8_t>(a, index), bytes}, type);
}

// Scratch of each thread, one behind the other.
std::byte* scratch_of_thread(std::byte* all) {
  return all + static_cast<std::size_t>(omp_get_thread_num()) * EncodedMatrix::kScratchBytes;
}
std::int64_t thread_scratch(int threads) {
  return static_cast<std::int64_t>(EncodedMatrix::kScratchBytes) * threads;
}

// Elements [first, first + count) of a weight, chunks in parallel; zeros where there is no code.
void decode_in_parallel(const EncodedMatrix& weight, std::size_t first, std::size_t count,
                        float* out, std::byte* scratch) {
  const std::size_t in_chunk = weight.type().chunk_elements();
  const std::size_t begin = first / in_chunk;
  const std::size_t end = (first + count + in_chunk - 1) / in_chunk;
  parallel_each(static_cast<std::int64_t>(end - begin), [&](std::int64_t i) {
    const std::size_t chunk = begin + static_cast<std::size_t>(i);
    const std::size_t from = std::max(first, chunk * in_chunk);
    const std::size_t to = std::min(first + count, (chunk + 1) * in_chunk);
    float* at = out + (from - first);
    if (!weight.decode(from, to - from, at, scratch_of_thread(scratch)))
      std::fill_n(at, to - from, 0.0f);
  });
}

std::unique_ptr<Kernel> make_decode_weight(const Site& site) {
  const auto type = ops::encoded_type(site.attributes());
  if (!type || !is_f32(site.out()) || !all_row_major(site)) return nullptr;
  const auto bytes = static_cast<std::size_t>(site.in(0).shape[0]);
  return make_kernel(
      site,
      [=, of = *type](const Arguments& a) {
        const auto weight = weight_at(a, 0, bytes, of);
        if (weight) {
          decode_in_parallel(*weight, 0, of.elements, output<float>(a), a.scratch);
        } else {
          std::fill_n(output<float>(a), of.elements, 0.0f);
        }
      },
      Bytes(thread_scratch(site.threads)));
}

template <typename Index>
std::unique_ptr<Kernel> make_encoded_gather_of(const Site& site, const EncodedType& type) {
  const auto bytes = static_cast<std::size_t>(site.in(0).shape[0]);
  const std::int64_t indices = site.in(1).shape.elements();
  return make_kernel(
      site,
      [=](const Arguments& a) {
        const auto weight = weight_at(a, 0, bytes, type);
        const auto* index = input<Index>(a, 1);
        float* out = output<float>(a);
        parallel_each(indices, [&](std::int64_t i) {
          float* to = out + static_cast<std::size_t>(i) * type.columns;
          const std::int64_t row = ops::resolve(static_cast<std::int64_t>(index[i]),
                                                static_cast<std::int64_t>(type.rows()));
          if (!weight || row < 0 ||
              !weight->decode(static_cast<std::size_t>(row) * type.columns, type.columns, to,
                              scratch_of_thread(a.scratch)))
            std::fill_n(to, type.columns, 0.0f);
        });
      },
      Bytes(thread_scratch(site.threads)));
}
std::unique_ptr<Kernel> make_encoded_gather(const Site& site) {
  const auto type = ops::encoded_type(site.attributes());
  if (!type || !is_f32(site.out()) || !all_row_major(site)) return nullptr;
  if (site.in(1).dtype == ir::DType::kI64) return make_encoded_gather_of<std::int64_t>(site, *type);
  if (site.in(1).dtype == ir::DType::kI32) return make_encoded_gather_of<std::int32_t>(site, *type);
  return nullptr;
}

struct EncodedLinear {
  EncodedType type;
  std::size_t bytes;     // of the weight
  std::int64_t rows;     // of x
  std::int64_t inner;    // columns of x
  std::int64_t columns;  // of the result
  bool bias;
};

void fill_with_bias(const EncodedLinear& how, const float* bias, float* y) {
  for (std::int64_t i = 0; i < how.rows; ++i) {
    if (bias != nullptr) {
      std::copy_n(bias, how.columns, y + i * how.columns);
    } else {
      std::fill_n(y + i * how.columns, how.columns, 0.0f);
    }
  }
}
const float* bias_of(const EncodedLinear& how, const Arguments& a) {
  return how.bias ? input<float>(a, 2) : nullptr;
}

// A weight [columns, inner], few rows: chunk i's sums for its rows of the weight begin at its first
// row + i, since neighbours share one row at most.
std::unique_ptr<Kernel> make_few_by_rows(const Site& site, const EncodedLinear& how) {
  const auto chunks = static_cast<std::int64_t>(how.type.chunks());
  const std::int64_t sums = how.columns + chunks;
  const std::int64_t sums_bytes = round_up(how.rows * sums * 4, 64);
  return make_kernel(
      site,
      [=](const Arguments& a) {
        const auto weight = weight_at(a, 1, how.bytes, how.type);
        const float* x = input<float>(a, 0);
        float* y = output<float>(a);
        auto* partial = scratch<float>(a);
        std::byte* each = a.scratch + sums_bytes;
        const std::size_t in_chunk = how.type.chunk_elements();
        const auto first_row = [&](std::int64_t chunk) {
          return static_cast<std::int64_t>(static_cast<std::size_t>(chunk) * in_chunk /
                                           how.type.columns);
        };
        const auto rows_in = [&](std::int64_t chunk) {
          const std::size_t end =
              std::min((static_cast<std::size_t>(chunk) + 1) * in_chunk, how.type.elements);
          return static_cast<std::int64_t>((end - 1) / how.type.columns) - first_row(chunk) + 1;
        };
        fill_with_bias(how, bias_of(how, a), y);
        if (!weight) return;
        parallel_each(chunks, [&](std::int64_t chunk) {
          float* to = partial + first_row(chunk) + chunk;
          for (std::int64_t i = 0; i < how.rows; ++i)
            std::fill_n(to + i * sums, rows_in(chunk), 0.0f);
          (void)weight->multiply(
              static_cast<std::size_t>(chunk), codec::Product::kRows,
              {static_cast<std::size_t>(how.rows), x, static_cast<std::size_t>(how.inner), to,
               static_cast<std::size_t>(sums)},
              scratch_of_thread(each));
        });
        for (std::int64_t i = 0; i < how.rows; ++i) {
          for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
            const float* from = partial + i * sums + first_row(chunk) + chunk;
            float* to = y + i * how.columns + first_row(chunk);
            for (std::int64_t r = 0; r < rows_in(chunk); ++r) to[r] += from[r];
          }
        }
      },
      Bytes(sums_bytes + thread_scratch(site.threads)));
}

// A weight [inner, columns]: groups of chunks, each with sums of its own for all columns.
std::unique_ptr<Kernel> make_by_columns(const Site& site, const EncodedLinear& how) {
  const auto chunks = static_cast<std::int64_t>(how.type.chunks());
  const std::int64_t groups = std::min(kGroups, chunks);
  const std::int64_t sums = how.rows * how.columns;
  const std::int64_t sums_bytes = round_up(groups * sums * 4, 64);
  return make_kernel(
      site,
      [=](const Arguments& a) {
        const auto weight = weight_at(a, 1, how.bytes, how.type);
        const float* x = input<float>(a, 0);
        float* y = output<float>(a);
        auto* partial = scratch<float>(a);
        std::byte* each = a.scratch + sums_bytes;
        fill_with_bias(how, bias_of(how, a), y);
        if (!weight) return;
        parallel_each(groups, [&](std::int64_t group) {
          float* to = partial + group * sums;
          std::fill_n(to, sums, 0.0f);
          for (std::int64_t c = group * chunks / groups; c < (group + 1) * chunks / groups; ++c)
            (void)weight->multiply(
                static_cast<std::size_t>(c), codec::Product::kColumns,
                {static_cast<std::size_t>(how.rows), x, static_cast<std::size_t>(how.inner), to,
                 static_cast<std::size_t>(how.columns)},
                scratch_of_thread(each));
        });
        parallel_ranges(sums, kElementGrain, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t group = 0; group < groups; ++group) {
            const float* from = partial + group * sums;
            for (std::int64_t i = begin; i < end; ++i) y[i] += from[i];
          }
        });
      },
      Bytes(sums_bytes + thread_scratch(site.threads)));
}

// Rows of the weight in a tile: whole chunks, where rows and chunks meet soon enough.
std::int64_t rows_of_tile(const EncodedLinear& how) {
  const auto in_chunk = static_cast<std::int64_t>(how.type.chunk_elements());
  const std::int64_t wanted = std::max<std::int64_t>(1, kTileBytes / (4 * how.inner));
  const std::int64_t meet = in_chunk / std::gcd(in_chunk, how.inner);
  const std::int64_t rows = meet <= wanted ? wanted / meet * meet : wanted;
  return std::min(rows, how.columns);
}

// A result [rows, width] from a tile [width, inner] of the weight.
Primitive tile_product(const EncodedLinear& how, std::int64_t width) {
  using Dims = dnnl::memory::dims;
  const auto x = describe(ir::DType::kF32, Dims{how.rows, how.inner}, Dims{how.inner, 1});
  const auto w = describe(ir::DType::kF32, Dims{how.inner, width}, Dims{1, how.inner});
  const auto y = describe(ir::DType::kF32, Dims{how.rows, width}, Dims{width, 1});
  std::vector<Primitive::Binding> bindings = {
      reads(0, DNNL_ARG_SRC, x), reads(1, DNNL_ARG_WEIGHTS, w), writes(0, DNNL_ARG_DST, y)};
  const auto bias = describe(ir::DType::kF32, Dims{1, width}, Dims{width, 1});
  if (how.bias) bindings.push_back(reads(2, DNNL_ARG_BIAS, bias));
  const auto desc = how.bias ? dnnl::matmul::desc(x, w, bias, y) : dnnl::matmul::desc(x, w, y);
  const auto pd = preferred(dnnl::matmul::primitive_desc(desc, user_scratchpad(), onednn_engine()));
  return {dnnl::matmul(pd), pd.scratchpad_desc(), bindings};
}

std::unique_ptr<Kernel> make_by_tiles(const Site& site, const EncodedLinear& how) {
  const std::int64_t tile = rows_of_tile(how);
  std::vector<Primitive> products;
  products.push_back(tile_product(how, tile));
  if (how.columns % tile != 0) products.push_back(tile_product(how, how.columns % tile));
  const std::int64_t tile_bytes = round_up(tile * how.inner * 4, 64);
  const bool one = tile == how.columns;
  const std::int64_t made_bytes = one ? 0 : round_up(how.rows * tile * 4, 64);
  const std::int64_t made_at = tile_bytes + thread_scratch(site.threads);
  const std::int64_t before = made_at + made_bytes;
  std::int64_t own = 0;
  for (const Primitive& product : products) own = std::max(own, product.scratch().value);
  return make_kernel(
      site,
      [=, products = std::move(products)](const Arguments& a) mutable {
        const auto weight = weight_at(a, 1, how.bytes, how.type);
        auto* values = scratch<float>(a);
        if (!weight) std::fill_n(values, tile * how.inner, 0.0f);
        for (std::int64_t begin = 0; begin < how.columns; begin += tile) {
          const std::int64_t width = std::min(tile, how.columns - begin);
          if (weight)
            decode_in_parallel(*weight, static_cast<std::size_t>(begin * how.inner),
                               static_cast<std::size_t>(width * how.inner), values,
                               a.scratch + tile_bytes);
          const std::byte* bias =
              how.bias ? reinterpret_cast<const std::byte*>(input<float>(a, 2) + begin) : nullptr;
          const std::array<const std::byte*, 3> inputs = {a.inputs[0], a.scratch, bias};
          float* const y = output<float>(a);
          std::byte* const made = one ? reinterpret_cast<std::byte*>(y) : a.scratch + made_at;
          const std::array<std::byte*, 1> outputs = {made};
          products[width == tile ? 0 : 1].run({inputs, outputs, a.scratch + before, a.queue});
          if (one) continue;
          parallel_each(how.rows, [&](std::int64_t row) {
            std::copy_n(reinterpret_cast<const float*>(made) + row * width, width,
                        y + row * how.columns + begin);
          });
        }
      },
      Bytes(before + own));
}

// A weight [columns, inner] times x rounded to int8: one scale for all of x.
class RoundedProduct final : public Kernel {
 public:
  RoundedProduct(const Site& site, const EncodedLinear& how)
      : threads_(site.threads), how_(how), lost_(static_cast<std::size_t>(how.rows)) {}
  Bytes scratch() const override { return Bytes(codes_bytes() + thread_scratch(threads_)); }
  std::optional<Rounding> rounding() const override { return rounding_; }
  void run(const Arguments& a) override {
    use_threads(threads_);
    const auto weight = weight_at(a, 1, how_.bytes, how_.type);
    const float* x = input<float>(a, 0);
    float* y = output<float>(a);
    fill_with_bias(how_, bias_of(how_, a), y);
    auto* codes = scratch_of<std::int16_t>(a);
    const float scale = round_all(x, codes);
    if (!weight) return;
    parallel_each((how_.columns + kRowGroup - 1) / kRowGroup, [&](std::int64_t group) {
      multiply_group(*weight, group * kRowGroup, codes, scale, y,
                     scratch_of_thread(a.scratch + codes_bytes()));
    });
  }

 private:
  static constexpr std::int64_t kRowGroup = 64;  // of the weight: in the cache for all of x
  static constexpr std::int64_t kVectors = codec::WeightCodec::kMostWhole;

  template <typename T>
  static T* scratch_of(const Arguments& a) {
    return reinterpret_cast<T*>(a.scratch);
  }
  std::int64_t codes_bytes() const { return round_up(how_.rows * how_.inner * 2, 64); }

  // The scale; NaN where x has a value that is not finite.
  float round_all(const float* x, std::int16_t* codes) {
    const ops::Int8Scale scale =
        ops::int8_scale({x, static_cast<std::size_t>(how_.rows * how_.inner)});
    parallel_rows(how_.rows, how_.inner, [&](std::int64_t row) {
      lost_[static_cast<std::size_t>(row)] =
          round_row(x + row * how_.inner, codes + row * how_.inner, scale);
    });
    for (const Rounding& row : lost_) rounding_.add(row);
    return scale.scale;
  }
  // As nearbyint() has it, for values below 2^22; that is a call of a function for each.
  static float nearest(float value) {
    constexpr float kLarge = 12582912.0f;
    return (value + kLarge) - kLarge;
  }
  Rounding round_row(const float* x, std::int16_t* codes, const ops::Int8Scale& scale) const {
    Rounding out;
    out.elements = how_.inner;
    float largest = 0;
    for (std::int64_t i = 0; i < how_.inner; ++i) {
      const float code = scale.inverse == 0 ? 0.0f : nearest(x[i] * scale.inverse);
      const float difference = x[i] - code * scale.scale;
      codes[i] = static_cast<std::int16_t>(code);
      largest = std::max(largest, std::fabs(difference));
      out.squares += static_cast<double>(difference) * static_cast<double>(difference);
      out.value_squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    }
    out.largest = static_cast<double>(largest);
    return out;
  }
  void multiply_group(const EncodedMatrix& weight, std::int64_t first, const std::int16_t* codes,
                      float scale, float* y, std::byte* scratch) const {
    const std::int64_t last = std::min(first + kRowGroup, how_.columns);
    std::array<float, kVectors> sums{};
    for (std::int64_t i = 0; i < how_.rows; i += kVectors) {
      const std::int64_t vectors = std::min(kVectors, how_.rows - i);
      for (std::int64_t row = first; row < last; ++row) {
        if (!weight.multiply_row(static_cast<std::size_t>(row), codes + i * how_.inner,
                                 static_cast<std::size_t>(how_.inner),
                                 static_cast<std::size_t>(vectors), sums.data(), scratch))
          continue;
        for (std::int64_t v = 0; v < vectors; ++v)
          y[(i + v) * how_.columns + row] += scale * sums[static_cast<std::size_t>(v)];
      }
    }
  }

  int threads_;
  EncodedLinear how_;
  std::vector<Rounding> lost_;  // by row of x
  Rounding rounding_;
};

std::unique_ptr<Kernel> make_encoded_linear(const Site& site) {
  const auto type = ops::encoded_type(site.attributes());
  if (!type || !is_f32(site.in(0)) || !is_f32(site.out()) || !all_row_major(site) ||
      site.out().shape.elements() == 0 || site.in(0).shape.elements() == 0)
    return nullptr;
  const ir::Shape& x = site.in(0).shape;
  const ir::Shape& y = site.out().shape;
  const EncodedLinear how{*type,
                          static_cast<std::size_t>(site.in(1).shape[0]),
                          y.elements(0, y.rank() - 1),
                          x[x.rank() - 1],
                          y[y.rank() - 1],
                          site.has(2)};
  if (ops::rounds_activations(site.attributes()))
    return std::make_unique<RoundedProduct>(site, how);
  if (site.attributes().integer("trans_w") == 0) return make_by_columns(site, how);
  return how.rows <= kFewRows ? make_few_by_rows(site, how) : make_by_tiles(site, how);
}

}  // namespace

std::span<const TableEntry> encoded_weight_kernels() {
  static constexpr TableEntry kRows[] = {
      {"decode_weight", make_decode_weight},
      {"encoded_gather", make_encoded_gather},
      {"encoded_linear", make_encoded_linear},
  };
  return kRows;
}

}  // namespace plimsoll::kernels
