// The messages of onnx.proto, just enough of them for tests to write small and bad files.
//
//   std::string file = model(graph({.nodes = {node("Relu", {"x"}, {"y"})}}));  // x and y are [2,3]
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/model/onnx/format/wire_writer.h"

namespace plimsoll::model::onnx::file_pieces {

inline std::string dim(std::int64_t value) {
  return WireWriter().integer(1, value).take();
}
inline std::string shape(const std::vector<std::int64_t>& dims) {
  WireWriter out;
  for (const std::int64_t d : dims) out.bytes(1, dim(d));
  return out.take();
}
inline std::string value(std::string_view name, std::int64_t type,
                         const std::vector<std::int64_t>& dims) {
  const std::string tensor = WireWriter().integer(1, type).bytes(2, shape(dims)).take();
  return WireWriter().bytes(1, name).bytes(2, WireWriter().bytes(1, tensor).take()).take();
}
inline std::string node(std::string_view op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs,
                        const std::vector<std::string>& attributes = {}) {
  WireWriter out;
  for (const auto& input : inputs) out.bytes(1, input);
  for (const auto& output : outputs) out.bytes(2, output);
  out.bytes(4, op);
  for (const auto& attribute : attributes) out.bytes(5, attribute);
  return out.take();
}
inline std::string tensor(std::string_view name, std::int64_t type,
                          const std::vector<std::int64_t>& dims, std::string_view raw) {
  WireWriter out;
  for (const std::int64_t d : dims) out.integer(1, d);
  return out.integer(2, type).bytes(8, name).bytes(9, raw).take();
}
struct GraphParts {
  std::vector<std::string> nodes = {};
  std::vector<std::string> initializers = {};
  std::vector<std::string> inputs = {value("x", 1, {2, 3})};
  std::vector<std::string> outputs = {value("y", 1, {2, 3})};
};
inline std::string graph(const GraphParts& parts) {
  WireWriter out;
  for (const auto& n : parts.nodes) out.bytes(1, n);
  for (const auto& t : parts.initializers) out.bytes(5, t);
  for (const auto& v : parts.inputs) out.bytes(11, v);
  for (const auto& v : parts.outputs) out.bytes(12, v);
  return out.take();
}
inline std::string model(const std::string& graph_bytes) {
  return WireWriter()
      .integer(1, 8)
      .bytes(7, graph_bytes)
      .bytes(8, WireWriter().integer(2, 17).take())
      .take();
}

inline std::string int64s(const std::vector<std::int64_t>& list) {
  return {reinterpret_cast<const char*>(list.data()), list.size() * 8};
}

// An attribute that is a graph, an integer, or a text.
inline std::string body(std::string_view name, const std::string& graph_bytes) {
  return WireWriter().bytes(1, name).bytes(6, graph_bytes).integer(20, 5).take();
}
inline std::string integer(std::string_view name, std::int64_t value) {
  return WireWriter().bytes(1, name).integer(3, value).integer(20, 2).take();
}

inline std::string text(std::string_view name, std::string_view value) {
  return WireWriter().bytes(1, name).bytes(4, value).integer(20, 3).take();
}

}  // namespace plimsoll::model::onnx::file_pieces
