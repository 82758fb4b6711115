// One case of ONNX's backend test suite: a folder with model.onnx and files of inputs and expected
// outputs. For tests and tools; the suite's files are trusted no more than any others.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/model/onnx_import.h"
#include "plimsoll/ops/evaluation/array.h"

namespace plimsoll::model::onnx {

struct NamedArray {
  std::string name;
  ops::Array array;
};

struct BackendCase {
  std::filesystem::path model;
  std::vector<NamedArray> inputs;
  std::vector<NamedArray> outputs;
};

// One .pb file with a tensor.
Result<ops::Array> read_tensor_file(const std::filesystem::path& path);

// `folder` holds model.onnx and test_data_set_0/{input,output}_N.pb.
Result<BackendCase> read_backend_case(const std::filesystem::path& folder);

// Imported for the case's shapes; inputs whose content decides shapes are given as constants, and
// the others stay inputs.
Result<ImportedModel> import_case(const BackendCase& test, const ImportOptions& options = {});

// The graph's outputs by the reference evaluation.
Result<std::vector<ops::Array>> run_reference(const ImportedModel& model,
                                              const std::vector<NamedArray>& inputs);

struct Tolerance {
  double relative = 1e-3;
  double absolute = 1e-5;
};
// Same type, every element within absolute + relative * |expected|; NaN and infinity as expected.
Status compare(const ops::Array& got, const ops::Array& expected, Tolerance tolerance);

}  // namespace plimsoll::model::onnx
