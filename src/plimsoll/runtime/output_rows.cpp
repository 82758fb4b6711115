#include "plimsoll/runtime/output_rows.h"

#include "plimsoll/runtime/layout_copy.h"
#include "plimsoll/store/npz.h"

namespace plimsoll::runtime {

void OutputRows::add(Executor& executor, std::int64_t batch, std::int64_t rows) {
  const ir::Graph& graph = executor.graph();
  const bool first = arrays_.empty();
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const ir::Value& value = graph.value(graph.outputs[i]);
    std::vector<std::byte> bytes = copy_to_row_major(value.type, executor.result(graph.outputs[i]));
    const bool grows = value.type.shape.rank() > 0 && value.type.shape[0] == batch;
    ir::TensorType type{value.type.dtype, value.type.shape, {}};
    if (grows) {
      bytes.resize(bytes.size() / static_cast<std::size_t>(batch) * static_cast<std::size_t>(rows));
      type.shape[0] = rows;
    }
    if (first) {
      arrays_.push_back({value.name, type, std::move(bytes)});
    } else if (grows) {
      store::NamedTensor& array = arrays_[i];
      array.type.shape[0] += rows;
      array.bytes.insert(array.bytes.end(), bytes.begin(), bytes.end());
    } else {
      arrays_[i].bytes = std::move(bytes);
    }
  }
}

Status OutputRows::save(const std::string& path) const {
  return store::write_npz(path, arrays_);
}

}  // namespace plimsoll::runtime
