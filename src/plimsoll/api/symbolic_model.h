// The graph of a model for every size of some of its options.
//
// The model is loaded at three neighbouring sizes of each symbol, just below the size that was
// asked for or at half of it, and what changes between the graphs becomes polynomials
// (ir/symbolic_graph.h). A model whose nodes depend on a size, as an unrolled recurrence on its
// length, has no such graph; the error says where it parts.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/api/model_options.h"
#include "plimsoll/ir/symbolic_graph.h"

namespace plimsoll::api {

// Symbols are "batch" and "seq". A file must be given their sizes; a built-in model has defaults.
Result<ir::SymbolicGraph> symbolic_model(const ModelRequest& request,
                                         const std::vector<std::string>& symbols);

// The graph at other sizes; its operators agree with them.
Result<ir::Graph> at_sizes(const ir::SymbolicGraph& symbolic,
                           const std::vector<ir::SymbolSize>& sizes);

}  // namespace plimsoll::api
