// `plimsoll weights`: what a file of weights holds, what each form would make of it, and the file
// in another form or format.
//
//   in    safetensors, .plim, GGUF, torch.save, .npz (store/weights_file.h), .onnx
//   out   .plim      every form (store/weight_form.h), chosen tensor by tensor
//         .safetensors   raw, fp16, bf16; from a .plim file that was made of one: the same bytes
//         .npz       raw
//
// Errors are measured, not assumed: what was encoded is decoded and compared. max_error is the
// largest difference as a share of the tensor's largest value, rms_error the root of the mean
// square of differences as a share of that of the values. Of a whole file, max_error is the largest
// of its tensors, rms_error the root of the mean square of theirs and cosine the mean, by values
// and over those that changed: a tensor of huge values that stays as it is says nothing of the
// others. With max_error given, a tensor that would
// have a larger one stays as it is. `auto` takes for each tensor the smallest of all forms that
// lose nothing, or with max_error, of all forms within it. What pruning does counts as error.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/result.h"

namespace plimsoll::api {

struct WeightsRequest {
  std::string file;
  std::string output;  // empty: only look
  std::string form;    // empty: raw
  std::optional<double> max_error;
  double prune = 0;  // share of the smallest values of matrices that become zero; .plim only
  bool all = false;  // look at every chunk, not at a sample of them
};

struct WeightsError {
  double max_error = 0;
  double rms_error = 0;
  double cosine = 1;
};

struct WeightsTensor {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::uint64_t bytes = 0;
  std::uint64_t stored_bytes = 0;
  std::string form;
  WeightsError error;
};

struct WeightsOfForm {
  std::string form;
  bool lossless = true;
  std::uint64_t bytes = 0;    // all tensors, by the sample
  WeightsError error;         // of the sample
  double decode_seconds = 0;  // all tensors by the sample, one thread
};

struct WeightsReport {
  std::string file;
  std::string format;
  std::string form;  // as asked for, else that of all tensors; "mixed": several
  std::uint64_t bytes = 0;
  std::uint64_t stored_bytes = 0;
  std::vector<WeightsTensor> tensors;
  std::map<std::string, std::uint64_t> bytes_by_dtype;
  WeightsError error;
  // Only looked at:
  std::vector<WeightsOfForm> by_form;
  std::uint64_t sampled_bytes = 0;
  double entropy_share = 0;  // bytes that a coder of byte planes needs, of the sample's
  // Only converted:
  std::string output;
  std::uint64_t output_bytes = 0;
  std::vector<std::string> kept;  // tensors that --max-error left as they were
  double seconds = 0;
};

Result<WeightsReport> weights_of_file(const WeightsRequest& request);
std::string to_json(const WeightsReport& report);

}  // namespace plimsoll::api
