#include "plimsoll/runtime/testing/left_behind.h"

namespace plimsoll::runtime {

LeftBehind left_behind(Executor& executor) {
  LeftBehind out;
  const ir::Graph& graph = executor.graph();
  for (const ValueId output : graph.outputs) out.push_back(executor.result(output).value());
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    if (!ir::is_persistent(graph.values[v].kind)) continue;
    out.push_back(executor.read(ValueId(v)).value());
  }
  return out;
}

}  // namespace plimsoll::runtime
