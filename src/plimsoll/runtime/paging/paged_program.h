// A graph as who pages sees it: tensors, and launches that use them.
//
// A tensor is a value that owns memory, by the value's number; results that take the place of an
// input (update_owners.h) have none. The scratch of a kernel is a tensor of its launch, behind the
// values. Sources and outputs last over steps; everything else dies behind its last reader, or
// where it was made if it has none.
#pragma once

#include <functional>
#include <vector>

#include "plimsoll/ir/graph.h"
#include "plimsoll/runtime/paging/pager.h"

namespace plimsoll::runtime {

struct PagedProgram {
  struct Tensor {
    Bytes bytes;
    Lifetime lifetime = Lifetime::kTransient;
  };
  struct Use {
    std::size_t tensor = 0;
    BlockAccess access = BlockAccess::kRead;
  };
  struct Launch {
    std::vector<Use> uses;          // each tensor once
    std::vector<std::size_t> dies;  // behind it
    double seconds = 0;
  };
  std::vector<Tensor> tensors;
  std::vector<Launch> launches;  // by node

  double seconds() const;
};

// `scratch` of every node's kernel; `seconds` stay 0.
PagedProgram paged_program(const ir::Graph& graph, const std::function<Bytes(NodeId)>& scratch);

}  // namespace plimsoll::runtime
