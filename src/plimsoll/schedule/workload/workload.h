// Workload: what has to be computed in one step, as a weighted graph and nothing more.
//
// A task reads values, takes time and scratch memory, and makes values. A value has bytes and a few
// permissions: may it be recomputed, may it leave for host memory, may it be stored in a smaller
// form. That is all that deciding "keep, recompute, swap or encode" needs, so budget fitting knows
// no operators, dtypes or devices and serves a training graph and a user's own DAG alike.
//
//   tasks   a ──x──▶ b ──y──▶ c          a makes x, b reads x and makes y, c reads x and y
//           └────x──────────▶ c
//   between b and c, x is idle: it may stay, or go and be recomputed by running a twice
//
// The rules a mapping from another graph must follow:
//  1. `tasks` is in an order that can be run: every input is a source or the output of an earlier
//     task.
//  2. A value is bytes with one content. Views of a tensor are the same value, not values of their
//     own.
//  3. A source (no producer) exists before the first task: weights, optimizer state, the batch.
//     It cannot be recomputed. With `keep` it must be there again after the last task, where it was
//     before the first (device or host), because the next step starts from there.
//  4. A new version of a source (an updated weight) is an output with `in_place.required` naming
//     the old version: it is written over it. Its task is `once`; it runs after every reader of the
//     old version, recomputed ones included, and the old version is gone afterwards.
//  5. Any other `in_place` is an offer: taken when the input is not needed any more. Both have the
//     same bytes.
//  6. A task with side effects or with randomness whose seed is not an input is `once`.
//  7. Values without readers are dropped after their task unless `keep`.
//
// To hold bytes back in a stretch of the step (because packing needed more there than the sum of
// what is alive), raise the `scratch` of the tasks in that stretch.
//
// Plain data; immutable once made. verify() checks the rules in O(tasks + edges).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/base/units.h"

namespace plimsoll::schedule {

using TaskId = Id<struct TaskTag>;

// A smaller form in which a value may wait between two uses.
struct Encoding {
  std::string name;
  Bytes bytes;
  double encode_seconds = 0;
  double decode_seconds = 0;
  bool lossless = true;

  bool operator==(const Encoding&) const = default;
};

// The value may take over the memory of one of its task's inputs.
struct InPlace {
  ValueId input;
  bool required = false;

  bool operator==(const InPlace&) const = default;
};

struct Value {
  std::string name;
  Bytes bytes;
  TaskId producer;        // none: a source
  bool recompute = true;  // may be dropped and recomputed
  bool keep = false;      // must be in memory after the last task
  bool swappable = true;  // may wait in host memory
  std::optional<InPlace> in_place;
  std::vector<Encoding> encodings;

  bool operator==(const Value&) const = default;
};

// A task may run in parts (split_tasks.h): on shares of these inputs, making a share of its values
// or adding to them.
struct TaskSplit {
  std::int64_t parts = 1;  // at most
  bool sums = false;
  std::vector<ValueId> cut;

  bool operator==(const TaskSplit&) const = default;
};

struct Task {
  std::string name;
  double seconds = 0;
  Bytes scratch;
  std::vector<ValueId> inputs;   // no duplicates
  std::vector<ValueId> outputs;  // at least one
  bool once = false;             // must not run a second time
  bool cheap = false;            // for the drop-cheap strategy: batch norm, activation, pooling
  std::int32_t block = -1;       // for per-block checkpointing: which repeated block, -1 for none
  std::optional<TaskSplit> split{};  // absent: only whole

  bool operator==(const Task&) const = default;
};

struct Workload {
  std::vector<Task> tasks;  // in the given order
  std::vector<Value> values;
  // Tasks before this one are the forward half; segments are cut there. None: at the peak of the
  // no-recompute plan.
  TaskId first_backward;

  const Task& task(TaskId id) const { return tasks[id.index()]; }
  const Value& value(ValueId id) const { return values[id.index()]; }
  bool operator==(const Workload&) const = default;
};

// The rules above, and that sums of bytes and seconds stay within range.
Status verify(const Workload& workload);

// Copies between device and host, as the cost model sees them.
struct CopyRates {
  double out_bytes_per_second = 10e9;
  double in_bytes_per_second = 10e9;
  double latency_seconds = 10e-6;

  double out_seconds(Bytes bytes) const {
    return latency_seconds + static_cast<double>(bytes.value) / out_bytes_per_second;
  }
  double in_seconds(Bytes bytes) const {
    return latency_seconds + static_cast<double>(bytes.value) / in_bytes_per_second;
  }
  bool operator==(const CopyRates&) const = default;
};

// Encoding and decoding, in plain bytes a second; 0 encode: there is none.
struct CodecRate {
  double encode_bytes_per_second = 0;
  double decode_bytes_per_second = 0;

  bool operator==(const CodecRate&) const = default;
};
struct CodecRates {
  double encode_bytes_per_second = 0;
  double decode_bytes_per_second = 0;
  double latency_seconds = 0;
  // where one form's rate is known; the others go by the above
  std::map<std::string, CodecRate> forms{};

  CodecRate of(const std::string& form) const {
    const auto found = forms.find(form);
    return found != forms.end() ? found->second
                                : CodecRate{encode_bytes_per_second, decode_bytes_per_second};
  }

  bool operator==(const CodecRates&) const = default;
};

}  // namespace plimsoll::schedule
