// The dives of a search that got furthest, as guides for later ones.
//
// A dive that failed still placed most of its items well: what kept it from the end is often one
// corner. So most dives follow an earlier one: where several items could cover a point, the one
// that lay there before goes first, and chance decides only where the earlier dive has nothing to
// say or is not asked, which is mostly in a window of time, another one for every dive. If that
// gets further, it takes the place of what it followed. (Beck's solution-guided search. On 22
// tilings of 340 to 400 buffers that dives by chance alone left unsolved in 10 s, with two seeds
// each: 4 of 44 without guides, 18 to 21 with.)
//
// How far a dive got is the area of what it had placed at its best moment. A few are kept, so that
// the search does not settle in one corner; a free dive replaces the worst of them if it got
// further. Cost: one copy of the places when a dive begins to fail. One search, one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/base/interval.h"
#include "plimsoll/base/random.h"

namespace plimsoll::pack {

class BestDives {
 public:
  struct Item {
    Interval<std::int32_t> sections;
    double area = 0;
  };

  BestDives(std::vector<Item> items, std::int32_t sections);

  // A dive from nothing placed, free or after one of the best.
  void begin(bool guided, Random& random);
  void end();

  void place(std::uint32_t i, std::int64_t x) {
    places_[i] = x;
    area_ += items_[i].area;
    rising_ = true;
  }
  void take_back(std::uint32_t i) {
    if (rising_ && area_ > best_.area) best_ = {area_, places_};
    rising_ = false;
    places_[i] = kNowhere;
    area_ -= items_[i].area;
  }

  // Whether the dive that is followed had item i at x, and is asked about it.
  bool advise(std::uint32_t i, std::int64_t x) const {
    return followed_ != kFree && dives_[followed_].places[i] == x &&
           !items_[i].sections.meets(unasked_);
  }
  void clear() { dives_.clear(); }

 private:
  static constexpr std::int64_t kNowhere = -1;
  static constexpr std::size_t kFree = static_cast<std::size_t>(-1);
  struct Dive {
    double area = 0;
    std::vector<std::int64_t> places;
  };

  std::vector<Item> items_;
  std::int32_t sections_;
  std::vector<Dive> dives_;
  std::size_t followed_ = kFree;
  Interval<std::int32_t> unasked_{};
  Dive best_;  // of the dive under way
  std::vector<std::int64_t> places_;
  double area_ = 0;
  bool rising_ = false;  // something was placed since the last was taken back
};

}  // namespace plimsoll::pack
