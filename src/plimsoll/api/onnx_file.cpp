#include "plimsoll/api/onnx_file.h"

#include <charconv>
#include <cmath>

#include "plimsoll/runtime/dataset.h"
#include "plimsoll/store/npz.h"

namespace plimsoll::api {
namespace {

// Shapes, axes and indices are wanted, not data: a file must not make us hold a gigabyte of it
// while we import.
constexpr Bytes kMostContent = 1_MiB;

// A model that asks at import for the content of an input says so in this phrase.
bool wants_content(const Error& error) {
  return error.message.find("is not a constant") != std::string::npos;
}

// "64", or "25%" of all there can be.
Result<model::Capacity> parse_capacity(const std::string& text) {
  model::Capacity out;
  if (text.empty()) return out;
  const bool share = text.back() == '%';
  double number = 0;
  const char* end = text.data() + text.size() - (share ? 1 : 0);
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const bool whole = share || number == std::floor(number);
  if (error != std::errc() || stop != end || !(number > 0) || number > 1e15 || !whole)
    return fail(ErrorCode::kUsage,
                "--routing-capacity {}: expects a number, or a share such as 25%", text);
  if (share) {
    out.share = number / 100;
  } else {
    out.count = static_cast<std::int64_t>(number);
  }
  return out;
}

}  // namespace

Result<model::ImportedModel> import_onnx_file(const ModelRequest& request, bool train) {
  model::ImportOptions how;
  how.batch = request.sizes.batch;
  how.seq = request.sizes.seq;
  how.training = train;
  how.keeps_weights = !request.weights.empty();
  how.untie = request.untie;
  how.shapes_of_datasets = true;
  PLIMSOLL_TRY(how.dims, parse_dims(request.dims));
  PLIMSOLL_TRY(how.capacity, parse_capacity(request.capacity));
  store::NpzFile arrays;
  if (!request.inputs.empty()) {
    // Of a folder the first: shapes are the same in all.
    PLIMSOLL_TRY(const std::vector<std::string> files, runtime::archives_at(request.inputs));
    PLIMSOLL_TRY(arrays, store::NpzFile::open(files.front()));
    for (const store::NpzEntry& entry : arrays.entries())
      how.shapes.emplace(entry.name, entry.type.shape);
  }
  auto model = model::import_onnx(request.model, how);
  if (model || arrays.entries().empty() || !wants_content(model.error())) return model;
  for (const store::NpzEntry& entry : arrays.entries()) {
    if (ir::is_float(entry.type.dtype) || ir::bytes_of(entry.type) > kMostContent) continue;
    PLIMSOLL_TRY(const store::NamedTensor array, arrays.read(entry));
    PLIMSOLL_TRY(ops::Array content, ops::Array::from_bytes(array.type, array.bytes));
    how.values.emplace(array.name, std::move(content));
  }
  return model::import_onnx(request.model, how);
}

}  // namespace plimsoll::api
