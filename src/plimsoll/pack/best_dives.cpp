#include "plimsoll/pack/best_dives.h"

#include <algorithm>
#include <utility>

namespace plimsoll::pack {
namespace {

constexpr std::size_t kKept = 6;

}  // namespace

BestDives::BestDives(std::span<const double> areas) : areas_(areas.begin(), areas.end()) {}

void BestDives::begin(bool guided, Random& random) {
  followed_ = kFree;
  if (guided && !dives_.empty())
    followed_ = static_cast<std::size_t>(random.below(std::ssize(dives_)));
  places_.assign(areas_.size(), kNowhere);
  area_ = 0;
  rising_ = false;
  best_ = {};
}

void BestDives::end() {
  if (best_.places.empty()) return;
  if (followed_ == kFree && dives_.size() < kKept) {
    dives_.push_back(std::move(best_));
    return;
  }
  const auto worst = std::ranges::min_element(dives_, {}, &Dive::area);
  Dive& other = followed_ == kFree ? *worst : dives_[followed_];
  if (best_.area > other.area) other = std::move(best_);
}

}  // namespace plimsoll::pack
