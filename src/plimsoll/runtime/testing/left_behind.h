// What a run leaves behind, byte for byte: outputs, and every weight, moment and counter.
//
// Two strategies that started with one seed must leave the same bytes; NaN patterns count as bytes
// too.
#pragma once

#include <cstddef>
#include <vector>

#include "plimsoll/runtime/executor.h"

namespace plimsoll::runtime {

using LeftBehind = std::vector<std::vector<std::byte>>;

LeftBehind left_behind(Executor& executor);

// After so many steps from the same content, with another batch each; a step that fails fails the
// test.
LeftBehind left_behind_after(int steps, Executor& executor);

}  // namespace plimsoll::runtime
