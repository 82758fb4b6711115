#include "plimsoll/runtime/paging/rehearsal.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "plimsoll/runtime/paging/access_order.h"

namespace plimsoll::runtime {
namespace {

constexpr int kRehearsed = 4;  // the first learns, the others settle

class Rehearsal {
 public:
  Rehearsal(const PagedProgram& program, const PagingOptions& options, const PagingRates& rates)
      : program_(program), rates_(rates), pager_(options), block_(program.tensors.size()) {
    for (std::size_t t = 0; t < program.tensors.size(); ++t) {
      if (program.tensors[t].lifetime != Lifetime::kPersistent) continue;
      block_[t] = pager_.create(program.tensors[t].bytes, Lifetime::kPersistent);
      pager_.overwritten(block_[t]);
    }
  }

  Result<RehearsedStep> step() {
    const PagingCounts before = pager_.counts();
    on_device_.clear();
    at_home_.clear();
    host_ = 0;
    launched_ = 0;
    free_ = {};
    for (auto& ends : ends_) ends.assign(1, 0.0);
    pager_.begin_step();
    for (const PagedProgram::Launch& launch : program_.launches)
      PLIMSOLL_RETURN_IF_ERROR(run(launch));
    return RehearsedStep{*std::max_element(free_.begin(), free_.end()),
                         pager_.counts().since(before)};
  }

 private:
  std::int64_t issue(PagedStream stream, const AccessOrder::Numbers& waits, double seconds) {
    host_ += stream == kComputes ? rates_.launch_host_seconds : rates_.copy_host_seconds;
    double begin = std::max(host_, free_[stream]);
    for (std::size_t other = 0; other < AccessOrder::kStreams; ++other) {
      if (other != stream)
        begin = std::max(begin, ends_[other][static_cast<std::size_t>(waits[other])]);
    }
    free_[stream] = begin + seconds;
    ends_[stream].push_back(free_[stream]);
    return static_cast<std::int64_t>(ends_[stream].size()) - 1;
  }

  void copy_all(std::span<const PageMove> moves) {
    for (const PageMove& move : moves) {
      const AccessOrder::Range there{move.device.value, move.device.value + move.bytes.value};
      const AccessOrder::Range home{move.host.value, move.host.value + move.bytes.value};
      const bool out = move.kind == PageMove::Kind::kOut;
      AccessOrder::Numbers waits = out ? on_device_.before_read(there) : at_home_.before_read(home);
      AccessOrder::join(waits, out ? at_home_.before_write(home) : on_device_.before_write(there));
      if (move.fault) waits[kComputes] = std::max(waits[kComputes], launched_);
      const PagedStream stream = out ? kCopiesOut : kCopiesIn;
      const double rate = out ? rates_.out_bytes_per_second : rates_.in_bytes_per_second;
      const std::int64_t mark =
          issue(stream, waits,
                rates_.copy_latency_seconds + static_cast<double>(move.bytes.value) / rate);
      (out ? on_device_ : at_home_).read(out ? there : home, stream, mark);
      (out ? at_home_ : on_device_).write(out ? home : there, stream, mark);
    }
  }

  AccessOrder::Range range_of(BlockId block) const {
    const std::int64_t at = pager_.place(block).value;
    return {at, at + pager_.bytes(block).value};
  }

  Status run(const PagedProgram::Launch& launch) {
    uses_.clear();
    for (const PagedProgram::Use& use : launch.uses) {
      if (!block_[use.tensor].valid())
        block_[use.tensor] =
            pager_.create(program_.tensors[use.tensor].bytes, Lifetime::kTransient);
      uses_.push_back({block_[use.tensor], use.access});
    }
    PLIMSOLL_TRY(const std::span<const PageMove> moves, pager_.begin_launch(uses_));
    copy_all(moves);
    AccessOrder::Numbers waits{};
    for (const BlockUse& use : uses_) {
      AccessOrder::join(waits, use.access == BlockAccess::kRead
                                   ? on_device_.before_read(range_of(use.block))
                                   : on_device_.before_write(range_of(use.block)));
    }
    launched_ = issue(kComputes, waits, launch.seconds);
    for (const BlockUse& use : uses_) {
      if (use.access == BlockAccess::kRead) {
        on_device_.read(range_of(use.block), kComputes, launched_);
      } else {
        on_device_.write(range_of(use.block), kComputes, launched_);
      }
    }
    for (const std::size_t tensor : launch.dies) {
      pager_.forget(block_[tensor]);
      block_[tensor] = {};
    }
    copy_all(pager_.end_launch());
    return {};
  }

  const PagedProgram& program_;
  PagingRates rates_;
  Pager pager_;
  std::vector<BlockId> block_;  // by tensor
  std::vector<BlockUse> uses_;
  AccessOrder on_device_;
  AccessOrder at_home_;
  double host_ = 0;
  std::int64_t launched_ = 0;
  std::array<double, AccessOrder::kStreams> free_{};
  std::array<std::vector<double>, AccessOrder::kStreams> ends_;  // by mark
};

// What a launch finds: its operands and what is needed behind it, and of these what is not at home
// from before the step.
struct Needed {
  Bytes all;
  Bytes made;
};

std::vector<Needed> needed_at_launches(const PagedProgram& program) {
  const std::size_t tensors = program.tensors.size();
  std::vector<std::size_t> last_read(tensors, 0);  // number + 1
  std::vector<std::size_t> first_write(tensors, program.launches.size());
  std::vector<std::size_t> first_use(tensors, program.launches.size());
  for (std::size_t l = 0; l < program.launches.size(); ++l) {
    for (const PagedProgram::Use& use : program.launches[l].uses) {
      first_use[use.tensor] = std::min(first_use[use.tensor], l);
      if (use.access != BlockAccess::kWrite) last_read[use.tensor] = l + 1;
      if (use.access != BlockAccess::kRead)
        first_write[use.tensor] = std::min(first_write[use.tensor], l);
    }
  }
  // Between `begin` and `end` a tensor waits; changes are summed up below.
  std::vector<Needed> out(program.launches.size() + 1);
  const auto add = [&](std::size_t begin, std::size_t end, Bytes bytes, auto member) {
    if (begin >= end) return;
    out[begin].*member += bytes;
    out[end].*member -= bytes;
  };
  for (std::size_t t = 0; t < tensors; ++t) {
    const PagedProgram::Tensor& tensor = program.tensors[t];
    const std::size_t end = std::max(last_read[t], std::min(first_use[t] + 1, out.size() - 1));
    const bool lasts = tensor.lifetime == Lifetime::kPersistent;
    if (first_use[t] + 1 >= out.size() && last_read[t] == 0) continue;
    add(lasts ? 0 : first_use[t], end, tensor.bytes, &Needed::all);
    add(first_write[t], end, tensor.bytes, &Needed::made);
  }
  for (std::size_t l = 1; l < out.size(); ++l) {
    out[l].all += out[l - 1].all;
    out[l].made += out[l - 1].made;
  }
  out.pop_back();
  return out;
}

Bytes above(Bytes bytes, Bytes capacity) {
  return std::max(bytes - capacity, Bytes(0));
}

}  // namespace

Result<RehearsedStep> rehearse(const PagedProgram& program, const PagingOptions& options,
                               const PagingRates& rates) {
  Rehearsal rehearsal(program, options, rates);
  RehearsedStep out;
  for (int step = 0; step < kRehearsed; ++step) {
    PLIMSOLL_TRY(out, rehearsal.step());
  }
  return out;
}

Result<PagingOptions> chosen_options(const PagedProgram& program, const PagingOptions& options,
                                     const PagingRates& rates) {
  if (options.policy < PagingPolicy::kPreEvict || !options.forget_dead) return options;
  PLIMSOLL_TRY(const RehearsedStep as_asked, rehearse(program, options, rates));
  if (as_asked.counts.evictions == 0) return options;
  PagingOptions best = options;
  double least = 0;
  const auto consider = [&](const PagingOptions& way) -> Status {
    PLIMSOLL_TRY(const RehearsedStep step, rehearse(program, way, rates));
    if (least > 0 && step.seconds >= least) return {};
    least = step.seconds;
    best = way;
    return {};
  };
  for (const int halves : {2, 1, 4, 8}) {  // of what was asked for, and that first
    for (const bool behind : {true, false}) {
      PagingOptions way = options;
      way.prefetch = std::max(1, options.prefetch * halves / 2);
      way.write_behind = behind;
      PLIMSOLL_RETURN_IF_ERROR(consider(way));
      for (const int far : {8, 16}) {
        for (const double kept : {1. / 16, 1. / 8, 1. / 4}) {
          way.far_prefetch = far * options.prefetch;
          way.far_low_water = kept;
          PLIMSOLL_RETURN_IF_ERROR(consider(way));
        }
      }
    }
  }
  return best;
}

ForcedCopies forced_copies(const PagedProgram& program, Bytes capacity) {
  ForcedCopies out;
  for (const Needed& needed : needed_at_launches(program)) {
    const ForcedCopies here{above(needed.made, capacity), above(needed.all, capacity)};
    if (here.out + here.in > out.out + out.in) out = here;
  }
  return out;
}

double least_seconds(const PagedProgram& program, Bytes capacity, const PagingRates& rates) {
  const std::vector<Needed> needed = needed_at_launches(program);
  const double all = program.seconds();
  double before = 0;
  double least = all;
  for (std::size_t l = 0; l < needed.size(); ++l) {
    const double own = program.launches[l].seconds;
    const double out =
        static_cast<double>(above(needed[l].made, capacity).value) / rates.out_bytes_per_second;
    const double in =
        static_cast<double>(above(needed[l].all, capacity).value) / rates.in_bytes_per_second;
    least = std::max(least, std::max(before, out) + own + std::max(all - before - own, in));
    before += own;
  }
  return least;
}

}  // namespace plimsoll::runtime
