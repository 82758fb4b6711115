#include <vector>

#include "plimsoll/cli/verb.h"

namespace plimsoll::cli {

// Each verb's file defines one of these (cli/pack.cpp: `Verb pack_verb()`); the order here is the
// order in `plimsoll --help`.
Verb graph_verb();
Verb models_verb();
Verb plan_verb();

std::span<const Verb> verbs() {
  static const std::vector<Verb> kVerbs = {
      models_verb(),
      graph_verb(),
      plan_verb(),
  };
  return kVerbs;
}

}  // namespace plimsoll::cli
