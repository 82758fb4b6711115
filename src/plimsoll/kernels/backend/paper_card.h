// A card that is not here, to plan for: its graph, its alignment and what its kernels take, as a
// profile says that they were on the card itself.
//
// Asking cuDNN for workspaces without the card gives other answers than the card does, so what is
// not known is not asked for: a signature that the profile does not have is taken to need no
// scratch, and the plan counts it among the estimated ones. Whatever would run something is an
// error.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "plimsoll/kernels/backend/backend.h"

namespace plimsoll::kernels {

struct PaperCard {
  std::string name;             // of the profile
  std::string instruction_set;  // "sm_90 tf32"
  std::string library;          // "cuDNN 9.19.0, cuBLASLt 13.1.0"
  Bytes memory;
  std::unordered_map<std::string, ops::KernelFacts> kernels;  // by signature
};

std::shared_ptr<Backend> make_paper_card(PaperCard card);

}  // namespace plimsoll::kernels
