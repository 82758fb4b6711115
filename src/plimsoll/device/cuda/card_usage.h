// How much of a card's memory is used, and by whom, as the driver's management library says.
//
// The library (libnvidia-ml.so.1, part of the driver) is opened at run time. It can be asked before
// this process has a context, which is the only way to see what a context costs: the runtime's own
// cudaMemGetInfo makes one to answer. Where it is missing or hidden, nothing is known.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/units.h"

namespace plimsoll::device::cuda {

// Of the card with this PCI address, "0000:18:00.0".
std::optional<Bytes> used_on_card(const std::string& pci_address);

// Processes other than this one that compute on the card.
std::vector<unsigned> other_processes(const std::string& pci_address);

}  // namespace plimsoll::device::cuda
