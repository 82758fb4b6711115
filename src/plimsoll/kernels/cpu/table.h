// The table of CPU kernels: for each operator the function that makes its kernel.
//
// A file of kernels ends with its rows. A row names an operator and a factory; operators that share
// their loops differ in the functor that the factory is instantiated with, so that no factory asks
// which operator it was called for:
//
//   {"less", make_comparison<std::less<>>},
//   {"elu_grad", make_gradient<ops::Elu>},
//
// The table is the rows of all files joined: a new file is declared here and named in table.cpp.
#pragma once

#include <span>
#include <string_view>

#include "plimsoll/kernels/cpu/site.h"

namespace plimsoll::kernels {

struct TableEntry {
  std::string_view op;
  Factory make;
  // An attribute names a dtype: made for fp32 it would be another operator (widened.h).
  bool names_dtype = false;
  // Elements of results depend on the same elements of operands of their type, and on scalars: what
  // is widened is widened piece by piece (widened.h).
  bool pointwise = false;
};

// The rows of every file.
std::span<const TableEntry> attention_kernels();
std::span<const TableEntry> batch_norm_kernels();
std::span<const TableEntry> binary_kernels();
std::span<const TableEntry> cast_kernels();
std::span<const TableEntry> choice_kernels();
std::span<const TableEntry> convolution_kernels();
std::span<const TableEntry> convolution_transpose_kernels();
std::span<const TableEntry> cross_entropy_kernels();
std::span<const TableEntry> dropout_kernels();
std::span<const TableEntry> encoded_weight_kernels();
std::span<const TableEntry> gather_kernels();
std::span<const TableEntry> group_norm_kernels();
std::span<const TableEntry> indexing_kernels();
std::span<const TableEntry> layer_norm_kernels();
std::span<const TableEntry> lrn_kernels();
std::span<const TableEntry> mask_kernels();
std::span<const TableEntry> matmul_kernels();
std::span<const TableEntry> movement_kernels();
std::span<const TableEntry> pooling_kernels();
std::span<const TableEntry> reduce_kernels();
std::span<const TableEntry> resize_kernels();
std::span<const TableEntry> softmax_kernels();
std::span<const TableEntry> unary_kernels();
std::span<const TableEntry> update_kernels();

// All of them. Of several entries of one operator the first that takes the types wins.
std::span<const TableEntry> cpu_table();

}  // namespace plimsoll::kernels
