// An .onnx file as it stands there: the messages of onnx.proto that an importer reads, as views
// into the mapped bytes. Nothing here knows what an operator means.
//
// Names and contents are string_views and spans into the mapping, which must outlive every struct.
// Lists that may be long stay unparsed until somebody walks them: a graph holds its nodes as spans,
// an attribute its subgraph as one, and read_node() / read_graph() open one at a time. So opening a
// model costs 16 bytes a node, and a hostile file cannot make it cost more: counts are bounded
// (kMost...) before anything grows, and nesting is bounded by the importer, which is the one that
// descends.
//
// Failures are kBadInput with what is malformed: "node 17: a field is longer than what is left of
// the file".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/model/onnx/format/wire.h"

namespace plimsoll::model::onnx {

inline constexpr std::size_t kMostNodes = 1 << 20;      // of one graph
inline constexpr std::size_t kMostTensors = 1 << 18;    // initialisers or inputs of one graph
inline constexpr std::size_t kMostArguments = 1 << 16;  // inputs, outputs or attributes of one node

// onnx.proto's TensorProto.DataType.
enum class ElementType : std::int32_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBfloat16 = 16,
  kFloat8E4M3FN = 17,
  kFloat8E4M3FNUZ = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2FNUZ = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kFloat8E8M0 = 24,
};

struct TensorFile {
  std::string_view name;
  std::vector<std::int64_t> dims;
  ElementType element = ElementType::kUndefined;
  WireBytes message;  // the whole of it: typed data fields are read from here
  WireBytes raw;      // when has_raw
  bool has_raw = false;
  bool external = false;
  std::string_view location;  // of external data, relative to the model's folder
  std::string_view offset;
  std::string_view length;
};

struct AttributeFile {
  std::string_view name;
  std::string_view refers_to;  // inside a function: the attribute of the call that takes its place
  std::int64_t i = 0;
  float f = 0;
  std::string_view s;
  WireBytes t;
  WireBytes g;
  std::vector<std::int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string_view> strings;
  bool has_i = false, has_f = false, has_s = false, has_t = false, has_g = false;
  bool has_sparse = false;
};

struct NodeFile {
  std::string_view name;
  std::string_view op;
  std::string_view domain;
  std::string_view overload;
  std::vector<std::string_view> inputs;  // "" is an absent one
  std::vector<std::string_view> outputs;
  std::vector<AttributeFile> attributes;
};

struct DimFile {
  std::string_view symbol;
  std::int64_t value = 0;
  bool has_value = false;
};

struct ValueFile {
  std::string_view name;
  bool is_tensor = false;  // false: a sequence, map, optional or sparse tensor
  bool has_shape = false;
  ElementType element = ElementType::kUndefined;
  std::vector<DimFile> dims;
};

struct GraphFile {
  std::string_view name;
  std::vector<WireBytes> nodes;
  std::vector<TensorFile> initializers;
  std::vector<ValueFile> inputs;
  std::vector<ValueFile> outputs;
  bool has_sparse_initializer = false;
};

struct OpsetFile {
  std::string_view domain;
  std::int64_t version = 0;
};

struct FunctionFile {
  std::string_view name;
  std::string_view domain;
  std::string_view overload;
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> outputs;
  std::vector<AttributeFile> defaults;  // attributes with a default value
  std::vector<WireBytes> nodes;
  std::vector<OpsetFile> opsets;
};

struct ModelFile {
  std::int64_t ir_version = 0;
  std::string_view producer;
  std::vector<OpsetFile> opsets;
  GraphFile graph;
  std::vector<FunctionFile> functions;
};

Result<ModelFile> read_model(WireBytes bytes);
Result<GraphFile> read_graph(WireBytes message);
Result<NodeFile> read_node(WireBytes message);
Result<TensorFile> read_tensor(WireBytes message);

}  // namespace plimsoll::model::onnx
