// A backend whose kernels include the collectives of several ranks: another backend for everything
// else, and a communicator.
//
// A reduction of several tensors is one message where they lie side by side, as plans place them
// (plan/buckets.h): between two of them is only the padding of the first, whose bytes are nobody's
// and may be summed with the rest. In other memory (`side_by_side` off) each tensor is a message.
// Results that do not lie on what they are made from are copied there first.
#pragma once

#include <memory>

#include "plimsoll/dist/communicator.h"
#include "plimsoll/kernels/backend/backend.h"

namespace plimsoll::kernels {

std::shared_ptr<Backend> make_rank_backend(std::shared_ptr<Backend> others,
                                           std::shared_ptr<dist::Communicator> communicator,
                                           bool side_by_side);

}  // namespace plimsoll::kernels
