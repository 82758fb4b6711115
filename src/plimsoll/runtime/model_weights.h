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
// A weight that the graph keeps encoded (ops/products/encoded_weight.h) is read in the form of the
// file; all else is decoded, or, where the file's pages can be laid into the arena
// (store/file_pages.h), not even copied.
//
// --weights demands every weight (for inference also the running statistics), unless
// --allow-missing lets those that are not there start from the seed. A file with no weight of the
// model is an error always: it is the wrong file.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "plimsoll/ir/graph.h"
#include "plimsoll/runtime/executor.h"
#include "plimsoll/store/weights_file.h"

namespace plimsoll::runtime {

// How many steps a checkpoint has behind it; kept beside the state so that data goes on where it
// stopped.
inline constexpr const char* kStepsDone = "plimsoll.steps";

struct LoadOptions {
  bool allow_missing = false;
  bool may_lay_pages = false;  // nothing writes to weights, and nobody watches the arena's pages
};

// What loading did, for people who wonder.
struct WeightsLoaded {
  std::string file;
  std::string format;
  std::int64_t tensors = 0;
  double seconds = 0;
  std::map<std::string, Bytes> by_method;  // "mapped", "cached", "direct", "network", "copied"
  // Of those that stay encoded, by form: tensors, their bytes in memory, and decoded.
  struct Kept {
    std::int64_t tensors = 0;
    Bytes encoded;
    Bytes decoded;
  };
  std::map<std::string, Kept> encoded;
  // Each of them; the error of those that were encoded on the way from a plain file.
  struct KeptWeight {
    std::string name;
    std::string form;
    Bytes encoded;
    Bytes decoded;
    std::optional<double> max_error;
  };
  std::vector<KeptWeight> kept;
  // Pages of the file that lie in the arena, while it has them.
  std::vector<std::weak_ptr<const store::FilePages>> pages;
  bool was_cut() const;  // the file, under those pages
};

// A form that a weight could stay in.
struct EncodedForm {
  std::string form;
  ir::DType dtype = ir::DType::kF32;
  Bytes bytes;
};

class ModelWeights {
 public:
  static Result<std::shared_ptr<const ModelWeights>> open(
      const std::string& path, std::optional<store::ReadMethod> method = std::nullopt);

  // Checks that the file has what the graph demands, then reads it into the executor's memory.
  Status load(Executor& executor, const LoadOptions& options, WeightsLoaded& loaded) const;

  // The weights of the graph that could stay in the form that the file has them in, by the graph's
  // names.
  std::map<std::string, EncodedForm> encoded_forms(const ir::Graph& graph) const;
  // The forms that the wanted weights could be kept in which the file has plain: first those that
  // lose nothing, then these, in this order; each takes less memory than the weight as it is. Every
  // such weight is read and encoded for it.
  Result<std::map<std::string, std::vector<EncodedForm>>> possible_forms(
      const ir::Graph& graph, const std::function<bool(const ir::Value&)>& wanted,
      const std::vector<std::string>& lossy) const;
  // What load() and decoding in steps take beside the arena of a planned run, at most: a budget
  // covers it. `encodes`: those that the file has plain may be encoded on the way.
  Bytes loading_bytes(const ir::Graph& graph, bool encodes) const;
  // The names of the graph's weights and states that the file has.
  std::unordered_set<std::string> names_in(const ir::Graph& graph) const;
  // Of the file: bytes of tensors that are plain and begin with a page.
  Bytes bytes_on_pages() const;

  // Tensors by the names that the graph has for them.
  std::unordered_map<std::string, const store::WeightTensor*> by_model_name(
      const ir::Graph& graph) const;

 private:
  ModelWeights(std::string path, store::WeightsFile file)
      : path_(std::move(path)), file_(std::move(file)), tables_(file_.prepare_decoding()) {}
  std::string path_;
  store::WeightsFile file_;
  std::uint64_t tables_;  // bytes of what decoding looks things up in
};

}  // namespace plimsoll::runtime
