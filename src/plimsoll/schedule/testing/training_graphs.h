// Generated training graphs: the shapes that budget fitting is measured on.
//
// Each is a small forward graph with a reverse pass laid over it: a gradient task per input,
// reading the incoming gradient, the inputs and, where the operator needs it, the output; sums
// where a value has several readers. Bytes and seconds are small round numbers, so optima can be
// proven and compared.
//
//   random_chain(25)      layers of random cost and size
//   unit_chain(20)        layers that are all alike
//   small_resnet(4)       residual blocks
//   small_unet(3)         skips across levels
//   small_vgg()           convolutions and pools
//   transformer(8)        attention blocks
//   random_layered(100)   random wiring between layers: the hard one
#pragma once

#include <cstdint>

#include "plimsoll/schedule/workload/workload.h"

namespace plimsoll::schedule {

Workload random_chain(int layers);  // at most 25
Workload unit_chain(int layers);
Workload small_resnet(int blocks);
Workload small_unet(int depth);
Workload small_vgg();
Workload transformer(int blocks);

// Tasks in layers; each reads two or three values, mostly of the layer before, some from far back.
Workload random_layered(int tasks, int edges, std::uint64_t seed);

}  // namespace plimsoll::schedule
