#include "plimsoll/model/onnx/format/model_file.h"

namespace plimsoll::model::onnx {
namespace {

Status intact(const Wire& wire, std::string_view what) {
  if (wire.broken()) return bad_input("{}: {}", what, wire.problem());
  return {};
}

template <typename T>
Status bounded(const std::vector<T>& list, std::size_t most, std::string_view what) {
  if (list.size() > most) return bad_input("more than {} {}", most, what);
  return {};
}

Status read_external_entry(WireBytes message, TensorFile& tensor) {
  std::string_view key;
  std::string_view value;
  Wire wire(message);
  while (wire.next()) {
    if (wire.field() == 1) key = wire.text();
    if (wire.field() == 2) value = wire.text();
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
    switch (wire.field()) {
      case 1:
        out.name = wire.text();
        break;
      case 2:
        out.f = wire.real();
        out.has_f = true;
        break;
      case 3:
        out.i = wire.integer();
        out.has_i = true;
        break;
      case 4:
        out.s = wire.text();
        out.has_s = true;
        break;
      case 5:
        out.t = wire.bytes();
        out.has_t = true;
        break;
      case 6:
        out.g = wire.bytes();
        out.has_g = true;
        break;
      case 7:
        wire.append_reals(out.floats);
        break;
      case 8:
        wire.append_integers(out.ints);
        break;
      case 9:
        out.strings.push_back(wire.text());
        break;
      case 20:
        type = wire.integer();
        break;
      case 21:
        out.refers_to = wire.text();
        break;
      case 22:
      case 23:
        out.has_sparse = true;
        break;
      default:
        break;
    }
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
    if (wire.field() == 1) {
      out.value = wire.integer();
      out.has_value = true;
    }
    if (wire.field() == 2) out.symbol = wire.text();
  }
  PLIMSOLL_RETURN_IF_ERROR(intact(wire, "a dimension"));
  return out;
}

Status read_tensor_type(WireBytes message, ValueFile& value) {
  Wire wire(message);
  while (wire.next()) {
    if (wire.field() == 1) value.element = static_cast<ElementType>(wire.integer());
    if (wire.field() != 2) continue;
    value.has_shape = true;
    Wire shape(wire.bytes());
    while (shape.next()) {
      if (shape.field() != 1) continue;
      PLIMSOLL_TRY(DimFile dim, read_dim(shape.bytes()));
      value.dims.push_back(dim);
      PLIMSOLL_RETURN_IF_ERROR(bounded(value.dims, kMostArguments, "dimensions of one value"));
    }
    PLIMSOLL_RETURN_IF_ERROR(intact(shape, "a shape"));
  }
  return intact(wire, "a tensor's type");
}

Result<ValueFile> read_value(WireBytes message) {
  ValueFile out;
  Wire wire(message);
  while (wire.next()) {
    if (wire.field() == 1) out.name = wire.text();
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
    if (wire.field() == 1) out.domain = wire.text();
    if (wire.field() == 2) out.version = wire.integer();
  }
  PLIMSOLL_RETURN_IF_ERROR(intact(wire, "an operator set"));
  return out;
}

Result<FunctionFile> read_function(WireBytes message) {
  FunctionFile out;
  Wire wire(message);
  while (wire.next()) {
    switch (wire.field()) {
      case 1:
        out.name = wire.text();
        break;
      case 4:
        out.inputs.push_back(wire.text());
        break;
      case 5:
        out.outputs.push_back(wire.text());
        break;
      case 7:
        out.nodes.push_back(wire.bytes());
        break;
      case 9: {
        PLIMSOLL_TRY(OpsetFile opset, read_opset(wire.bytes()));
        out.opsets.push_back(opset);
        break;
      }
      case 10:
        out.domain = wire.text();
        break;
      case 11: {
        PLIMSOLL_TRY(AttributeFile attribute, read_attribute(wire.bytes()));
        out.defaults.push_back(std::move(attribute));
        break;
      }
      case 13:
        out.overload = wire.text();
        break;
      default:
        break;
    }
    PLIMSOLL_RETURN_IF_ERROR(bounded(out.nodes, kMostNodes, "nodes in a function"));
    PLIMSOLL_RETURN_IF_ERROR(bounded(out.inputs, kMostArguments, "inputs of a function"));
    PLIMSOLL_RETURN_IF_ERROR(bounded(out.outputs, kMostArguments, "outputs of a function"));
    PLIMSOLL_RETURN_IF_ERROR(bounded(out.defaults, kMostArguments, "attributes of a function"));
    PLIMSOLL_RETURN_IF_ERROR(bounded(out.opsets, kMostArguments, "operator sets of a function"));
  }
  PLIMSOLL_RETURN_IF_ERROR(intact(wire, fmt::format("function '{}'", out.name)));
  return out;
}

Status read_graph_field(Wire& wire, GraphFile& graph) {
  switch (wire.field()) {
    case 1:
      graph.nodes.push_back(wire.bytes());
      break;
    case 2:
      graph.name = wire.text();
      break;
    case 5: {
      PLIMSOLL_TRY(TensorFile tensor, read_tensor(wire.bytes()));
      graph.initializers.push_back(std::move(tensor));
      break;
    }
    case 11: {
      PLIMSOLL_TRY(ValueFile value, read_value(wire.bytes()));
      graph.inputs.push_back(std::move(value));
      break;
    }
    case 12: {
      PLIMSOLL_TRY(ValueFile value, read_value(wire.bytes()));
      graph.outputs.push_back(std::move(value));
      break;
    }
    case 15:
      graph.has_sparse_initializer = true;
      break;
    default:
      break;
  }
  return {};
}

}  // namespace

Result<TensorFile> read_tensor(WireBytes message) {
  TensorFile out;
  out.message = message;
  Wire wire(message);
  while (wire.next()) {
    switch (wire.field()) {
      case 1:
        wire.append_integers(out.dims);
        break;
      case 2:
        out.element = static_cast<ElementType>(wire.integer());
        break;
      case 3:
        return bad_input("tensor '{}': is stored in segments", out.name);
      case 8:
        out.name = wire.text();
        break;
      case 9:
        out.raw = wire.bytes();
        out.has_raw = true;
        break;
      case 13:
        PLIMSOLL_RETURN_IF_ERROR(read_external_entry(wire.bytes(), out));
        break;
      case 14:
        out.external = wire.integer() == 1;
        break;
      default:
        break;
    }
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
    switch (wire.field()) {
      case 1:
        out.inputs.push_back(wire.text());
        break;
      case 2:
        out.outputs.push_back(wire.text());
        break;
      case 3:
        out.name = wire.text();
        break;
      case 4:
        out.op = wire.text();
        break;
      case 5: {
        PLIMSOLL_TRY(AttributeFile attribute, read_attribute(wire.bytes()));
        out.attributes.push_back(std::move(attribute));
        break;
      }
      case 7:
        out.domain = wire.text();
        break;
      case 8:
        out.overload = wire.text();
        break;
      default:
        break;
    }
    PLIMSOLL_RETURN_IF_ERROR(bounded(out.inputs, kMostArguments, "inputs of a node"));
    PLIMSOLL_RETURN_IF_ERROR(bounded(out.outputs, kMostArguments, "outputs of a node"));
    PLIMSOLL_RETURN_IF_ERROR(bounded(out.attributes, kMostArguments, "attributes of a node"));
  }
  PLIMSOLL_RETURN_IF_ERROR(intact(wire, fmt::format("node '{}'", out.name)));
  return out;
}

Result<GraphFile> read_graph(WireBytes message) {
  GraphFile out;
  Wire wire(message);
  while (wire.next()) {
    PLIMSOLL_RETURN_IF_ERROR(read_graph_field(wire, out));
    PLIMSOLL_RETURN_IF_ERROR(bounded(out.nodes, kMostNodes, "nodes in a graph"));
    PLIMSOLL_RETURN_IF_ERROR(bounded(out.initializers, kMostTensors, "initialisers in a graph"));
    PLIMSOLL_RETURN_IF_ERROR(bounded(out.inputs, kMostTensors, "inputs of a graph"));
    PLIMSOLL_RETURN_IF_ERROR(bounded(out.outputs, kMostArguments, "outputs of a graph"));
  }
  PLIMSOLL_RETURN_IF_ERROR(intact(wire, fmt::format("graph '{}'", out.name)));
  return out;
}

Result<ModelFile> read_model(WireBytes bytes) {
  ModelFile out;
  bool has_graph = false;
  Wire wire(bytes);
  while (wire.next()) {
    switch (wire.field()) {
      case 1:
        out.ir_version = wire.integer();
        break;
      case 2:
        out.producer = wire.text();
        break;
      case 7: {
        if (has_graph) return bad_input("the file has two graphs");
        PLIMSOLL_TRY(out.graph, read_graph(wire.bytes()));
        has_graph = true;
        break;
      }
      case 8: {
        PLIMSOLL_TRY(OpsetFile opset, read_opset(wire.bytes()));
        out.opsets.push_back(opset);
        PLIMSOLL_RETURN_IF_ERROR(bounded(out.opsets, kMostArguments, "operator sets"));
        break;
      }
      case 25: {
        PLIMSOLL_TRY(FunctionFile function, read_function(wire.bytes()));
        out.functions.push_back(std::move(function));
        PLIMSOLL_RETURN_IF_ERROR(bounded(out.functions, kMostArguments, "functions"));
        break;
      }
      default:
        break;
    }
  }
  PLIMSOLL_RETURN_IF_ERROR(intact(wire, "not an ONNX file"));
  if (!has_graph) return bad_input("not an ONNX file: it has no graph");
  return out;
}

}  // namespace plimsoll::model::onnx
