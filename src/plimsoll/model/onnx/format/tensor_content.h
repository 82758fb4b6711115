// From a TensorProto to a type and bytes as our tensors have them.
//
// ONNX stores content in one of three ways: `raw_data` (little-endian, packed: what we want, used
// where it lies), external data (the same in another file, used where it lies), or typed lists of
// numbers (small tensors of older exporters: decoded into a buffer). Sizes are compared with the
// shape before anything is allocated.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/tensor_type.h"
#include "plimsoll/model/onnx/format/model_file.h"
#include "plimsoll/ops/evaluation/array.h"
#include "plimsoll/store/data_folder.h"

namespace plimsoll::model::onnx {

// Our dtype; an error that names the type when we have none (strings, complex numbers, fp8
// variants).
Result<ir::DType> dtype_of(ElementType element);
// The way back, for the writer.
ElementType element_of(ir::DType dtype);

Result<ir::TensorType> type_of(const TensorFile& tensor);

struct TensorContent {
  ir::TensorType type;
  std::span<const std::byte> bytes;  // in the mapping, or in `owned`
  std::vector<std::byte> owned;
  bool is_owned = false;
};

// `folder` may be null: external data is refused then.
Result<TensorContent> content_of(const TensorFile& tensor, store::DataFolder* folder);
Result<ops::Array> array_of(const TensorFile& tensor, store::DataFolder* folder);

}  // namespace plimsoll::model::onnx
