// The weights that --weights names, of any format (store/weights_file.h), matched to a model's by
// name.
//
// The built-in models call their weights as Hugging Face's and torchvision's do, so that a file
// that people have fits: model.safetensors of gpt2, bert or whisper, resnet50's .pth. What differs
// from file to file is put right:
//   - prefixes: a checkpoint of the inner model lacks "transformer." or "bert.", one of a training
//     script has "module.", "_orig_mod.", "model." or "state_dict." in front. The pair of prefix
//     taken off and prefix put on that finds the most weights is taken, for all names alike;
//   - old names of layer norms (gamma, beta);
//   - float types: fp16, bf16 and fp64 become the model's type, and the other way round;
//   - what the model does not have and checkpoints do (masks, tied output layers, counters) is not
//     worth a warning.
// Shapes must be equal.
//
// --weights demands every weight (for inference also the running statistics), unless
// --allow-missing lets those that are not there start from the seed. A file with no weight of the
// model is an error always: it is the wrong file.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "plimsoll/ir/graph.h"
#include "plimsoll/runtime/executor.h"
#include "plimsoll/store/weights_file.h"

namespace plimsoll::runtime {

// How many steps a checkpoint has behind it; kept beside the state so that data goes on where it
// stopped.
inline constexpr const char* kStepsDone = "plimsoll.steps";

class ModelWeights {
 public:
  static Result<std::shared_ptr<const ModelWeights>> open(const std::string& path);

  // Checks that the file has what the graph demands, then reads it into the executor's memory.
  Status load(Executor& executor, bool allow_missing) const;

  // Tensors by the names that the graph has for them.
  std::unordered_map<std::string, const store::WeightTensor*> by_model_name(
      const ir::Graph& graph) const;

 private:
  ModelWeights(std::string path, store::WeightsFile file)
      : path_(std::move(path)), file_(std::move(file)) {}
  std::string path_;
  store::WeightsFile file_;
};

}  // namespace plimsoll::runtime
