// Which weights of an inference, or frozen ones of a training, stay in memory in the form that
// their file (--weights) has them in.
//
//   none   no weight: all are decoded when the run begins
//   all    every one that the file has encoded
//   auto   without a budget none; with one, those that make everything fit at the least time: what
//          is encoded is decoded again in every step, or multiplied at another speed
//
// With a budget that the forms of the file do not meet, weights that it has plain are encoded when
// they are loaded. What may be done stands on a ladder, and no rung is stood on before all above it
// were not enough, so nothing is lost that need not be:
//
//   as the file has it
//   what loses nothing: 16 bits of a weight that has them (the model computes in fp32),
//     bf16-lossless, the sparse forms
//   the forms of --lossy, one after the other
//
// Within a rung time decides: a weight has forms with bytes and predicted seconds of all that reads
// it, and the cheapest saved bytes are taken first (store/form_choice.h) until everything fits. Of
// what loses nothing, that is also done which the prediction has as faster; and what in the end was
// not needed is taken back.
//
// Then the graph reads them through rewrite/keep_encoded.h, and the plan sees their true bytes and
// places what is decoded like any other result.
//
// A budget covers what loading takes beside the arena, too: pieces of the file on their way, tables
// for decoding (runtime/model_weights.h). The plan gets what is left of it.
//
// Plain tensors of a file whose pages can be laid into the arena (store/file_pages.h) want a plan
// that begins buffers with pages; that is decided here too, where no budget counts every byte.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"

namespace plimsoll::api {

struct EncodedWeightsRequest {
  std::string file;            // --weights; empty: none
  std::string which = "auto";  // or all, none
  std::string load = "auto";   // how the file will be read
  std::string budget;          // "1.5GiB", or a share of the plain model's arena; empty: none
  // Forms that plain weights may be encoded in, in this order; named: by a user who means weights.
  std::vector<std::string> lossy;
  bool lossy_named = false;
  // Weights that are trained cannot stay encoded; frozen ones can.
  bool trains = false;
  std::set<std::string> frozen;
  bool int8_activations = false;  // products with int8 and q8_0 weights round theirs
  bool on_host = true;            // kernels for them are the CPU's
  bool writes_freely = false;     // somebody writes to, or watches, what lies in the arena
  // The arena of a graph when nothing else is given up.
  std::function<Result<Bytes>(const ir::Graph&)> arena_of;
  // What reads each weight of a graph takes in a step, predicted; decoding it included.
  std::function<Result<std::map<std::string, double>>(const ir::Graph&)> seconds_of;
};

struct EncodedWeightsChoice {
  ir::Graph graph;
  std::string budget;              // in bytes, where it was a share
  Bytes loading;                   // what loading takes beside the arena
  bool begins_with_pages = false;  // every buffer, so that pages of the file can be laid there
  std::string advice;              // what may help where all of this does not make it fit
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
  struct One {
    std::string name;
    std::string form;
    Bytes encoded;
    Bytes decoded;
    double seconds = 0;  // of a step, predicted: decoding it, and products straight from its form
  };
  std::vector<One> all;
};
EncodedWeightTotals encoded_weight_totals(const ir::Graph& graph);

}  // namespace plimsoll::api
