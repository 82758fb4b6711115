#include <vector>

#include "plimsoll/cli/verb.h"

namespace plimsoll::cli {

// Each verb's file defines one of these (cli/pack.cpp: `Verb pack_verb()`); the order here is the
// order in `plimsoll --help`.
Verb models_verb();
Verb graph_verb();
Verb memory_verb();
Verb run_verb();
Verb plan_verb();
Verb check_verb();
Verb profile_verb();
Verb pack_verb();
Verb replay_verb();
Verb convert_verb();
Verb view_verb();
Verb diff_verb();
Verb explain_verb();
Verb oversubscribe_verb();
Verb weights_verb();
Verb exec_verb();
Verb completion_verb();
Verb man_verb();
Verb help_verb();

std::span<const Verb> verbs() {
  static const std::vector<Verb> kVerbs = {
      models_verb(), graph_verb(),      memory_verb(),  run_verb(),           plan_verb(),
      check_verb(),  profile_verb(),    pack_verb(),    replay_verb(),        convert_verb(),
      view_verb(),   diff_verb(),       explain_verb(), oversubscribe_verb(), weights_verb(),
      exec_verb(),   completion_verb(), man_verb(),     help_verb(),
  };
  return kVerbs;
}

}  // namespace plimsoll::cli
