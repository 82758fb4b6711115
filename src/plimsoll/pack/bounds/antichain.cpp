#include "plimsoll/pack/bounds/antichain.h"

#include <algorithm>
#include <bit>
#include <span>

#include "plimsoll/base/max_flow.h"

namespace plimsoll::pack {
namespace {

using Clock = std::span<const std::int64_t>;

bool at_least(Clock a, Clock b) {
  return std::equal(a.begin(), a.end(), b.begin(),
                    [](std::int64_t x, std::int64_t y) { return x >= y; });
}

// `ready` clocks that only grow, and a binary tree over them: node 1 is the root, leaves begin at
// `leaves`.
struct Chain {
  std::vector<Clock> clocks;
  std::uint32_t leaves = 0;
  std::uint32_t first_node = 0;  // of the flow: tree node k is first_node + k

  std::uint32_t node(std::size_t place) const {
    return first_node + leaves + static_cast<std::uint32_t>(place);
  }
};

class Hander {
 public:
  Hander(const Problem& problem, const std::vector<char>& counted)
      : problem_(problem), streams_(static_cast<std::size_t>(problem.clocks.streams)) {
    for (std::size_t b = 0; b < problem.size(); ++b) {
      if (counted[b] && problem.buffers[b].size.value > 0) buffers_.push_back(b);
    }
  }

  std::optional<Antichain> run(std::int64_t most_work) {
    source_ = flow_.add_node();
    sink_ = flow_.add_node();
    if (!make_chains()) return std::nullopt;
    for (Chain& chain : chains_) add_tree(chain);
    std::int64_t total = 0;
    for (const std::size_t b : buffers_) {
      offer(b);
      total += problem_.buffers[b].size.value;
    }
    const std::optional<std::int64_t> handed_on = flow_.maximise(source_, sink_, most_work);
    if (!handed_on) return std::nullopt;
    Antichain out{total - *handed_on, {}};
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      if (flow_.reachable(giver_[i]) && !flow_.reachable(taker(i)))
        out.members.push_back(BufferId(buffers_[i]));
    }
    return out;
  }

 private:
  Clock ready(std::size_t b) const {
    return {problem_.clocks.ready.data() + b * streams_, streams_};
  }
  Clock released(std::size_t b) const {
    return {problem_.clocks.released.data() + b * streams_, streams_};
  }
  std::uint32_t taker(std::size_t i) const {
    return chains_[place_[i].first].node(place_[i].second);
  }

  // Buffers in an order in which clocks never fall come to the first chain whose end is below them.
  bool make_chains() {
    std::vector<std::size_t> line(buffers_.size());
    for (std::size_t i = 0; i < line.size(); ++i) line[i] = i;
    std::stable_sort(line.begin(), line.end(), [&](std::size_t a, std::size_t b) {
      const Clock x = ready(buffers_[a]), y = ready(buffers_[b]);
      return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
    });
    place_.resize(buffers_.size());
    for (const std::size_t i : line) {
      const Clock clock = ready(buffers_[i]);
      const auto chain = std::find_if(chains_.begin(), chains_.end(), [&](const Chain& c) {
        return at_least(clock, c.clocks.back());
      });
      if (chain == chains_.end() && chains_.size() == kMostChains) return false;
      Chain& home = chain != chains_.end() ? *chain : chains_.emplace_back();
      place_[i] = {static_cast<std::size_t>(&home - chains_.data()), home.clocks.size()};
      home.clocks.push_back(clock);
    }
    return true;
  }

  void add_tree(Chain& chain) {
    chain.leaves = std::bit_ceil(static_cast<std::uint32_t>(chain.clocks.size()));
    chain.first_node = flow_.add_node();
    for (std::uint32_t k = 1; k < 2 * chain.leaves; ++k) flow_.add_node();
    for (std::uint32_t k = 1; k < chain.leaves; ++k) {
      flow_.add_arc(chain.first_node + k, chain.first_node + 2 * k, kLargest);
      flow_.add_arc(chain.first_node + k, chain.first_node + 2 * k + 1, kLargest);
    }
  }

  // What b leaves goes to the suffix of every chain that knows it to be gone.
  void offer(std::size_t b) {
    const std::size_t i = giver_.size();
    giver_.push_back(flow_.add_node());
    flow_.add_arc(source_, giver_.back(), problem_.buffers[b].size.value);
    flow_.add_arc(taker(i), sink_, problem_.buffers[b].size.value);
    for (const Chain& chain : chains_) {
      const auto from = std::partition_point(chain.clocks.begin(), chain.clocks.end(),
                                             [&](Clock c) { return !at_least(c, released(b)); });
      auto low = static_cast<std::uint32_t>(from - chain.clocks.begin()) + chain.leaves;
      for (std::uint32_t high = 2 * chain.leaves; low < high; low /= 2, high /= 2) {
        if (low % 2 == 1) flow_.add_arc(giver_.back(), chain.first_node + low++, kLargest);
      }
    }
  }

  const Problem& problem_;
  std::size_t streams_;
  std::vector<std::size_t> buffers_;
  std::vector<Chain> chains_;
  std::vector<std::pair<std::size_t, std::size_t>> place_;  // by counted buffer: chain, place on it
  std::vector<std::uint32_t> giver_;                        // by counted buffer
  MaxFlow flow_;
  std::uint32_t source_ = 0;
  std::uint32_t sink_ = 0;
};

}  // namespace

std::optional<Antichain> heaviest_antichain(const Problem& problem,
                                            const std::vector<char>& counted,
                                            std::int64_t most_work) {
  return Hander(problem, counted).run(most_work);
}

}  // namespace plimsoll::pack
