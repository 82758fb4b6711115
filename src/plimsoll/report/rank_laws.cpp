#include "plimsoll/report/rank_laws.h"

#include <algorithm>
#include <array>

#include "plimsoll/ops/collective/shard.h"
#include "plimsoll/report/find_law.h"

namespace plimsoll::report {
namespace {

constexpr std::int64_t kFew = 2;
constexpr std::int64_t kMore = 3;
constexpr std::array<std::int64_t, 2> kUnseen = {5, 8};

// The runs that ranks share, and what each keeps of them in these graphs.
struct Run {
  std::int64_t end = 0;   // elements
  std::int64_t unit = 1;  // that parts are multiples of
  std::int64_t few = 0;   // elements of a part
  std::int64_t more = 0;
};

std::vector<Run> runs_of(const ir::Graph& few, const ir::Graph& more) {
  std::vector<Run> out;
  for (std::size_t n = 0; n < few.nodes.size(); ++n) {
    const ir::Node& node = few.nodes[n];
    if (!ops::is_shard_operator(node.op) || more.nodes[n].op != node.op) continue;
    const ops::RunParts parts = ops::run_parts(few, node);
    const std::int64_t align = std::get<std::int64_t>(*node.attributes.find("align"));
    // A part of as many ranks as there are elements is one unit.
    const ops::RunParts unit =
        ops::run_parts({parts.end}, few.value(node.inputs.front()).type.dtype, align,
                       std::max<std::int64_t>(1, parts.end));
    out.push_back({parts.end, unit.part, parts.part, ops::run_parts(more, more.nodes[n]).part});
  }
  return out;
}

// Adds what a tensor of a rank's part takes; false where it is no part of any run.
bool add_share(const ir::TensorType& few, const ir::TensorType& more, const std::vector<Run>& runs,
               Growth& growth) {
  const auto run = std::find_if(runs.begin(), runs.end(), [&](const Run& one) {
    return one.few == few.shape.elements() && one.more == more.shape.elements();
  });
  if (run == runs.end()) return false;
  const std::int64_t element = ir::bytes_of(few).value / few.shape.elements();
  Share share{1, run->unit * element, run->end * element, false};
  for (Share& other : growth.shares) {
    if (other.granule != share.granule || other.whole != share.whole) continue;
    ++other.tensors;
    return true;
  }
  growth.shares.push_back(share);
  return true;
}

Law law_between(const ir::Graph& few, const ir::Graph& more) {
  Law law;
  for (std::size_t use = 0; use < plan::kUseCount; ++use) {
    if (use != static_cast<std::size_t>(plan::Use::kTemporary)) law.by_use[use] = Growth{};
  }
  const std::vector<Run> runs = runs_of(few, more);
  for_each_tensor(few, [&](ValueId id, plan::Use use) {
    auto& growth = law.by_use[static_cast<std::size_t>(use)];
    const ir::TensorType& type = few.value(id).type;
    const ir::TensorType& other = more.value(id).type;
    if (type == other) {
      growth->polynomial.constant += ir::bytes_of(type).value;
    } else if (!add_share(type, other, runs, *growth)) {
      // Rows that all ranks read, gathered.
      const std::int64_t each = ir::bytes_of(other).value - ir::bytes_of(type).value;
      growth->polynomial.linear += each;
      growth->polynomial.constant += ir::bytes_of(type).value - kFew * each;
    }
  });
  return law;
}

}  // namespace

Result<Law> find_rank_law(const std::string& variable,
                          const std::function<Result<ir::Graph>(std::int64_t)>& build) {
  PLIMSOLL_TRY(const ir::Graph few, build(kFew));
  PLIMSOLL_TRY(const ir::Graph more, build(kMore));
  if (few.values.size() != more.values.size() || few.nodes.size() != more.nodes.size())
    return bad_input("{}: the graph has other nodes for {} ranks than for {}", few.name, kMore,
                     kFew);
  Law law = law_between(few, more);
  law.variable = variable;
  law.here = kFew;
  for (const std::int64_t ranks : kUnseen) {
    PLIMSOLL_TRY(const ir::Graph graph, build(ranks));
    const Sample sample = sample_of(graph, {});
    for (std::size_t use = 0; use < plan::kUseCount; ++use) {
      auto& growth = law.by_use[use];
      if (growth && growth->at(ranks) != sample.by_use[use]) growth.reset();
    }
  }
  return law;
}

}  // namespace plimsoll::report
