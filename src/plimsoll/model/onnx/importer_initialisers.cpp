// What an initialiser of the file becomes where a node reads it: a weight, a buffer of the model, a
// constant, or numbers that are folded.
#include <algorithm>

#include "plimsoll/model/onnx/format/tensor_content.h"
#include "plimsoll/model/onnx/importer.h"
#include "plimsoll/model/onnx/without_layer.h"

namespace plimsoll::model::onnx {
namespace {

// Float initialisers up to this size may be folded when nothing is to be trained.
constexpr std::int64_t kSmallTable = 4096;
// Integer initialisers up to this size lie in the graph as constants, larger ones stay in the file.
constexpr std::int64_t kSmallConstant = 1 << 16;

}  // namespace

bool Importer::is_buffer(const Tensor& tensor) const {
  return keeps_weights() && tensor.file != nullptr && buffers_.contains(tensor.file);
}

bool Importer::is_weight(const Tensor& tensor) const {
  const std::int64_t elements = tensor.type.shape.elements();
  // Small ones are constants, and may be folded.
  if (is_buffer(tensor)) return elements > kSmallTable;
  if (!ir::is_float(tensor.type.dtype)) return elements > kSmallConstant;
  return tensor.type.shape.rank() > 0 && (keeps_weights() || elements > 1) &&
         !looks_like_mask(tensor);
}

// Exporters fold attention masks into float tables of zeros and numbers no weight has.
bool Importer::looks_like_mask(const Tensor& tensor) const {
  constexpr std::int64_t kSamples = 4096;
  if (tensor.file == nullptr || tensor.type.shape.rank() < 2 ||
      tensor.type.shape.elements() > kMostFolded / 4)
    return false;
  const auto content = content_of(*tensor.file, folder_);
  if (!content) return false;
  const std::int64_t count = std::min(kSamples, tensor.type.shape.elements());
  const ir::TensorType part{tensor.type.dtype, {count}, {}};
  const auto sample = ops::Array::from_bytes(
      part, content->bytes.first(static_cast<std::size_t>(ir::bytes_of(part).value)));
  if (!sample) return false;
  const double hidden = tensor.type.dtype == ir::DType::kF16 ? -6e4 : -1e30;
  bool any = false;
  for (const double value : sample->reals) {
    if (value != 0 && value > hidden) return false;
    any = any || value <= hidden;
  }
  return any;
}

Result<ops::Var> Importer::add_from_file(const Tensor& tensor, ir::ValueKind kind,
                                         std::string_view called) {
  const WithoutLayer outside(builder_);
  PLIMSOLL_TRY(TensorContent content, content_of(*tensor.file, folder_));
  const std::string name = unique(called);
  if (content.is_owned) {
    weights_.add_owned(name, content.type, std::move(content.owned));
  } else {
    weights_.add(name, content.type, content.bytes);
  }
  return builder_.source(name, kind, tensor.type, {ir::Init::Kind::kFile, 0, 0});
}

// One weight for all places, or one for each.
Result<ops::Var> Importer::place_weight(const Tensor& tensor) {
  Standing& standing = standing_[tensor.file];
  const bool trained = ir::is_float(tensor.type.dtype) && !is_buffer(tensor);
  const bool here = standing.weight && standing.weight_at == place_;
  if (!here) ++standing.places;
  if (!standing.weight || (options_.untie && trained && !here)) {
    const auto kind = is_buffer(tensor) ? ir::ValueKind::kState : ir::ValueKind::kWeight;
    PLIMSOLL_TRY(standing.weight,
                 add_from_file(tensor, kind, options_.untie ? tensor.name : tensor.file->name));
  }
  standing.trained = trained;
  standing.weight_at = place_;
  return standing.weight;
}

Result<ops::Var> Importer::place_state(const Tensor& tensor) {
  Standing& standing = standing_[tensor.file];
  if (!standing.state || standing.state_at != place_) {
    PLIMSOLL_TRY(standing.state, add_from_file(tensor, ir::ValueKind::kState, tensor.name));
    standing.state_at = place_;
  }
  return standing.state;
}

TensorId Importer::renamed(TensorId id, std::string_view name) {
  const Tensor& tensor = tensors_[id.index()];
  if (!keeps_weights() || tensor.file == nullptr || tensor.var || name.empty()) return id;
  return add(
      {.name = std::string(name), .type = tensor.type, .known = tensor.known, .file = tensor.file});
}

Result<ops::Var> Importer::in_graph(TensorId id) {
  Tensor& tensor = tensors_[id.index()];
  if (tensor.var) return tensor.var;
  if (tensor.items != nullptr)
    return bad_input("'{}' is a sequence, which only operators on sequences can read", tensor.name);
  if (tensor.file != nullptr && is_weight(tensor)) {
    if (keeps_weights()) return place_weight(tensor);
    PLIMSOLL_TRY(tensor.var, add_from_file(tensor, ir::ValueKind::kWeight, tensor.name));
    return tensor.var;
  }
  const WithoutLayer outside(builder_);
  PLIMSOLL_TRY(const ops::Array* array, known(id));
  if (array == nullptr) return bad_input("constant '{}' is too large", tensor.name);
  tensor.var = builder_.constant(unique(tensor.name), *array);
  return tensor.var;
}

ops::Var Importer::as_state(TensorId id) {
  Tensor& tensor = tensors_[id.index()];
  if (tensor.file == nullptr) return {};
  if (keeps_weights()) return place_state(tensor).value_or(ops::Var());
  if (!tensor.var) {
    tensor.var = add_from_file(tensor, ir::ValueKind::kState, tensor.name).value_or(ops::Var());
  }
  if (!tensor.var) return {};
  return builder_.graph().value(tensor.var.id()).kind == ir::ValueKind::kState ? tensor.var
                                                                               : ops::Var();
}

Result<const ops::Array*> Importer::known(TensorId id) {
  Tensor& tensor = tensors_[id.index()];
  if (tensor.known != nullptr) return tensor.known.get();
  if (tensor.file == nullptr) return nullptr;
  const std::int64_t elements = tensor.type.shape.elements();
  if (elements > kMostFolded || folded_ + elements > kMostFolded) return nullptr;
  PLIMSOLL_TRY(ops::Array array, array_of(*tensor.file, folder_));
  folded_ += elements;
  tensor.known = std::make_shared<const ops::Array>(std::move(array));
  return tensor.known.get();
}

bool Importer::foldable(TensorId id) const {
  const Tensor& tensor = tensors_[id.index()];
  if (folded_ > kMostFolded) return false;
  if (tensor.file == nullptr) return tensor.known != nullptr;
  const std::int64_t elements = tensor.type.shape.elements();
  if (!ir::is_float(tensor.type.dtype)) {
    return elements <= (ir::bits(tensor.type.dtype) >= 32 || tensor.type.dtype == ir::DType::kBool
                            ? kMostFolded / 4
                            : kSmallTable);
  }
  if (keeps_weights() && !(is_buffer(tensor) && elements <= kSmallTable))
    return tensor.type.shape.rank() == 0 || looks_like_mask(tensor);
  return elements <= kSmallTable;
}

Status Importer::add_initializers(const GraphFile& graph, Scope& scope) {
  if (graph.has_sparse_initializer) return bad_input("sparse initialisers are not supported");
  for (const TensorFile& file : graph.initializers) {
    auto type = type_of(file);
    if (!type) return forward(type, fmt::format("initialiser '{}'", file.name));
    scope.names.insert_or_assign(
        file.name, add({.name = std::string(file.name), .type = *type, .file = &file}));
  }
  return {};
}

TrainedInitialisers Importer::trained_initialisers() const {
  TrainedInitialisers out;
  for (const auto& [file, standing] : standing_) {
    if (!standing.trained) continue;
    ++out.weights;
    out.places += standing.places;
    out.shared += standing.places > 1;
    if (standing.places <= out.most_places) continue;
    out.most_places = standing.places;
    out.most_shared = file->name;
  }
  for (const auto& [file, why] : buffers_) ++out.not_trained[std::string(why)];
  return out;
}

}  // namespace plimsoll::model::onnx
