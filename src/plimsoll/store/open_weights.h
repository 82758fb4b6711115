// Which format a file of weights has, seen from its first bytes, and the reader of that format.
//
//   safetensors   safetensors.h    its values lie in the file as they are
//   .plim         plim_reader.h    raw, or decoded chunk by chunk
//   GGUF          gguf.h           as they are, or decoded from blocks
//   torch.save    torch_file.h     as they are where contiguous, else gathered
//   .npz          npz.h            as they are, or inflated
//
// Opening checks all that can be checked without reading the tensors.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/store/weight_source.h"
#include "plimsoll/store/weights_reader.h"

namespace plimsoll::store {

struct OpenedWeights {
  std::string format;
  std::unique_ptr<WeightsReader> reader;
  std::vector<WeightTensor> tensors;
  std::string source_header;  // of the safetensors file that it is or was made of; empty: none
};

Result<OpenedWeights> open_weights(std::span<const std::byte> file);  // must outlive it
// Weights that a model's own file brought, by name.
Result<OpenedWeights> open_weight_source(WeightSource source, std::string format);

}  // namespace plimsoll::store
