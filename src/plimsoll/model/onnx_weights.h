// The initialisers of an .onnx file by their names, without the graph: no size need be known, and no
// operator.
#pragma once

#include <filesystem>

#include "plimsoll/base/result.h"
#include "plimsoll/store/weight_source.h"

namespace plimsoll::model {

Result<store::WeightSource> read_onnx_weights(const std::filesystem::path& path);

}  // namespace plimsoll::model
