// What patterns ask of a graph: who made this value, and is it a number?
#pragma once

#include <optional>
#include <string_view>

#include "plimsoll/rewrite/graph_editor.h"

namespace plimsoll::rewrite {

// The producer when it is this operator, else null.
const ir::Node* made_by(const GraphEditor& edit, ValueId value, std::string_view op);

// The one number a value holds in every element: a constant of one element, or a fill. Nothing
// otherwise.
std::optional<double> number_of(const GraphEditor& edit, ValueId value);
bool is_number(const GraphEditor& edit, ValueId value, double expected, double tolerance = 1e-4);

// value = op(other, number) in either order (the number second for sub and div).
struct WithNumber {
  ValueId other;
  double number = 0;
};
std::optional<WithNumber> with_number(const GraphEditor& edit, ValueId value, std::string_view op);

// x when value = x * x.
std::optional<ValueId> square_of(const GraphEditor& edit, ValueId value);
// x when value = mean of x over its last axis, which stays as 1.
std::optional<ValueId> last_mean_of(const GraphEditor& edit, ValueId value);

}  // namespace plimsoll::rewrite
