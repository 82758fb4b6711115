// What `plimsoll profile` does: measures this machine, and the operators of a MODEL on it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/api/model_options.h"
#include "plimsoll/profile/operator_costs.h"

namespace plimsoll::api {

using profile::OperatorCost;

struct ProfileRequest {
  ModelRequest model;          // without a name: the machine alone
  std::string folder;          // on the disk to measure; empty: where temporary files go
  std::string output;          // a file for --device; empty: none
  std::string device = "cpu";  // or cuda, cuda:N
  bool layouts = false;        // operators are measured in the layouts that were not chosen, too
  std::function<void(std::string_view what)> on_progress;
  std::function<void(std::size_t done, std::size_t all)> on_measuring;
};

struct ProfileReport {
  schedule::DeviceProfile profile;
  std::string json;
  std::vector<OperatorCost> operators;
};

Result<ProfileReport> profile_model(const ProfileRequest& request);

}  // namespace plimsoll::api
