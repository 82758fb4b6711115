// A device that behaves as a GPU does, over host memory: for tests of everything but the GPU.
//
// Every stream is a queue with a thread of its own. Enqueuing returns at once; the thread takes
// what lies in its queue in order, and dawdles before each piece for a random time, so that streams
// overtake each other in every way that their waits allow. Waits are events with CUDA's meaning:
// a wait refers to what had been recorded when it was enqueued, and a wait for an event that was
// never recorded is none.
//
//   host       enqueue a on 0 │ record e │ enqueue: 1 waits for e │ enqueue b on 1 │ synchronize
//   stream 0         ~~~~~~ a ~~ e
//   stream 1                          ~ b          (never before e)
//
// Queues and events are lock-free, and a thread tells the host nothing before it is asked: a lock
// would order streams that a GPU does not order, and hide their races from ThreadSanitizer.
//
// Memory that was never written holds 0xa5, not zeros. A thread that waits for an event that will
// never come would hang: what is enqueued in order cannot wait for what is not enqueued yet.
//
// Kernels are the CPU's, with one OpenMP thread each. `alignment` is CUDA's, 256.
#pragma once

#include <cstdint>
#include <memory>

#include "plimsoll/device/device.h"

namespace plimsoll::device {

struct FakeDeviceOptions {
  std::uint64_t seed = 1;
  int longest_delay = 2000;  // in turns of an empty loop; 0: none
  Bytes memory = 16_GiB;     // more is refused
};

std::unique_ptr<Device> make_fake_device(const FakeDeviceOptions& options);

}  // namespace plimsoll::device
