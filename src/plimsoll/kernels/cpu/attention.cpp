// Attention and its gradient, one tile of query rows of one head at a time: the scores of a tile
// live in the lane's scratch and nowhere else.
//
//   forward, a tile of m rows that see n columns      S = Q K^T            m x n, in scratch
//                                                     P = exp(S - max)     row by row, with its sum
//                                                     Y = P V / sum
//   backward                                          S = Q K^T, dP = dY V^T     m x n each
//                                                     P = exp(S - lse), dS = P (dP - dY.Y)
//                                                     dV += P^T dY, dK += dS^T Q, dQ = dS K
//
// With `causal`, n ends at the tile's last row, so about half of the work is skipped. The matrix
// products (tile_product.h) work on strided blocks of the tensors themselves: attention_qkv reads
// q, k and v in place. Work is shared by (batch, head, tile) forward and by (batch, key head)
// backward, where the sums into dK and dV stay with one lane in a fixed order: the bits do not
// depend on threads.
#include <cmath>
#include <cstring>
#include <map>

#include <omp.h>

#include "plimsoll/base/checked.h"
#include "plimsoll/kernels/cpu/attention_rows.h"
#include "plimsoll/kernels/cpu/row_math.h"
#include "plimsoll/kernels/cpu/strided.h"
#include "plimsoll/kernels/cpu/table.h"
#include "plimsoll/kernels/cpu/tile_product.h"

namespace plimsoll::kernels {
namespace {

constexpr std::int64_t kTileRows = 64;

// Where the vectors of one role (q, k, dv, ...) lie: in which tensor, from which feature on.
struct Role {
  int tensor = 0;
  std::int64_t offset = 0;     // features before the first head's
  std::int64_t row = 0;        // features of the whole tensor
  std::int64_t positions = 0;  // of a batch
  std::int64_t width = 0;      // features of a head

  template <typename Pointer>
  Pointer at(Pointer base, std::int64_t b, std::int64_t position, std::int64_t head) const {
    return base + (b * positions + position) * row + offset + head * width;
  }
  const float* read(const Arguments& a, std::int64_t b, std::int64_t position,
                    std::int64_t head) const {
    return at(input<float>(a, tensor), b, position, head);
  }
  float* write(const Arguments& a, std::int64_t b, std::int64_t position, std::int64_t head) const {
    return at(output<float>(a, tensor), b, position, head);
  }
  // `count` vectors of one head, from `to` on.
  void clear(float* to, std::int64_t count) const {
    for (std::int64_t i = 0; i < count; ++i)
      std::memset(to + i * row, 0, static_cast<std::size_t>(width) * sizeof(float));
  }
};

struct Problem {
  std::int64_t batch = 0;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t width = 0;
  std::int64_t value_width = 0;
  float scale = 1;
  bool causal = false;
  int mask = -1;  // input index, or none
  std::array<std::int64_t, ir::kMaxRank> mask_strides{};

  std::int64_t visible(std::int64_t row) const {
    return causal ? std::clamp<std::int64_t>(row + columns - rows + 1, 0, columns) : columns;
  }
  std::int64_t tiles() const { return ceil_div(rows, kTileRows); }
  std::int64_t tile_rows(std::int64_t tile) const {
    return std::min(kTileRows, rows - tile * kTileRows);
  }
  std::int64_t tile_columns(std::int64_t tile) const {
    return visible(tile * kTileRows + tile_rows(tile) - 1);
  }
  std::int64_t kv_head(std::int64_t head) const { return head / (heads / kv_heads); }
  std::int64_t tile_elements() const { return std::min(kTileRows, rows) * columns; }

  MaskRow mask_row(const Arguments& a, std::int64_t b, std::int64_t head, std::int64_t row) const {
    if (mask < 0) return {};
    return {input<float>(a, mask) + b * mask_strides[0] + head * mask_strides[1] +
                row * mask_strides[2],
            mask_strides[3]};
  }
};

struct Roles {
  Role q, k, v, y;
};

// The forward tensors begin at input `first`; fused: q, k and v side by side in one tensor.
Problem problem_of(const Site& site, bool fused, int first, int mask) {
  Problem out;
  const ir::Shape& q = site.in(first).shape;
  out.heads = site.attributes().integer("heads");
  out.kv_heads = fused ? out.heads : site.attributes().integer("kv_heads", out.heads);
  out.batch = q[0];
  out.rows = q[1];
  out.columns = fused ? q[1] : site.in(first + 1).shape[1];
  out.width = (fused ? q[2] / 3 : q[2]) / out.heads;
  out.value_width = fused ? out.width : site.in(first + 2).shape[2] / out.kv_heads;
  out.scale = static_cast<float>(
      site.attributes().real("scale", 1.0 / std::sqrt(static_cast<double>(out.width))));
  out.causal = site.attributes().integer("causal") != 0;
  if (site.has(mask)) {
    out.mask = mask;
    out.mask_strides =
        broadcast_strides_in(site.in(mask), {out.batch, out.heads, out.rows, out.columns});
  }
  return out;
}

// Tensor indices are inputs for the forward roles and outputs for the gradients' roles.
Roles roles_of(const Problem& p, bool fused, int first) {
  const std::int64_t features = p.heads * p.width;
  if (fused) {
    return {{first, 0, 3 * features, p.rows, p.width},
            {first, features, 3 * features, p.columns, p.width},
            {first, 2 * features, 3 * features, p.columns, p.value_width},
            {0, 0, features, p.rows, p.value_width}};
  }
  return {{first, 0, features, p.rows, p.width},
          {first + 1, 0, p.kv_heads * p.width, p.columns, p.width},
          {first + 2, 0, p.kv_heads * p.value_width, p.columns, p.value_width},
          {0, 0, p.heads * p.value_width, p.rows, p.value_width}};
}

MatrixSteps plain(std::int64_t row) {
  return {row, 1};
}
MatrixSteps turned(std::int64_t row) {
  return {1, row};
}

bool supported(const Site& site, bool fused, int first) {
  return all_f32(site) && all_row_major(site) && site.in(first).shape.elements() > 0 &&
         (fused || site.in(first + 1).shape.elements() > 0);
}

// One product per distinct tile size.
using Products = std::map<std::pair<std::int64_t, std::int64_t>, TileProduct>;

class AttentionKernel final : public Kernel {
 public:
  AttentionKernel(const Site& site, bool fused)
      : threads_(site.threads),
        p_(problem_of(site, fused, 0, fused ? 1 : 3)),
        roles_(roles_of(p_, fused, 0)) {
    for (std::int64_t tile = 0; tile < p_.tiles(); ++tile) {
      const std::int64_t m = p_.tile_rows(tile);
      const std::int64_t n = p_.tile_columns(tile);
      if (n == 0 || scores_.contains({m, n})) continue;
      scores_.try_emplace({m, n}, TileProduct::Sizes{m, p_.width, n}, plain(roles_.q.row),
                          turned(roles_.k.row), n, false);
      results_.try_emplace({m, n}, TileProduct::Sizes{m, n, p_.value_width}, plain(n),
                           plain(roles_.v.row), roles_.y.row, false);
      product_scratch_ = std::max({product_scratch_, scores_.at({m, n}).scratch().value,
                                   results_.at({m, n}).scratch().value});
    }
    lane_scratch_ =
        round_up(p_.tile_elements() * 4, kAlignment) + round_up(product_scratch_, kAlignment);
  }

  Bytes scratch() const override { return Bytes(lane_scratch_ * threads_); }
  bool in_place() const override { return false; }

  void run(const Arguments& a) override {
    use_threads(threads_);
    const std::int64_t units = p_.batch * p_.heads * p_.tiles();
#pragma omp parallel for schedule(dynamic)
    for (std::int64_t unit = 0; unit < units; ++unit) {
      // Long tiles first, so that the lanes end together.
      const std::int64_t tile = p_.tiles() - 1 - unit % p_.tiles();
      const std::int64_t head = unit / p_.tiles() % p_.heads;
      attend(a, omp_get_thread_num(), unit / p_.tiles() / p_.heads, head, tile);
    }
  }

 private:
  void attend(const Arguments& a, int lane, std::int64_t b, std::int64_t head, std::int64_t tile) {
    const std::int64_t m = p_.tile_rows(tile);
    const std::int64_t n = p_.tile_columns(tile);
    const std::int64_t first = tile * kTileRows;
    float* scores = reinterpret_cast<float*>(a.scratch + lane * lane_scratch_);
    std::byte* work =
        a.scratch + lane * lane_scratch_ + round_up(p_.tile_elements() * 4, kAlignment);
    float* y = roles_.y.write(a, b, first, head);
    float* lse = output<float>(a, 1) + (b * p_.heads + head) * p_.rows + first;
    const std::int64_t kv = p_.kv_head(head);
    if (n > 0) {
      scores_.at({m, n}).run(roles_.q.read(a, b, first, head), roles_.k.read(a, b, 0, kv), scores,
                             work);
    }
    float inverse[kTileRows];
    for (std::int64_t i = 0; i < m; ++i) {
      const float sum = probabilities(scores + i * n, p_.visible(first + i), n, p_.scale,
                                      p_.mask_row(a, b, head, first + i), lse + i);
      inverse[i] = sum > 0 ? 1.0F / sum : 0.0F;
    }
    if (n > 0) {
      results_.at({m, n}).run(scores, roles_.v.read(a, b, 0, kv), y, work);
    } else {
      roles_.y.clear(y, m);
    }
    for (std::int64_t i = 0; i < m; ++i)
      row_scale(y + i * roles_.y.row, p_.value_width, inverse[i]);
  }

  int threads_;
  Problem p_;
  Roles roles_;
  Products scores_;
  Products results_;
  std::int64_t product_scratch_ = 0;
  std::int64_t lane_scratch_ = 0;
};

class AttentionGradKernel final : public Kernel {
 public:
  AttentionGradKernel(const Site& site, bool fused)
      : threads_(site.threads),
        y_input_(fused ? 2 : 4),
        p_(problem_of(site, fused, 1, fused ? 4 : 6)),
        in_(roles_of(p_, fused, 1)),
        out_(roles_of(p_, fused, 0)) {
    for (std::int64_t tile = 0; tile < p_.tiles(); ++tile)
      add_products(p_.tile_rows(tile), p_.tile_columns(tile));
    lane_scratch_ = 2 * tile_bytes() + round_up(product_scratch_, kAlignment);
  }

  Bytes scratch() const override { return Bytes(lane_scratch_ * threads_); }
  bool in_place() const override { return false; }

  void run(const Arguments& a) override {
    use_threads(threads_);
    const std::int64_t units = p_.batch * p_.kv_heads;
#pragma omp parallel for schedule(dynamic)
    for (std::int64_t unit = 0; unit < units; ++unit) {
      const std::int64_t b = unit / p_.kv_heads;
      const std::int64_t kv = unit % p_.kv_heads;
      // The sums into dK and dV begin at zero.
      for (const Role* sums : {&out_.k, &out_.v}) sums->clear(sums->write(a, b, 0, kv), p_.columns);
      const std::int64_t group = p_.heads / p_.kv_heads;
      for (std::int64_t head = kv * group; head < (kv + 1) * group; ++head) {
        for (std::int64_t tile = 0; tile < p_.tiles(); ++tile)
          step(a, omp_get_thread_num(), b, head, tile);
      }
    }
  }

 private:
  std::int64_t tile_bytes() const {
    return round_up(p_.tile_elements() * 4, kAlignment);
  }

  void add_products(std::int64_t m, std::int64_t n) {
    if (n == 0 || scores_.contains({m, n})) return;
    const auto add = [&](Products& products, const TileProduct::Sizes& sizes, MatrixSteps a,
                         MatrixSteps b, std::int64_t c_row, bool accumulate) {
      const auto& product =
          products.try_emplace({m, n}, sizes, a, b, c_row, accumulate).first->second;
      product_scratch_ = std::max(product_scratch_, product.scratch().value);
    };
    add(scores_, {m, p_.width, n}, plain(in_.q.row), turned(in_.k.row), n, false);
    add(slopes_, {m, p_.value_width, n}, plain(in_.y.row), turned(in_.v.row), n, false);
    add(dv_, {n, m, p_.value_width}, turned(n), plain(in_.y.row), out_.v.row, true);
    add(dk_, {n, m, p_.width}, turned(n), plain(in_.q.row), out_.k.row, true);
    add(dq_, {m, n, p_.width}, plain(n), plain(in_.k.row), out_.q.row, false);
  }

  void step(const Arguments& a, int lane, std::int64_t b, std::int64_t head, std::int64_t tile) {
    const std::int64_t m = p_.tile_rows(tile);
    const std::int64_t n = p_.tile_columns(tile);
    const std::int64_t first = tile * kTileRows;
    const std::int64_t kv = p_.kv_head(head);
    float* dq = out_.q.write(a, b, first, head);
    if (n == 0) return out_.q.clear(dq, m);
    auto* scores = reinterpret_cast<float*>(a.scratch + lane * lane_scratch_);
    auto* slopes = reinterpret_cast<float*>(a.scratch + lane * lane_scratch_ + tile_bytes());
    std::byte* work = a.scratch + lane * lane_scratch_ + 2 * tile_bytes();
    const float* q = in_.q.read(a, b, first, head);
    const float* k = in_.k.read(a, b, 0, kv);
    const float* dy = in_.y.read(a, b, first, head);
    const float* y = in_.y.at(input<float>(a, y_input_), b, first, head);
    const float* lse = input<float>(a, y_input_ + 1) + (b * p_.heads + head) * p_.rows + first;
    scores_.at({m, n}).run(q, k, scores, work);
    slopes_.at({m, n}).run(dy, in_.v.read(a, b, 0, kv), slopes, work);
    for (std::int64_t i = 0; i < m; ++i) {
      const float mean = row_dot(dy + i * in_.y.row, y + i * in_.y.row, p_.value_width);
      score_gradients(scores + i * n, slopes + i * n, p_.visible(first + i), n, p_.scale,
                      p_.mask_row(a, b, head, first + i), lse[i], mean);
    }
    dv_.at({m, n}).run(scores, dy, out_.v.write(a, b, 0, kv), work);
    dk_.at({m, n}).run(slopes, q, out_.k.write(a, b, 0, kv), work);
    dq_.at({m, n}).run(slopes, k, dq, work);
  }

  int threads_;
  int y_input_;
  Problem p_;
  Roles in_;
  Roles out_;
  Products scores_, slopes_, dv_, dk_, dq_;
  std::int64_t product_scratch_ = 0;
  std::int64_t lane_scratch_ = 0;
};

template <bool fused>  // queries, keys and values in one tensor
std::unique_ptr<Kernel> make_attention(const Site& site) {
  if (!supported(site, fused, 0)) return nullptr;
  return std::make_unique<AttentionKernel>(site, fused);
}

template <bool fused>
std::unique_ptr<Kernel> make_attention_grad(const Site& site) {
  if (!supported(site, fused, 1)) return nullptr;
  return std::make_unique<AttentionGradKernel>(site, fused);
}

}  // namespace

std::span<const TableEntry> attention_kernels() {
  static constexpr TableEntry kRows[] = {
      {"attention", make_attention<false>},
      {"attention_grad", make_attention_grad<false>},
      {"attention_qkv", make_attention<true>},
      {"attention_qkv_grad", make_attention_grad<true>},
  };
  return kRows;
}

}  // namespace plimsoll::kernels
