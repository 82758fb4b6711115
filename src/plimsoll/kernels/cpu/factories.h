// Every kernel factory, by the file that holds it; table.cpp puts them together.
#pragma once

#include "plimsoll/kernels/cpu/site.h"

namespace plimsoll::kernels {

// matmul.cpp
std::unique_ptr<Kernel> make_matmul(const Site& site);
std::unique_ptr<Kernel> make_linear(const Site& site);
std::unique_ptr<Kernel> make_linear_grad_weight(const Site& site);
// unary.cpp
std::unique_ptr<Kernel> make_unary(const Site& site);
std::unique_ptr<Kernel> make_gradient_unary(const Site& site);
// cast.cpp
std::unique_ptr<Kernel> make_cast(const Site& site);
// activations.cpp
std::unique_ptr<Kernel> make_activation(const Site& site);
std::unique_ptr<Kernel> make_activation_grad(const Site& site);
// choices.cpp
std::unique_ptr<Kernel> make_comparison(const Site& site);
std::unique_ptr<Kernel> make_logic(const Site& site);
std::unique_ptr<Kernel> make_test(const Site& site);
std::unique_ptr<Kernel> make_where(const Site& site);
// indexing.cpp
std::unique_ptr<Kernel> make_indexed_read(const Site& site);
std::unique_ptr<Kernel> make_indexed_write(const Site& site);
std::unique_ptr<Kernel> make_running_sum(const Site& site);
// binary.cpp
std::unique_ptr<Kernel> make_binary(const Site& site);
// batch_norm.cpp
std::unique_ptr<Kernel> make_batch_norm(const Site& site);
std::unique_ptr<Kernel> make_batch_norm_grad(const Site& site);
std::unique_ptr<Kernel> make_batch_norm_inference(const Site& site);
std::unique_ptr<Kernel> make_batch_norm_update(const Site& site);
// layer_norm.cpp
std::unique_ptr<Kernel> make_layer_norm(const Site& site);
std::unique_ptr<Kernel> make_layer_norm_grad(const Site& site);
std::unique_ptr<Kernel> make_rms_norm(const Site& site);
std::unique_ptr<Kernel> make_rms_norm_grad(const Site& site);
// group_norm.cpp
std::unique_ptr<Kernel> make_group_norm(const Site& site);
std::unique_ptr<Kernel> make_group_norm_grad(const Site& site);
// lrn.cpp
std::unique_ptr<Kernel> make_lrn(const Site& site);
std::unique_ptr<Kernel> make_lrn_grad(const Site& site);
// softmax.cpp
std::unique_ptr<Kernel> make_softmax(const Site& site);
std::unique_ptr<Kernel> make_softmax_grad(const Site& site);
// cross_entropy.cpp
std::unique_ptr<Kernel> make_cross_entropy(const Site& site);
std::unique_ptr<Kernel> make_cross_entropy_grad(const Site& site);
// gather.cpp
std::unique_ptr<Kernel> make_gather(const Site& site);
std::unique_ptr<Kernel> make_gather_grad(const Site& site);
// pooling.cpp
std::unique_ptr<Kernel> make_max_pool(const Site& site);
std::unique_ptr<Kernel> make_max_pool_grad(const Site& site);
std::unique_ptr<Kernel> make_avg_pool(const Site& site);
std::unique_ptr<Kernel> make_avg_pool_grad(const Site& site);
// reduce.cpp
std::unique_ptr<Kernel> make_reduce(const Site& site);
std::unique_ptr<Kernel> make_sum_squares(const Site& site);
// movement.cpp
std::unique_ptr<Kernel> make_reorder(const Site& site);
std::unique_ptr<Kernel> make_transpose(const Site& site);
std::unique_ptr<Kernel> make_expand(const Site& site);
std::unique_ptr<Kernel> make_copy(const Site& site);
std::unique_ptr<Kernel> make_slice(const Site& site);
std::unique_ptr<Kernel> make_slice_assign(const Site& site);
std::unique_ptr<Kernel> make_pad(const Site& site);
std::unique_ptr<Kernel> make_concat(const Site& site);
std::unique_ptr<Kernel> make_split(const Site& site);
std::unique_ptr<Kernel> make_fill(const Site& site);
std::unique_ptr<Kernel> make_tile(const Site& site);
std::unique_ptr<Kernel> make_depth_to_space(const Site& site);
// resize.cpp
std::unique_ptr<Kernel> make_resize(const Site& site);
std::unique_ptr<Kernel> make_resize_grad(const Site& site);
// attention.cpp
std::unique_ptr<Kernel> make_attention(const Site& site);
std::unique_ptr<Kernel> make_attention_grad(const Site& site);
// update.cpp
std::unique_ptr<Kernel> make_sgd(const Site& site);
std::unique_ptr<Kernel> make_momentum(const Site& site);
std::unique_ptr<Kernel> make_adam(const Site& site);
std::unique_ptr<Kernel> make_increment(const Site& site);
// mask.cpp
std::unique_ptr<Kernel> make_mask(const Site& site);
std::unique_ptr<Kernel> make_masked(const Site& site);
// dropout.cpp
std::unique_ptr<Kernel> make_dropout(const Site& site);

}  // namespace plimsoll::kernels
