// .onnx files as the verbs name them.
#pragma once

#include "plimsoll/api/model_options.h"
#include "plimsoll/model/onnx_import.h"

namespace plimsoll::api {

// Imports request.model. Symbolic dimensions are bound by --batch, --seq and --dim, and by the
// shapes of the arrays in request.inputs where given; inputs of integers whose content decides
// shapes become constants then.
Result<model::ImportedModel> import_onnx_file(const ModelRequest& request, bool train);

}  // namespace plimsoll::api
