// A MODEL and everything a user may say about it: the options that all verbs share.
//
// One struct, filled by one binder (cli/model_options.h), understood in one place
// (api/load_model.h), so that `graph`, `memory`, `plan`, `run` and the rest cannot drift apart.
// Texts stay texts until a model is loaded, because only then an error can name the model it
// belongs to.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/model/sizes.h"
#include "plimsoll/schedule/device_profile.h"

namespace plimsoll::api {

struct ModelRequest {
  std::string model;  // a built-in name, a .graph file or an .onnx file
  model::ModelOptions
      sizes;  // --batch, --seq, ...; its dtype, amp, training and seed are set from below
  std::optional<bool> train;      // absent: built-in models train, files do not
  std::vector<std::string> dims;  // "name=size": symbolic dimensions of a file
  std::string inputs;  // an .npz with the arrays to run on; their shapes bind dimensions too
  std::string loss;    // cross-entropy, mse or an output's name; empty: the model's own
  std::string dtype = "fp32";
  std::string amp;    // "bf16": computed in, weights stay in dtype; empty: no mixed precision
  bool tf32 = false;  // products of fp32 on a card round their operands to TF32
  std::uint64_t seed = 1;
  int threads = 0;  // 0: all cores
  // Of the machine that plans for itself (machine_profile.h); absent: those of the shipped profile.
  std::function<Result<schedule::DeviceProfile>(int threads)> machine_rates;

  std::string optimizer = "adamw";
  std::optional<double> learning_rate;  // absent: the optimizer's (autodiff/training.h)
  std::optional<double> weight_decay;
  double clip_norm = 0;  // 0: none
  int accumulate = 1;
  std::string capacity;  // of an .onnx file: room for what NonZero finds, a number or a share
  bool untie = false;    // of an .onnx file: a weight that stands in several places becomes several
  std::vector<std::string> freeze;
  std::string weights;                   // a file of weights: what it has encoded may stay so
  std::string encoded_weights = "auto";  // or all, none (encoded_weights.h)
  bool int8_activations = false;         // of products with int8 and q8_0 weights that stay encoded
  bool quiet = false;                    // what an import found has been said before
};

// --batch or --seq, by the name of the size: "batch" or "seq".
std::optional<std::int64_t>& size_option(model::ModelOptions& sizes, std::string_view name);

// "name=size" each; of two for one name the last counts.
Result<std::map<std::string, std::int64_t>> parse_dims(const std::vector<std::string>& dims);

}  // namespace plimsoll::api
