// How much memory this machine has.
//
// Linux lets a program ask for more than there is and kills one later, not always the one that
// asked. So whoever is about to take a large piece compares first.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/base/units.h"

namespace plimsoll {

// All of it, used or not.
Bytes machine_memory();

// kDoesNotFit when more is needed than the machine has.
Status check_machine_memory(Bytes needed);

}  // namespace plimsoll
