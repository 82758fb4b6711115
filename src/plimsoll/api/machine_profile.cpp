#include "plimsoll/api/machine_profile.h"

#include <map>
#include <memory>

#include "plimsoll/base/threads.h"
#include "plimsoll/profile/find_profile.h"
#include "plimsoll/profile/machine_rates.h"

namespace plimsoll::api {

std::function<Result<schedule::DeviceProfile>(int threads)> rates_of_this_machine() {
  auto known = std::make_shared<std::map<int, schedule::DeviceProfile>>();
  return [known](int threads) -> Result<schedule::DeviceProfile> {
    const auto found = known->find(threads);
    if (found != known->end()) return found->second;
    PLIMSOLL_TRY(schedule::DeviceProfile rates,
                 profile::machine_rates({threads, profile::rates_folder()}));
    return known->emplace(threads, std::move(rates)).first->second;
  };
}

Result<schedule::DeviceProfile> profile_of_cpu(const ModelRequest& request) {
  PLIMSOLL_TRY(schedule::DeviceProfile shipped, profile::find_profile("cpu"));
  if (!request.machine_rates) return shipped;
  PLIMSOLL_TRY(const schedule::DeviceProfile rates,
               request.machine_rates(resolve_threads(request.threads)));
  return profile::at_rates(std::move(shipped), rates);
}

}  // namespace plimsoll::api
