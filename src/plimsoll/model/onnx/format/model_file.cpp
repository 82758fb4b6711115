#include "plimsoll/model/onnx/format/model_file.h"

namespace plimsoll::model::onnx {
namespace {

Status intact(const Wire& wire, std::string_view what) {
  if (wire.broken()) return bad_input("{}: {}", what, wire.problem());
  return {};
}

// A field of this number: takes what it holds and says whether the field at hand is one. Lists grow
// by what it holds.
bool take(Wire& wire, std::uint32_t field, std::string_view& out) {
  if (wire.field() == field) out = wire.text();
  return wire.field() == field;
}

bool take(Wire& wire, std::uint32_t field, std::int64_t& out) {
  if (wire.field() == field) out = wire.integer();
  return wire.field() == field;
}

bool take(Wire& wire, std::uint32_t field, float& out) {
  if (wire.field() == field) out = wire.real();
  return wire.field() == field;
}

bool take(Wire& wire, std::uint32_t field, WireBytes& out) {
  if (wire.field() == field) out = wire.bytes();
  return wire.field() == field;
}

bool take(Wire& wire, std::uint32_t field, ElementType& out) {
  if (wire.field() == field) out = static_cast<ElementType>(wire.integer());
  return wire.field() == field;
}

template <typename T>
Status bounded(const std::vector<T>& list, std::size_t most, std::string_view what) {
  if (list.size() > most) return bad_input("more than {} {}", most, what);
  return {};
}

// A repeated field of texts or of messages left unparsed.
template <typename T>
Status take_all(Wire& wire, std::uint32_t field, std::vector<T>& out, std::size_t most,
                std::string_view what) {
  if (T item; take(wire, field, item)) out.push_back(item);
  return bounded(out, most, what);
}

// A repeated field of messages that `read` reads.
template <typename T>
Status take_all(Wire& wire, std::uint32_t field, std::vector<T>& out, Result<T> (*read)(WireBytes),
                std::size_t most, std::string_view what) {
  if (wire.field() != field) return {};
  PLIMSOLL_TRY(T item, read(wire.bytes()));
  out.push_back(std::move(item));
  return bounded(out, most, what);
}

Status read_external_entry(WireBytes message, TensorFile& tensor) {
  std::string_view key;
  std::string_view value;
  Wire wire(message);
  while (wire.next()) {
    take(wire, 1, key);
    take(wire, 2, value);
  }
  if (key == "location") tensor.location = value;
  if (key == "offset") tensor.offset = value;
  if (key == "length") tensor.length = value;
  return intact(wire, "external data of a tensor");
}

Result<AttributeFile> read_attribute(WireBytes message) {
  AttributeFile out;
  std::int64_t type = 0;
  Wire wire(message);
  while (wire.next()) {
    take(wire, 1, out.name);
    out.has_f |= take(wire, 2, out.f);
    out.has_i |= take(wire, 3, out.i);
    out.has_s |= take(wire, 4, out.s);
    out.has_t |= take(wire, 5, out.t);
    out.has_g |= take(wire, 6, out.g);
    if (wire.field() == 7) wire.append_reals(out.floats);
    if (wire.field() == 8) wire.append_integers(out.ints);
    if (wire.field() == 9) out.strings.push_back(wire.text());
    take(wire, 20, type);
    take(wire, 21, out.refers_to);
    out.has_sparse |= wire.field() == 22 || wire.field() == 23;
  }
  PLIMSOLL_RETURN_IF_ERROR(intact(wire, fmt::format("attribute '{}'", out.name)));
  // Writers of proto3 leave out what is zero or empty.
  out.has_f = out.has_f || type == 1;
  out.has_i = out.has_i || type == 2;
  out.has_s = out.has_s || type == 3;
  return out;
}

Result<DimFile> read_dim(WireBytes message) {
  DimFile out;
  Wire wire(message);
  while (wire.next()) {
    out.has_value |= take(wire, 1, out.value);
    take(wire, 2, out.symbol);
  }
  PLIMSOLL_RETURN_IF_ERROR(intact(wire, "a dimension"));
  return out;
}

Status read_tensor_type(WireBytes message, ValueFile& value) {
  Wire wire(message);
  while (wire.next()) {
    take(wire, 1, value.element);
    if (wire.field() != 2) continue;
    value.has_shape = true;
    Wire shape(wire.bytes());
    while (shape.next()) {
      PLIMSOLL_RETURN_IF_ERROR(
          take_all(shape, 1, value.dims, read_dim, kMostArguments, "dimensions of one value"));
    }
    PLIMSOLL_RETURN_IF_ERROR(intact(shape, "a shape"));
  }
  return intact(wire, "a tensor's type");
}

Result<ValueFile> read_value(WireBytes message) {
  ValueFile out;
  Wire wire(message);
  while (wire.next()) {
    take(wire, 1, out.name);
    if (wire.field() != 2) continue;
    Wire type(wire.bytes());
    while (type.next()) {
      if (type.field() != 1) continue;
      out.is_tensor = true;
      PLIMSOLL_RETURN_IF_ERROR(read_tensor_type(type.bytes(), out));
    }
    PLIMSOLL_RETURN_IF_ERROR(intact(type, "a value's type"));
  }
  PLIMSOLL_RETURN_IF_ERROR(intact(wire, fmt::format("value '{}'", out.name)));
  return out;
}

Result<OpsetFile> read_opset(WireBytes message) {
  OpsetFile out;
  Wire wire(message);
  while (wire.next()) {
    take(wire, 1, out.domain);
    take(wire, 2, out.version);
  }
  PLIMSOLL_RETURN_IF_ERROR(intact(wire, "an operator set"));
  return out;
}

Result<FunctionFile> read_function(WireBytes message) {
  FunctionFile out;
  Wire wire(message);
  while (wire.next()) {
    take(wire, 1, out.name);
    PLIMSOLL_RETURN_IF_ERROR(take_all(wire, 4, out.inputs, kMostArguments, "inputs of a function"));
    PLIMSOLL_RETURN_IF_ERROR(
        take_all(wire, 5, out.outputs, kMostArguments, "outputs of a function"));
    PLIMSOLL_RETURN_IF_ERROR(take_all(wire, 7, out.nodes, kMostNodes, "nodes in a function"));
    PLIMSOLL_RETURN_IF_ERROR(
        take_all(wire, 9, out.opsets, read_opset, kMostArguments, "operator sets of a function"));
    take(wire, 10, out.domain);
    PLIMSOLL_RETURN_IF_ERROR(take_all(wire, 11, out.defaults, read_attribute, kMostArguments,
                                      "attributes of a function"));
    take(wire, 13, out.overload);
  }
  PLIMSOLL_RETURN_IF_ERROR(intact(wire, fmt::format("function '{}'", out.name)));
  return out;
}

}  // namespace

Result<TensorFile> read_tensor(WireBytes message) {
  TensorFile out;
  out.message = message;
  Wire wire(message);
  while (wire.next()) {
    if (wire.field() == 1) wire.append_integers(out.dims);
    take(wire, 2, out.element);
    if (wire.field() == 3) return bad_input("tensor '{}': is stored in segments", out.name);
    take(wire, 8, out.name);
    out.has_raw |= take(wire, 9, out.raw);
    if (wire.field() == 13) PLIMSOLL_RETURN_IF_ERROR(read_external_entry(wire.bytes(), out));
    if (wire.field() == 14) out.external = wire.integer() == 1;
    if (out.dims.size() > kMostArguments)
      return bad_input("tensor '{}': too many dimensions", out.name);
  }
  PLIMSOLL_RETURN_IF_ERROR(intact(wire, fmt::format("tensor '{}'", out.name)));
  return out;
}

Result<NodeFile> read_node(WireBytes message) {
  NodeFile out;
  Wire wire(message);
  while (wire.next()) {
    PLIMSOLL_RETURN_IF_ERROR(take_all(wire, 1, out.inputs, kMostArguments, "inputs of a node"));
    PLIMSOLL_RETURN_IF_ERROR(take_all(wire, 2, out.outputs, kMostArguments, "outputs of a node"));
    take(wire, 3, out.name);
    take(wire, 4, out.op);
    PLIMSOLL_RETURN_IF_ERROR(
        take_all(wire, 5, out.attributes, read_attribute, kMostArguments, "attributes of a node"));
    take(wire, 7, out.domain);
    take(wire, 8, out.overload);
  }
  PLIMSOLL_RETURN_IF_ERROR(intact(wire, fmt::format("node '{}'", out.name)));
  return out;
}

Result<GraphFile> read_graph(WireBytes message) {
  GraphFile out;
  Wire wire(message);
  while (wire.next()) {
    PLIMSOLL_RETURN_IF_ERROR(take_all(wire, 1, out.nodes, kMostNodes, "nodes in a graph"));
    take(wire, 2, out.name);
    PLIMSOLL_RETURN_IF_ERROR(
        take_all(wire, 5, out.initializers, read_tensor, kMostTensors, "initialisers in a graph"));
    PLIMSOLL_RETURN_IF_ERROR(
        take_all(wire, 11, out.inputs, read_value, kMostTensors, "inputs of a graph"));
    PLIMSOLL_RETURN_IF_ERROR(
        take_all(wire, 12, out.outputs, read_value, kMostArguments, "outputs of a graph"));
    out.has_sparse_initializer |= wire.field() == 15;
  }
  PLIMSOLL_RETURN_IF_ERROR(intact(wire, fmt::format("graph '{}'", out.name)));
  return out;
}

Result<ModelFile> read_model(WireBytes bytes) {
  ModelFile out;
  bool has_graph = false;
  Wire wire(bytes);
  while (wire.next()) {
    take(wire, 1, out.ir_version);
    take(wire, 2, out.producer);
    if (wire.field() == 7) {
      if (has_graph) return bad_input("the file has two graphs");
      PLIMSOLL_TRY(out.graph, read_graph(wire.bytes()));
      has_graph = true;
    }
    PLIMSOLL_RETURN_IF_ERROR(
        take_all(wire, 8, out.opsets, read_opset, kMostArguments, "operator sets"));
    PLIMSOLL_RETURN_IF_ERROR(
        take_all(wire, 25, out.functions, read_function, kMostArguments, "functions"));
  }
  PLIMSOLL_RETURN_IF_ERROR(intact(wire, "not an ONNX file"));
  if (!has_graph) return bad_input("not an ONNX file: it has no graph");
  return out;
}

}  // namespace plimsoll::model::onnx
