// Which smaller forms the values of a graph may wait in.
//
//   sparse           lossless; for fp32 results of ReLU, where about half is zero, and of dropout
//   crumbs, nibbles  lossless; for the indices of a max pool, which are bytes in the graph: 2 bits
//                    for windows of up to 4 places, 4 bits up to 16
//   fp16, bf16, fp8, int8   lossy, for any fp32 result of the forward pass, where they were asked
//                           for; not for what a node makes beside its result: statistics stay exact
//
// The list is one, for the planner and for what `explain` prices. The planner lets a value wait in
// the smallest form it is offered; so a result of ReLU is sparse beside fp16 or bf16 (two bytes),
// and fp8 or int8 where these are allowed.
//
// Dropout needs no form of its own: its mask is recomputed from the seed. Nor does what ReLU's
// gradient needs where that is all that is needed: rewrite/keep_masks.h makes it a value of one
// bit. Bytes are those of the compressed (codec/compressed_buffer.h), padded like tensors; the room
// for a sparse activation counts on a little less than the expected share of zeros. Seconds are
// those of the form's codec in the device profile.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/schedule/workload/tensor_alignment.h"
#include "plimsoll/schedule/workload/workload.h"

namespace plimsoll::schedule {

// The lossy forms there are, by the names of their codecs: "fp16", "bf16", "fp8-e4m3", "fp8-e5m2",
// "int8".
std::vector<std::string> lossy_forms();
bool is_lossy_form(std::string_view name);
// "fp16,int8" as those names; "fp8" is "fp8-e4m3", the shape for results of a forward pass. kUsage
// for others.
Result<std::vector<std::string>> parse_lossy_forms(std::string_view text);

// `lossy`: names out of lossy_forms(). Nothing for what the forward pass did not make.
std::vector<Encoding> offer_encodings(const ir::Graph& graph, ValueId value,
                                      const CodecRates& rates,
                                      const std::vector<std::string>& lossy,
                                      Bytes alignment = kTensorAlignment);

}  // namespace plimsoll::schedule
