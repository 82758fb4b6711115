#include "plimsoll/ir/symbolic_graph.h"

#include <algorithm>
#include <utility>

namespace plimsoll::ir {
namespace {

// Calls visit on every number of the graph, in the order in which they are counted; visit may
// change it.
template <typename Visit>
void for_each_number(Graph& graph, Visit visit) {
  for (Value& value : graph.values) {
    for (int axis = 0; axis < value.type.shape.rank(); ++axis) visit(value.type.shape[axis]);
  }
  for (Node& node : graph.nodes) {
    for (std::size_t a = 0; a < node.attributes.entries().size(); ++a) {
      const auto& [name, attribute] = node.attributes.entries()[a];
      if (const auto* number = std::get_if<std::int64_t>(&attribute)) {
        std::int64_t changed = *number;
        visit(changed);
        if (changed != *number) node.attributes.set(name, changed);
      } else if (const auto* numbers = std::get_if<Ints>(&attribute)) {
        Ints changed = *numbers;
        for (std::int64_t& one : changed) visit(one);
        if (changed != *numbers) node.attributes.set(name, std::move(changed));
      }
    }
  }
}

// Takes the numbers out, and leaves what must be the same at every size.
std::vector<std::int64_t> take_numbers(Graph& graph) {
  std::vector<std::int64_t> out;
  for_each_number(graph, [&](std::int64_t& number) { out.push_back(std::exchange(number, 0)); });
  return out;
}

// Where two graphs without their numbers part.
std::string first_difference(const Graph& a, const Graph& b) {
  if (a.values.size() != b.values.size())
    return fmt::format("it has {} values at one size and {} at another", a.values.size(),
                       b.values.size());
  for (std::size_t v = 0; v < a.values.size(); ++v) {
    if (a.values[v] != b.values[v])
      return fmt::format("'{}' is another value at another size", a.values[v].name);
  }
  for (std::size_t n = 0; n < std::min(a.nodes.size(), b.nodes.size()); ++n) {
    if (a.nodes[n] != b.nodes[n])
      return fmt::format("node {} of '{}' is another at another size", a.nodes[n].op,
                         a.nodes[n].layer);
  }
  return a.constants == b.constants ? "its nodes, outputs or updates differ with the size"
                                    : "it has constants whose content depends on the size";
}

// The value or node a number belongs to, for an error.
std::string owner_of(const Graph& graph, std::size_t number) {
  std::size_t count = 0;
  for (const Value& value : graph.values) {
    count += static_cast<std::size_t>(value.type.shape.rank());
    if (number < count) return value.name;
  }
  return "an attribute";
}

}  // namespace

Result<SymbolicGraph> generalize(std::vector<SymbolSize> sizes, std::vector<Graph> samples) {
  if (sizes.empty() || sizes.size() > kMaxSymbols)
    return fail(ErrorCode::kUsage, "1 to {} symbols are expected, not {}", kMaxSymbols,
                sizes.size());
  SymbolicGraph out;
  out.graph = samples.front();
  std::vector<std::vector<std::int64_t>> numbers;
  for (Graph& sample : samples) {
    numbers.push_back(take_numbers(sample));
    if (!(sample == samples.front()) || numbers.back().size() != numbers.front().size()) {
      return bad_input("{}: no one graph for all sizes: {}", out.graph.name,
                       first_difference(samples.front(), sample));
    }
  }
  std::vector<std::int64_t> line(samples.size());
  for (std::size_t n = 0; n < numbers.front().size(); ++n) {
    for (std::size_t s = 0; s < samples.size(); ++s) line[s] = numbers[s][n];
    if (std::all_of(line.begin(), line.end(),
                    [&](std::int64_t number) { return number == line.front(); }))
      continue;
    auto polynomial = Polynomial::through(sizes, line);
    if (!polynomial)
      return bad_input("{}: a number of '{}' is no polynomial of the sizes", out.graph.name,
                       owner_of(out.graph, n));
    out.varying.emplace_back(n, *std::move(polynomial));
  }
  out.sizes = std::move(sizes);
  return out;
}

Result<Graph> bind_sizes(const SymbolicGraph& symbolic, std::span<const SymbolSize> sizes) {
  PLIMSOLL_TRY(const std::vector<SymbolSize> bound, choose_sizes(symbolic.sizes, sizes));
  Graph out = symbolic.graph;
  std::size_t count = 0;
  auto next = symbolic.varying.begin();
  bool fits = true;
  for_each_number(out, [&](std::int64_t& number) {
    const std::size_t place = count++;
    if (next == symbolic.varying.end() || next->first != place) return;
    const std::optional<std::int64_t> value = next->second.at(bound);
    fits = fits && value;
    number = value.value_or(0);
    ++next;
  });
  if (!fits) return bad_input("{}: a size does not fit 64 bits", symbolic.graph.name);
  PLIMSOLL_RETURN_IF_ERROR(verify(out));
  return out;
}

}  // namespace plimsoll::ir
