#include "plimsoll/model/onnx/export/graph_writer.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "plimsoll/model/onnx/format/tensor_content.h"

namespace plimsoll::model::onnx {
namespace {

constexpr std::int64_t kIrVersion = 9;
constexpr std::int64_t kOpset = 20;
constexpr std::size_t kExternalFrom = 1024;

std::string attribute(std::string_view name, const ir::Attribute& value) {
  WireWriter out;
  out.bytes(1, name);
  if (const auto* i = std::get_if<std::int64_t>(&value)) out.integer(3, *i).integer(20, 2);
  if (const auto* f = std::get_if<double>(&value))
    out.real(2, static_cast<float>(*f)).integer(20, 1);
  if (const auto* s = std::get_if<std::string>(&value)) out.bytes(4, *s).integer(20, 3);
  if (const auto* ints = std::get_if<ir::Ints>(&value)) {
    for (const std::int64_t i : *ints) out.integer(8, i);
    out.integer(20, 7);
  }
  if (const auto* reals = std::get_if<ir::Reals>(&value)) {
    for (const double f : *reals) out.real(7, static_cast<float>(f));
    out.integer(20, 6);
  }
  return out.take();
}

std::string value_info(const std::string& name, const ir::TensorType& type) {
  WireWriter shape;
  for (const std::int64_t extent : type.shape)
    shape.bytes(1, WireWriter().integer(1, extent).take());
  const std::string tensor = WireWriter()
                                 .integer(1, static_cast<std::int64_t>(element_of(type.dtype)))
                                 .bytes(2, shape.take())
                                 .take();
  return WireWriter().bytes(1, name).bytes(2, WireWriter().bytes(1, tensor).take()).take();
}

}  // namespace

GraphWriter::GraphWriter(const ir::Graph& graph)
    : graph_(graph), names_(graph.values.size()), counted_(graph.values.size(), false) {
  for (const ir::Node& node : graph.nodes) {
    const bool counted =
        node.op == "cumsum" || std::any_of(node.inputs.begin(), node.inputs.end(),
                                           [this](ValueId input) { return is_counted(input); });
    for (const ValueId output : node.outputs) counted_[output.index()] = counted;
  }
  std::set<std::string> taken;
  const auto claim = [&](ValueId id) {
    std::string& name = names_[id.index()];
    if (!name.empty()) return;
    name = graph.value(id).name;
    if (name.empty() || !taken.insert(name).second) {
      name = fmt::format("{}#{}", graph.value(id).name, id.value);
      taken.insert(name);
    }
  };
  // Inputs and outputs keep their names before anything else takes them.
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    if (ir::is_source(graph.values[v].kind)) claim(ValueId(v));
  }
  for (const ValueId output : graph.outputs) claim(output);
  for (std::size_t v = 0; v < graph.values.size(); ++v) claim(ValueId(v));
}

std::string GraphWriter::fresh() {
  return fmt::format("made#{}", made_++);
}

std::string GraphWriter::node(std::string_view op, const std::vector<std::string>& inputs,
                              const std::vector<OnnxAttribute>& attributes,
                              const std::vector<std::string>& outputs) {
  WireWriter out;
  for (const std::string& input : inputs) out.bytes(1, input);
  std::string first = outputs.empty() ? fresh() : outputs.front();
  if (outputs.empty()) out.bytes(2, first);
  for (const std::string& output : outputs) out.bytes(2, output);
  out.bytes(3, fmt::format("{}/{}", first, op)).bytes(4, op);
  for (const auto& [name, value] : attributes) out.bytes(5, attribute(name, value));
  nodes_.bytes(1, out.take());
  return first;
}

std::string GraphWriter::integers(const ir::Ints& list) {
  std::string name = fresh();
  const auto bytes = std::as_bytes(std::span(list));
  tensor(name, {ir::DType::kI64, {static_cast<std::int64_t>(list.size())}, {}}, bytes);
  return name;
}

std::string GraphWriter::scalar(ir::DType dtype, double value) {
  std::string name = fresh();
  ops::Array array({dtype, {}, {}});
  array.set_number(0, value);
  array.round();
  tensor(name, array.type, array.to_bytes());
  return name;
}

void GraphWriter::tensor(const std::string& name, const ir::TensorType& type,
                         std::span<const std::byte> bytes) {
  WireWriter out;
  for (const std::int64_t extent : type.shape) out.integer(1, extent);
  out.integer(2, static_cast<std::int64_t>(element_of(type.dtype))).bytes(8, name);
  const std::string_view raw(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (data_ == nullptr || raw.size() < kExternalFrom) {
    out.bytes(9, raw);
  } else {
    data_->resize((data_->size() + 63) / 64 * 64, '\0');
    const auto entry = [&](std::string_view key, const std::string& value) {
      out.bytes(13, WireWriter().bytes(1, key).bytes(2, value).take());
    };
    entry("location", data_name_);
    entry("offset", std::to_string(data_->size()));
    entry("length", std::to_string(raw.size()));
    out.integer(14, 1);
    *data_ += raw;
  }
  tensors_.bytes(5, out.take());
}

std::string GraphWriter::take_model() {
  WireWriter values;
  for (std::size_t v = 0; v < graph_.values.size(); ++v) {
    if (graph_.values[v].kind == ir::ValueKind::kInput)
      values.bytes(11, value_info(names_[v], graph_.values[v].type));
  }
  for (const ValueId output : graph_.outputs)
    values.bytes(12, value_info(name(output), graph_.value(output).type));
  const std::string body =
      nodes_.take() + WireWriter().bytes(2, graph_.name.empty() ? "graph" : graph_.name).take() +
      tensors_.take() + values.take();
  return WireWriter()
      .integer(1, kIrVersion)
      .bytes(2, "plimsoll")
      .bytes(7, body)
      .bytes(8, WireWriter().bytes(1, "").integer(2, kOpset).take())
      .take();
}

}  // namespace plimsoll::model::onnx
