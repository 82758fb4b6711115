#include "plimsoll/runtime/testing/left_behind.h"

namespace plimsoll::runtime {

LeftBehind left_behind(Executor& executor) {
  LeftBehind out;
  const ir::Graph& graph = executor.graph();
  for (const ValueId output : graph.outputs) {
    const auto bytes = executor.result(output);
    out.emplace_back(bytes.begin(), bytes.end());
  }
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    if (!ir::is_persistent(graph.values[v].kind)) continue;
    const auto bytes = executor.source(ValueId(v));
    out.emplace_back(bytes.begin(), bytes.end());
  }
  return out;
}

}  // namespace plimsoll::runtime
