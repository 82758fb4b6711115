// What every communicator promises, as functions that all of its ranks call side by side. Each
// returns what this rank found wrong; nothing: the promise holds.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plimsoll/dist/communicator.h"

namespace plimsoll::dist {

struct ContractCase {
  std::string name;
  std::function<std::string(Communicator&)> run;
  bool adds_in_order = false;  // for communicators that can
};

std::vector<ContractCase> communicator_contract();

}  // namespace plimsoll::dist
