// Which weights of an inference stay in memory in the form that their file (--weights) has them in.
//
//   none   no weight: all are decoded when the run begins
//   all    every one that the file has encoded
//   auto   without a budget none; with one, as few as make everything fit, those first that save
//          most: what is encoded is decoded again in every step, or multiplied more slowly
//
// Then the graph reads them through rewrite/keep_encoded.h, and the plan sees their true bytes and
// places what is decoded like any other result.
//
// Plain tensors of a file whose pages can be laid into the arena (store/file_pages.h) want a plan
// that begins buffers with pages; that is decided here too, where no budget counts every byte.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"

namespace plimsoll::api {

struct Pipeline;

// Changes the pipeline's graph, which is neither differentiated nor laid out, and its alignment.
Status choose_encoded_weights(Pipeline& pipeline);

// The weights of a graph that are encoded, all together.
struct EncodedWeightTotals {
  std::int64_t tensors = 0;
  Bytes encoded;
  Bytes decoded;
  std::map<std::string, std::int64_t> by_form;  // tensors
};
EncodedWeightTotals encoded_weight_totals(const ir::Graph& graph);

}  // namespace plimsoll::api
