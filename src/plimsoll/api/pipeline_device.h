// The device of a pipeline: where its kernels run, and what they take there.
#pragma once

#include "plimsoll/api/pipeline_state.h"

namespace plimsoll::api {

// Opens the backend that the device names, unless there is one.
Status open_backend(Pipeline& pipeline);

// Whether steps run on a card of this machine.
bool on_card(const Pipeline& pipeline);
// Whether graph, layouts and kernels are a card's: of one of this machine, or of one on paper.
bool plans_for_card(const Pipeline& pipeline);
// A card of this machine, or a profile of one.
bool for_card(const Pipeline& pipeline);

// The profile of a name or a file, as far as it holds for the request.
Result<schedule::DeviceProfile> profile_named(const Pipeline& pipeline);
// What layouts are compared by: known before anything is timed, and the same on every machine, so
// that a plan for a card is the same graph on the card and elsewhere.
Result<schedule::DeviceProfile> prices_of_layouts(const Pipeline& pipeline);
// What operators take on a card: timed now, or where times do not matter, an H200's.
Result<schedule::DeviceProfile> profile_of_card(const Pipeline& pipeline);

}  // namespace plimsoll::api
