// The table of CPU kernels: which factories may serve an operator.
#pragma once

#include <span>
#include <string_view>

#include "plimsoll/kernels/cpu/site.h"

namespace plimsoll::kernels {

struct TableEntry {
  std::string_view op;
  Factory make;
};

// In the order of trial: of the entries of an operator the first that takes the types wins.
std::span<const TableEntry> cpu_table();

}  // namespace plimsoll::kernels
