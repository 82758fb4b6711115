// Which operators lie channels last, by price: a minimum cut.
//
// Every operator that can work either way gets one of two sides. What it takes there is known; a
// tensor that is read on the other side than it was made on is converted once, which takes what a
// `reorder` of its bytes does. The cheapest sum of both is a minimum cut of a network of operators,
// and a maximum flow finds it exactly:
//
//   channels last ══▶ conv ──3──▶ relu ──3──▶ resize ──12──▶ reshape ══▶ row-major
//                               cut here: convert 3 ms behind the convolution, not 12 in the end
//
//   - an operator pays its seconds by the side that it is on: arcs from and to the two ends;
//   - of a tensor with several readers the conversion is paid once: a node of its own stands
//     between it and them, with arcs to the readers that nobody cuts;
//   - a transpose that takes channels to the end or back is no work where its other side lies
//     channels last, so its price is on that side alone;
//   - a convolution of few input channels may keep its image row-major, or not: the cheaper way of
//     the two is its price on the side of channels last.
//
// What is not known is left to the rule (layouts.h). A convolution, or an operator whose kernels
// differ between the layouts (pooling, batch norm, joins), can be moved only where both of its
// forms were measured; element-by-element ones take the same either way unless both were. Of equal
// cuts the one nearest to the rule is taken.
//
// The cut sees one weight at a time and no bytes alive; whoever asks compares the two whole graphs
// and keeps the rule's where it takes no longer (api/fit_to_backend.h).
//
// Cost: Dinic's algorithm on a network with a node for each operator and tensor. Its worst case is
// not n log n, so its work is counted: beyond kMostVisits visits for each arc there is no answer,
// and the rule stands.
#pragma once

#include <optional>
#include <vector>

#include "plimsoll/rewrite/layout_forms.h"

namespace plimsoll::rewrite {

// The cheapest choice for every node of the graph, given that of the rule; nothing where finding it
// takes too long.
std::optional<std::vector<LayoutChoice>> choose_by_price(const ir::Graph& graph,
                                                         const LayoutRoles& roles,
                                                         const LayoutForms& forms,
                                                         const LayoutOptions& options,
                                                         const std::vector<LayoutChoice>& rule);

}  // namespace plimsoll::rewrite
