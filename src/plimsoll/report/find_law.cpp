#include "plimsoll/report/find_law.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "plimsoll/base/checked.h"
#include "plimsoll/schedule/workload/tensor_alignment.h"

namespace plimsoll::report {
namespace {

constexpr std::size_t kScratch = kScratchUse;
// Strides of convolutions, heads of 64 features, the four stages of a resnet of three-layer blocks.
constexpr std::array<std::int64_t, 12> kPeriods = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128};
constexpr std::array<std::int64_t, 8> kMorePeriods = {-1, 4, 5, 6, 7, 11, 16, 23};

// Looks for laws among samples that are made when they are asked for.
class LawSearch {
 public:
  LawSearch(std::int64_t here, const GraphsOfSizes& graphs) : here_(here), graphs_(graphs) {}

  Result<Law> run(const std::string& variable) {
    if (sample(here_, false) == nullptr) return bad_input("{} {}: no such model", variable, here_);
    Law law;
    for (const std::int64_t period : kPeriods) {
      Law next = with_period(period);
      if (laws_in(next) > laws_in(law)) law = std::move(next);
      if (laws_in(law) == plan::kUseCount - 1) break;  // all but scratch
    }
    law.variable = variable;
    law.here = here_;
    for (std::size_t use = 0; use < plan::kUseCount; ++use) {
      if (!law.by_use[use] && law.period == 1 && use != kScratch) deal_out(law, use);
      if (!law.by_use[use]) tensor_by_tensor(law, use);
    }
    return law;
  }

 private:
  struct AtSize {
    std::optional<ir::Graph> graph;  // while its kernels may be asked
    std::optional<Sample> plain;
    bool asked = false;  // its kernels
    std::optional<Sample> with_kernels;
  };

  // Where scratch is looked at if the period is 1, as it mostly is.
  bool may_ask_kernels(std::int64_t n) const {
    return n == here_ / 2 || n == 2 * here_ || (n >= here_ && n <= here_ + 7);
  }

  Result<ir::Graph> build(std::int64_t n) const {
    if (n < 1) return bad_input("no size");
    return graphs_.build(n);
  }

  const Sample* sample(std::int64_t n, bool kernels) {
    const auto [place, fresh] = made_.try_emplace(n);
    AtSize& made = place->second;
    if (fresh) {
      if (auto graph = build(n)) {
        made.plain = sample_of(*graph, {});
        if (may_ask_kernels(n)) made.graph = *std::move(graph);
      }
    }
    if (!made.plain) return nullptr;
    if (!kernels) return &*made.plain;
    if (!std::exchange(made.asked, true)) ask_kernels(n, made);
    return made.with_kernels ? &*made.with_kernels : nullptr;
  }

  void ask_kernels(std::int64_t n, AtSize& made) {
    if (!made.graph) {
      if (auto graph = build(n)) made.graph = *std::move(graph);
    }
    if (!made.graph) return;
    if (auto found = graphs_.with_kernels(*made.graph)) made.with_kernels = *std::move(found);
    made.graph.reset();
  }

  // Sizes that a law must predict beside those that it is found at.
  std::vector<std::int64_t> checks(std::int64_t period) const {
    std::vector<std::int64_t> out = {here_, here_ / 2, 2 * here_};
    for (const std::int64_t k : kMorePeriods) out.push_back(here_ + k * period);
    return out;
  }
  std::vector<std::int64_t> few_checks(std::int64_t period) const {
    return {here_, here_ / 2, 2 * here_, here_ + 7 * period};
  }

  // From here up, or down to it where there is no larger size (a table of positions that ends
  // there), or from the smallest.
  std::optional<Growth> fit(std::int64_t period, const BytesAt& bytes,
                            const std::vector<std::int64_t>& also) {
    const std::int64_t least = here_ % period == 0 ? period : here_ % period;
    for (const std::int64_t start : {here_, here_ - 3 * period, least}) {
      if (start >= 1 && bytes(start) && bytes(start + 3 * period))
        return fit_polynomial(start, period, bytes, also);
    }
    // Some sizes only divide what they must: heads.
    return period == 1 ? fit_doubling(here_, bytes, also) : std::nullopt;
  }

  BytesAt use_at(std::size_t use) {
    return [this, use](std::int64_t n) -> std::optional<std::int64_t> {
      const Sample* at = sample(n, false);
      return at != nullptr ? std::optional(at->by_use[use]) : std::nullopt;
    };
  }
  // Of the names that `wanted` says; of scratch, kernels are asked.
  BytesAt named_at(std::size_t use, std::function<bool(const std::string&)> wanted) {
    return [this, use, wanted = std::move(wanted)](std::int64_t n) -> std::optional<std::int64_t> {
      const Sample* at = sample(n, use == kScratch);
      if (at == nullptr) return std::nullopt;
      std::int64_t sum = 0;
      for (const auto& [name, bytes] : at->by_name[use]) sum += wanted(name) ? bytes : 0;
      return sum;
    };
  }
  BytesAt one_at(std::size_t use, const std::string& name) {
    return [this, use, name](std::int64_t n) -> std::optional<std::int64_t> {
      const Sample* at = sample(n, use == kScratch);
      if (at == nullptr) return std::nullopt;
      const auto found = at->by_name[use].find(name);
      return found == at->by_name[use].end() ? 0 : found->second;
    };
  }

  // A law along a period is one along its multiples.
  Law with_period(std::int64_t period) {
    Law out;
    out.period = period;
    for (std::size_t use = 0; use < plan::kUseCount; ++use) {
      if (use == kScratch) continue;
      auto& [known, growth] = along_[use];
      if (growth && period % known == 0) {
        out.by_use[use] = growth;
        continue;
      }
      out.by_use[use] = fit(period, use_at(use), checks(period));
      if (!growth && out.by_use[use]) along_[use] = {period, out.by_use[use]};
    }
    return out;
  }

  static std::size_t laws_in(const Law& law) {
    return static_cast<std::size_t>(std::count_if(law.by_use.begin(), law.by_use.end(),
                                                  [](const auto& one) { return one.has_value(); }));
  }

  void deal_out(Law& law, std::size_t use) {
    for (const std::int64_t start : {here_, std::int64_t{1}, std::int64_t{2}}) {
      if (!law.by_use[use]) law.by_use[use] = fit_dealt_out(start, use_at(use), checks(1));
    }
  }

  void tensor_by_tensor(Law& law, std::size_t use) {
    const bool scratch = use == kScratch;
    const std::vector<std::int64_t> also = scratch ? few_checks(law.period) : checks(law.period);
    if (scratch)
      law.by_use[use] = fit(law.period, named_at(use, [](const auto&) { return true; }), also);
    if (law.by_use[use]) return;
    const Sample* here = sample(here_, scratch);
    if (here == nullptr) return;
    std::set<std::string> jumping;
    for (const auto& [name, bytes] : here->by_name[use]) {
      if (!fit(law.period, one_at(use, name), also)) jumping.insert(name);
    }
    const auto jumps = [&](const std::string& name) { return jumping.contains(name); };
    law.by_use[use] =
        fit(law.period, named_at(use, [&](const std::string& name) { return !jumps(name); }), also);
    if (!law.by_use[use]) return;  // other tensors at other sizes
    law.jumping[use].tensors = static_cast<std::int64_t>(jumping.size());
    for (const std::int64_t n : {here_ / 2, here_, 2 * here_}) {
      if (const auto bytes = named_at(use, jumps)(n)) law.jumping[use].at.emplace_back(n, *bytes);
    }
  }

  std::int64_t here_;
  const GraphsOfSizes& graphs_;
  std::array<std::pair<std::int64_t, std::optional<Growth>>, plan::kUseCount> along_;
  std::map<std::int64_t, AtSize> made_;
};

}  // namespace

Sample sample_of(const ir::Graph& graph, const ops::KernelTable& kernels) {
  Sample out;
  const auto add = [&](plan::Use use, const std::string& name, std::int64_t bytes) {
    out.by_use[static_cast<std::size_t>(use)] += bytes;
    out.by_name[static_cast<std::size_t>(use)][name] += bytes;
  };
  for_each_tensor(graph, [&](ValueId id, plan::Use use) {
    add(use, graph.value(id).name, ir::bytes_of(graph.value(id).type).value);
  });
  if (kernels.facts.empty()) return out;
  for (const ir::Node& node : graph.nodes) {
    const std::int64_t scratch = kernels.of(graph, node).scratch.value;
    if (scratch > 0)
      add(plan::Use::kTemporary, fmt::format("{}/{}", node.layer, node.op),
          round_up(scratch, schedule::kTensorAlignment.value));
  }
  return out;
}

Result<Law> find_law(const std::string& variable, std::int64_t here, const GraphsOfSizes& graphs) {
  return LawSearch(here, graphs).run(variable);
}

}  // namespace plimsoll::report
