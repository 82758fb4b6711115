// How scatters combine what meets at one place, and what an index names; shared by the element and
// the n-dimensional forms.
#pragma once

#include <string>

#include "plimsoll/ops/op_definition.h"

namespace plimsoll::ops {

Status check_indices(const TensorType& indices);

// The place an index names in an extent of n, or -1 when it is outside.
inline std::int64_t resolve(std::int64_t index, std::int64_t n) {
  if (index < -n || index >= n) return -1;
  return index < 0 ? index + n : index;
}

// Rows of a table that a gather_grad makes: all of them, or those that `rows` names, {first row,
// rows of the whole table}. Indices always mean the whole table.
struct TableRows {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t table = 0;

  // The row that an index names, counted from the first, or -1 when it is not one of these.
  std::int64_t place(std::int64_t index) const {
    const std::int64_t row = resolve(index, table) - first;
    return row < 0 || row >= count ? -1 : row;
  }
};
TableRows table_rows(const AttributeReader& attributes, std::int64_t extent);

enum class Reduction { kNone, kAdd, kMul, kMax, kMin };
AttributeSpec reduction_attribute();
Reduction reduction_of(const AttributeReader& attributes);
// y[at] = y[at] combined with x[from].
void combine(Array& y, std::int64_t at, const Array& x, std::int64_t from, Reduction reduction);

// The adjoints of data and updates, given the two movements of the family:
//   read(from)                     what `from` has at the indexed places
//   write(into, what, reduction)   `into` with `what` at the indexed places
// Inputs are data, indices, updates.
template <typename Read, typename Write>
std::vector<Var> scatter_gradient(const Backward& g, Read read, Write write);

}  // namespace plimsoll::ops

#include "plimsoll/ops/movement/scatter_reduction_inl.h"
