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
#include <functional>
#include <map>
#include <string>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"

namespace plimsoll::api {

struct EncodedWeightsRequest {
  std::string file;            // --weights; empty: none
  std::string which = "auto";  // or all, none
  std::string load = "auto";   // how the file will be read
  std::string budget;          // "1.5GiB", or a share of the plain model's arena; empty: none
  bool trains = false;         // weights that are trained cannot stay encoded
  bool on_host = true;         // kernels for them are the CPU's
  bool writes_freely = false;  // somebody writes to, or watches, what lies in the arena
  // The arena of a graph when nothing else is given up.
  std::function<Result<Bytes>(const ir::Graph&)> arena_of;
};

struct EncodedWeightsChoice {
  ir::Graph graph;
  std::string budget;              // in bytes, where it was a share
  bool begins_with_pages = false;  // every buffer, so that pages of the file can be laid there
};

// `graph` is neither differentiated nor laid out.
Result<EncodedWeightsChoice> choose_encoded_weights(ir::Graph graph,
                                                    const EncodedWeightsRequest& request);

// The weights of a graph that are encoded, all together.
struct EncodedWeightTotals {
  std::int64_t tensors = 0;
  Bytes encoded;
  Bytes decoded;
  std::map<std::string, std::int64_t> by_form;  // tensors
};
EncodedWeightTotals encoded_weight_totals(const ir::Graph& graph);

}  // namespace plimsoll::api
