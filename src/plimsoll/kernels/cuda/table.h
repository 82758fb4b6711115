// The table of CUDA kernels: for each operator the function that makes its kernel.
//
// As on the CPU (kernels/cpu/table.h): a file of kernels ends with its rows, and the table is the
// rows of all files joined. Of several entries of one operator the first that takes the types wins.
#pragma once

#include <span>
#include <string_view>

#include "plimsoll/kernels/cuda/site.h"

namespace plimsoll::kernels::cuda {

struct TableEntry {
  std::string_view op;
  Factory make;
};

// The rows of every file.
std::span<const TableEntry> activation_kernels();
std::span<const TableEntry> attention_kernels();
std::span<const TableEntry> batch_norm_kernels();
std::span<const TableEntry> binary_kernels();
std::span<const TableEntry> convolution_kernels();
std::span<const TableEntry> cross_entropy_kernels();
std::span<const TableEntry> indexing_kernels();
std::span<const TableEntry> mask_kernels();
std::span<const TableEntry> matmul_kernels();
std::span<const TableEntry> movement_kernels();
std::span<const TableEntry> neighbourhood_kernels();
std::span<const TableEntry> pooling_kernels();
std::span<const TableEntry> ranking_kernels();
std::span<const TableEntry> reduce_kernels();
std::span<const TableEntry> row_norm_kernels();
std::span<const TableEntry> softmax_kernels();
std::span<const TableEntry> update_kernels();
std::span<const TableEntry> value_kernels();

std::span<const TableEntry> cuda_table();

}  // namespace plimsoll::kernels::cuda
