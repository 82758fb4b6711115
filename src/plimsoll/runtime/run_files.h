// The files a run reads and writes: data, weights, checkpoints, traces.
//
// All arrays are .npz by the name of the source they belong to, in row-major order whatever layout
// the graph chose; only --weights may have other formats and other names (model_weights.h). There,
// what an .onnx file brought itself may be missing, optimizer state is taken where it is there, and
// arrays that belong to nothing are warned of. --resume demands every weight, optimizer moment and
// counter, because a checkpoint with a hole in it is no checkpoint.
//
// --save writes at the end, after every `save_every` steps, and when a run is stopped: whole, under
// a temporary name first, so that what was saved before stays until the next is complete.
//
// What would stop an output after the run is said before it: a name that cannot be written, a type
// that numpy does not have, a file system without room. Arrays are read into the executor's memory
// and written from it one at a time.
#pragma once

#include <functional>
#include <string>

#include "plimsoll/runtime/run.h"
#include "plimsoll/store/weight_source.h"

namespace plimsoll::runtime {

struct RunFiles {
  // Empty or "synthetic": one batch from the seed; "fresh": another every step; else an .npz or a
  // folder of them (dataset.h).
  std::string data;
  int epochs = 0;              // of a data set, instead of a number of steps; 0: so many steps
  bool every_example = false;  // inference: the steps that see each example once
  std::string outputs;         // an .npz for the graph's outputs after the last step
  std::string weights;
  bool allow_missing = false;  // in `weights`
  std::string load = "auto";   // how `weights` is read: auto, mapped, cached, direct or network
  std::string resume;
  std::string save;
  bool writes_save = true;  // off: another rank does, and this one brings its parts
  int save_every = 0;       // steps; 0: at the end only
  std::string trace;
  std::string chrome_trace;
};

// Sets how's feed, on_start and on_end. Files are opened here, so that a bad one is found before
// planning.
Status bind_files(const RunFiles& files, RunOptions& how);

// What a file of outputs holds must come from somewhere: refuses one when the graph has inputs and
// no data is given.
Status require_inputs(const RunFiles& files, const ir::Graph& graph);

// First the content that came with the model (an .onnx file's initialisers), then `next`. The
// weights must outlive it.
std::function<Status(Executor&)> load_sources(const store::WeightSource& weights,
                                              std::function<Status(Executor&)> next);

Status write_traces(const trace::Trace& trace, const RunFiles& files);

}  // namespace plimsoll::runtime
