#include "plimsoll/pack/model/rigid.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "plimsoll/base/checked.h"

namespace plimsoll::pack {
namespace {

constexpr std::uint32_t kUnbound = 0xffffffff;

// Union-find in which every node knows its distance to its parent.
class Distances {
 public:
  explicit Distances(std::size_t n) : parent_(n), delta_(n, 0) {
    std::iota(parent_.begin(), parent_.end(), 0u);
  }
  // The root and the offset of `node` relative to it.
  std::pair<std::uint32_t, std::int64_t> find(std::uint32_t node) {
    std::vector<std::uint32_t> path;
    while (parent_[node] != node) {
      path.push_back(node);
      node = parent_[node];
    }
    std::int64_t sum = 0;
    for (std::size_t k = path.size(); k-- > 0;) {
      sum += delta_[path[k]];
      delta_[path[k]] = sum;
      parent_[path[k]] = node;
    }
    return {node, sum};
  }
  // offset(b) = offset(a) + d; false when it is already something else.
  bool bind(std::uint32_t a, std::uint32_t b, std::int64_t d) {
    const auto [root_a, from_a] = find(a);
    const auto [root_b, from_b] = find(b);
    if (root_a == root_b) return from_b - from_a == d;
    parent_[root_b] = root_a;
    delta_[root_b] = from_a + d - from_b;
    return true;
  }

 private:
  std::vector<std::uint32_t> parent_;
  std::vector<std::int64_t> delta_;
};

// x = r1 (mod m1) and x = r2 (mod m2) as one congruence.
bool join(Frame& frame, std::int64_t modulus, std::int64_t residue) {
  const std::int64_t common = std::gcd(frame.modulus, modulus);
  if ((residue - frame.residue) % common != 0) return false;
  const auto joined = checked_multiply(frame.modulus / common, modulus);
  if (!joined || *joined > kLargest) return false;
  const std::int64_t rest = modulus / common;
  // residue + k * modulus with the inverse of frame.modulus/common modulo rest, by Euclid.
  __int128 s0 = 1, s1 = 0;
  std::int64_t a = frame.modulus / common, b = rest;
  while (b != 0) {
    const std::int64_t q = a / b;
    std::swap(s0 -= static_cast<__int128>(q) * s1, s1);
    a -= q * b;
    std::swap(a, b);
  }
  __int128 steps = static_cast<__int128>((residue - frame.residue) / common) % rest * (s0 % rest);
  steps = ((steps % rest) + rest) % rest;
  frame.residue = static_cast<std::int64_t>(
      (frame.residue + static_cast<__int128>(frame.modulus) * steps) % *joined);
  frame.modulus = *joined;
  return true;
}

std::int64_t modulo(std::int64_t value, std::int64_t modulus) {
  return (value % modulus + modulus) % modulus;
}

class Binder {
 public:
  explicit Binder(const Problem& problem) : problem_(problem), distances_(problem.size()) {
    out_.frame_of.assign(problem.size(), kUnbound);
    out_.delta_of.assign(problem.size(), 0);
    bound_.assign(problem.size(), 0);
  }

  RigidBodies run() {
    for (const auto& group : problem_.contiguous) {
      const GroupShape shape = group_shape(problem_, group);
      if (shape.alignment == 0) return contradiction(group);
      starts_.push_back({group.empty() ? BufferId() : group.front(), shape.alignment});
      for (std::size_t k = 0; k < group.size(); ++k) {
        if (!bind(group.front(), group[k], shape.deltas[k]))
          return contradiction({group.front(), group[k]});
      }
    }
    for (const auto& members : problem_.colocated) {
      for (const BufferId id : members) {
        if (!bind(members.front(), id, 0)) return contradiction({members.front(), id});
      }
    }
    number_frames();
    return constrain_frames();
  }

 private:
  struct Start {
    BufferId buffer;
    std::int64_t alignment;
  };

  bool bind(BufferId a, BufferId b, std::int64_t distance) {
    bound_[a.index()] = bound_[b.index()] = 1;
    return distances_.bind(a.value, b.value, distance);
  }

  RigidBodies contradiction(std::vector<BufferId> who) {
    out_.contradiction = std::move(who);
    return std::move(out_);
  }

  // The lowest member is at delta 0.
  void number_frames() {
    std::vector<std::uint32_t> frame_of_root(problem_.size(), kUnbound);
    std::vector<std::int64_t> lowest;
    for (std::uint32_t i = 0; i < problem_.size(); ++i) {
      if (!bound_[i]) continue;
      const auto [root, delta] = distances_.find(i);
      if (frame_of_root[root] == kUnbound) {
        frame_of_root[root] = static_cast<std::uint32_t>(out_.frames.size());
        out_.frames.emplace_back();
        lowest.push_back(delta);
      }
      out_.frame_of[i] = frame_of_root[root];
      out_.delta_of[i] = delta;
      lowest[out_.frame_of[i]] = std::min(lowest[out_.frame_of[i]], delta);
    }
    for (std::size_t i = 0; i < problem_.size(); ++i) {
      if (out_.frame_of[i] != kUnbound) out_.delta_of[i] -= lowest[out_.frame_of[i]];
    }
  }

  bool constrain(BufferId id, std::int64_t alignment) {
    Frame& frame = out_.frames[out_.frame_of[id.index()]];
    return join(frame, alignment, modulo(-out_.delta_of[id.index()], alignment));
  }

  RigidBodies constrain_frames() {
    std::vector<BufferId> pinned_by(out_.frames.size());
    for (std::size_t i = 0; i < problem_.size(); ++i) {
      if (out_.frame_of[i] == kUnbound) continue;
      const Buffer& buffer = problem_.buffers[i];
      Frame& frame = out_.frames[out_.frame_of[i]];
      if (!constrain(BufferId(i), buffer.alignment)) return contradiction(members_of(i));
      const std::int64_t delta = out_.delta_of[i];
      if (buffer.hint && frame.hint < 0)
        frame.hint = std::max<std::int64_t>(0, buffer.hint->value - delta);
      if (!buffer.fixed) continue;
      BufferId& pin = pinned_by[out_.frame_of[i]];
      const std::int64_t place = buffer.fixed->value - delta;
      if (place < 0) return contradiction(members_of(i));
      if (pin.valid() && frame.fixed != place) return contradiction({pin, BufferId(i)});
      frame.fixed = place;
      pin = BufferId(i);
    }
    for (const Start& start : starts_) {
      if (start.buffer.valid() && !constrain(start.buffer, start.alignment))
        return contradiction(members_of(start.buffer.index()));
    }
    for (std::size_t f = 0; f < out_.frames.size(); ++f) {
      const Frame& frame = out_.frames[f];
      if (frame.fixed >= 0 && modulo(frame.fixed - frame.residue, frame.modulus) != 0)
        return contradiction(members_of(pinned_by[f].index()));
    }
    return std::move(out_);
  }

  std::vector<BufferId> members_of(std::size_t buffer) const {
    std::vector<BufferId> members;
    for (std::size_t i = 0; i < problem_.size(); ++i) {
      if (out_.frame_of[i] == out_.frame_of[buffer]) members.push_back(BufferId(i));
    }
    return members;
  }

  const Problem& problem_;
  Distances distances_;
  std::vector<char> bound_;
  std::vector<Start> starts_;
  RigidBodies out_;
};

}  // namespace

GroupShape group_shape(const Problem& problem, const std::vector<BufferId>& group) {
  GroupShape shape;
  std::int64_t end = 0;
  for (const BufferId id : group) {
    const Buffer& buffer = problem.buffers[id.index()];
    const std::int64_t alignment = buffer.alignment;
    const auto common =
        checked_multiply(shape.alignment / std::gcd(shape.alignment, alignment), alignment);
    if (!common || *common > kLargest) {
      shape.alignment = 0;
      return shape;
    }
    shape.alignment = *common;
    end = round_up(end, alignment);
    shape.deltas.push_back(end);
    end += buffer.size.value;
  }
  return shape;
}

RigidBodies bind_rigid(const Problem& problem) {
  return Binder(problem).run();
}

}  // namespace plimsoll::pack
