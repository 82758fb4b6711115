// What every device promises (device.h), as one suite: a test gives a way to make the device.
//
// Sequences are random lists of fills and copies over a few blocks, on several streams, with just
// the waits that their reads and writes demand; what they leave behind is compared with running
// them one after the other on the host. A device that ignores a wait, or starts a sequence before
// the last one is over, leaves something else, at least now and then: each runs many times.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plimsoll/device/device.h"

namespace plimsoll::device {

struct DeviceUnderTest {
  std::string name;
  std::function<Result<std::unique_ptr<Device>>()> make;
  // Work that fills memory, on the stream that it is run on.
  std::function<std::unique_ptr<Work>(std::byte* to, std::byte value, std::size_t bytes)> fill_work;
};

// Each fails the current test with what was broken.
void expect_memory_as_promised(const DeviceUnderTest& subject);
void expect_pool_as_promised(const DeviceUnderTest& subject);
void expect_stream_in_order(const DeviceUnderTest& subject);
void expect_waits_kept(const DeviceUnderTest& subject);
void expect_marks_kept(const DeviceUnderTest& subject);
void expect_times_in_order(const DeviceUnderTest& subject);
void expect_bad_commands_refused(const DeviceUnderTest& subject);

}  // namespace plimsoll::device
