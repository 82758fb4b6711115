// .onnx files in and out, as the verbs use them.
#pragma once

#include <filesystem>

#include "plimsoll/api/load_model.h"
#include "plimsoll/model/onnx_import.h"

namespace plimsoll::api {

// Imports request.model. Symbolic dimensions are bound by --batch, --seq and --dim, and by the
// shapes of the arrays in request.inputs where given; inputs of integers whose content decides
// shapes become constants then.
Result<model::ImportedModel> import_onnx_file(const ModelRequest& request, bool train);

// The graph of a request as an .onnx file, weights as the file or the seed gives them.
Status write_onnx_file(const ModelRequest& request, const std::filesystem::path& path);

}  // namespace plimsoll::api
