// The verb `plan`.
#pragma once

#include "plimsoll/cli/verb.h"

namespace plimsoll::cli {

Verb plan_verb();

}  // namespace plimsoll::cli
