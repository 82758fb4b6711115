#include "plimsoll/runtime/testing/left_behind.h"

#include <gtest/gtest.h>

#include "plimsoll/runtime/initial_content.h"

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

LeftBehind left_behind_after(int steps, Executor& executor) {
  const ir::Graph& graph = executor.graph();
  const auto fill = [&](bool inputs, int step) {
    for (std::size_t v = 0; v < graph.values.size(); ++v) {
      const ir::Value& value = graph.values[v];
      if (!ir::is_source(value.kind) || (value.kind == ir::ValueKind::kInput) != inputs) continue;
      EXPECT_TRUE(fill_source(executor, ValueId(v), 1, static_cast<std::uint64_t>(step)));
    }
  };
  fill(false, 0);
  for (int step = 0; step < steps; ++step) {
    fill(true, step);
    const Status ran = executor.step();
    EXPECT_TRUE(ran) << ran.error().message;
  }
  return left_behind(executor);
}

}  // namespace plimsoll::runtime
