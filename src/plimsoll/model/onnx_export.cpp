#include "plimsoll/model/onnx_export.h"

#include "plimsoll/base/file.h"
#include "plimsoll/model/onnx/export/graph_writer.h"

namespace plimsoll::model {

Result<std::string> export_onnx(const ir::Graph& graph, const SourceContent& content,
                                std::string* data, const std::string& data_name) {
  onnx::GraphWriter out(graph);
  out.set_external(data, data_name);
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const ir::Value& value = graph.values[v];
    const ir::TensorType plain{value.type.dtype, value.type.shape, {}};
    if (const auto* constant = graph.data(ValueId(v))) {
      out.tensor(out.name(ValueId(v)), plain, *constant);
    } else if (ir::is_persistent(value.kind)) {
      PLIMSOLL_TRY(const std::vector<std::byte> bytes, content(value));
      if (static_cast<std::int64_t>(bytes.size()) != ir::bytes_of(plain).value) {
        return bad_input("{} '{}': has {} bytes, expects {}", ir::name(value.kind), value.name,
                         bytes.size(), ir::bytes_of(plain));
      }
      out.tensor(out.name(ValueId(v)), plain, bytes);
    }
  }
  for (const ir::Node& node : graph.nodes) PLIMSOLL_RETURN_IF_ERROR(onnx::write_node(out, node));
  return out.take_model();
}

Status write_onnx(const std::filesystem::path& path, const ir::Graph& graph,
                  const SourceContent& content) {
  constexpr std::int64_t kMostInside = 1'900'000'000;
  std::int64_t total = 0;
  for (const ir::Value& value : graph.values) {
    if (ir::is_persistent(value.kind)) total += ir::bytes_of(value.type).value;
  }
  if (total <= kMostInside) {
    PLIMSOLL_TRY(const std::string file, export_onnx(graph, content));
    return write_file(path, file);
  }
  std::string data;
  const std::filesystem::path beside = path.string() + ".data";
  PLIMSOLL_TRY(const std::string file,
               export_onnx(graph, content, &data, beside.filename().string()));
  OutputFile files[2];
  PLIMSOLL_TRY(files[0], OutputFile::create(beside));
  PLIMSOLL_TRY(files[1], OutputFile::create(path));
  PLIMSOLL_RETURN_IF_ERROR(files[0].write(data));
  PLIMSOLL_RETURN_IF_ERROR(files[1].write(file));
  return commit_together(files);
}

}  // namespace plimsoll::model
