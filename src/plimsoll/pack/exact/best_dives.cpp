#include "plimsoll/pack/exact/best_dives.h"

#include <algorithm>
#include <utility>

namespace plimsoll::pack {
namespace {

constexpr std::size_t kKept = 6;
constexpr double kWindows = 0.8;       // share of dives with a window
constexpr double kWidestWindow = 0.5;  // of all sections

}  // namespace

BestDives::BestDives(std::vector<Item> items, std::int32_t sections)
    : items_(std::move(items)), sections_(sections) {}

void BestDives::begin(bool guided, Random& random) {
  followed_ = kFree;
  if (guided && !dives_.empty())
    followed_ = static_cast<std::size_t>(random.below(std::ssize(dives_)));
  const double width = random.chance(kWindows) ? kWidestWindow * random.uniform() * sections_ : 0;
  const double middle = random.uniform() * sections_;
  unasked_ = {static_cast<std::int32_t>(middle - width / 2),
              static_cast<std::int32_t>(middle + width / 2)};
  places_.assign(items_.size(), kNowhere);
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
