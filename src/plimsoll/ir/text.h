// The text form of a graph: what `plimsoll graph` prints, what golden tests hold, and what `.graph`
// files contain. It reads back equal.
//
//   plimsoll graph 1 "tiny"
//   %0 input "x" fp32[2,3]
//   %1 weight "fc.weight" fp32[3,4] normal(0.0,0.02)
//   %2 activation "fc/linear" fp32[2,4] = linear(%0, %1, _) {trans_w=0} forward "fc"
//   output %2
//   end
//
// One line for a source, one for a node with the values it makes, one for an output, one for an
// update (`update %1 -> %9`); `end` shows that nothing was cut off. Ids are written out rather than
// counted, because a rewrite may order nodes differently from values, and because a diff of two
// files then shows what really changed. An absent optional input is `_`. docs/formats/graph.md has
// the grammar.
//
// A graph for every size (symbolic_graph.h) has the line `symbols batch=2` under its heading, and
// numbers may then be expressions: fp32[batch,4], {count=49*batch}. It is read at the sizes asked
// for, or at those of that line.
//
// Reading is for files nobody vouches for. The parser is a hand-written walk over the bytes with no
// recursion, one pass, and memory proportional to the text (an id of four billion costs nothing:
// ids are keys of a map until the end, when they must be exactly 0 to n-1). An error names line and
// column. A value must be defined above the line that reads it, so cycles cannot be written down.
// What comes out has passed ir::verify; whether the operators exist is for ops::verify to say.
//
// Invariant: parse_text(to_text(g)) == g for every verified g (a NaN attribute reads back as NaN,
// which equals nothing). Cost: linear in the text, some 20 MB/s.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/ir/polynomial.h"

namespace plimsoll::ir {

std::string to_text(const Graph& graph);

Result<Graph> parse_text(std::string_view text, std::span<const SymbolSize> sizes = {});

// "normal(0.0,0.02)": how a source's first content is written; "" for one that has none.
std::string to_string(const Init& init);

}  // namespace plimsoll::ir
