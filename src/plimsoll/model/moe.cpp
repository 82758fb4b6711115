// A mixture of experts as the Switch Transformer has it (Fedus et al. 2021): GPT-2's blocks, but
// each token goes through one of many feed-forward networks, the one that a router likes best, and
// what comes out is scaled by how much it is liked.
//
//   tokens [T, width]                            router: softmax over experts, the largest wins
//     │ each to the next free row of its expert  gather_grad: a scatter into zeros
//   rows [rows, experts, width]                  expert e reads rows[:, e]
//     │ each token from its row                  gather
//   tokens [T, width]
//
// An expert has rows for 5/4 of an equal share of the tokens, as published; a token that finds its
// expert full passes by on the residual stream, since a row outside reads as zero and is written
// nowhere. Experts are separate weights, named as Hugging Face names them
// (experts.expert_7.wi.weight), so that each can be stored in a form of its own. Every block has
// them, and the loss that balances experts is not part of it.
#include <algorithm>

#include <fmt/format.h>

#include "plimsoll/model/families.h"
#include "plimsoll/model/layers.h"

namespace plimsoll::model {
namespace {

constexpr std::int64_t kMoePositions = 1024;
constexpr double kMoeDeviation = 0.02;
// Rows are counted in fp32.
constexpr std::int64_t kMostExactly = 1 << 24;

LinearOptions plain_weights() {
  return {.bias = false, .init = InitRule::normal(kMoeDeviation)};
}

Var moe_attention(Net& net, Var x, const Sizes& sizes) {
  const auto scope = net.scope("attn");
  const LinearOptions options{.init = InitRule::normal(kMoeDeviation)};
  const Var qkv = linear(net, "c_attn", x, 3 * sizes.width, options);
  const Var y = attend_fused(qkv, {.heads = sizes.heads, .causal = true});
  return linear(net, "c_proj", y, sizes.width, options);
}

Var expert(Net& net, std::int64_t index, Var x, const Sizes& sizes) {
  const auto scope = net.scope(fmt::format("expert_{}", index));
  return linear(net, "wo", relu(linear(net, "wi", x, 4 * sizes.width, plain_weights())),
                sizes.width, plain_weights());
}

// Of all sequences: 5/4 of an expert's share of one, rounded up, for each.
std::int64_t rows_of_expert(const Sizes& sizes) {
  return sizes.batch * ((5 * sizes.seq + 4 * sizes.experts - 1) / (4 * sizes.experts));
}

// x[batch, seq, width] through one expert for each token.
Var switch_layer(Net& net, Var x, const Sizes& sizes) {
  const auto scope = net.scope("mlp");
  const std::int64_t tokens = sizes.batch * sizes.seq;
  const std::int64_t experts = sizes.experts;
  const std::int64_t rows = rows_of_expert(sizes);
  const Var flat = reshape(x, {tokens, sizes.width});
  const Var liking = softmax(linear(net, "router.classifier", flat, experts, plain_weights()));
  const Var chosen = argmax(liking, 1);
  const Var gate = reduce_max(liking, {1}, true);
  // A token's row is the number of tokens before it that chose the same expert.
  const Var before = ops::cumsum(one_hot(chosen, {.depth = experts}), 0, true);
  const Var mine = one_hot(chosen, {.depth = experts, .on = static_cast<double>(experts)});
  const Var place = cast(reduce_sum(before * mine, {1}), ir::DType::kI64) + chosen;
  const Var sent = reshape(gather_grad(flat, place, 0, {rows * experts, sizes.width}),
                           {rows, experts, sizes.width});
  std::vector<Var> made;
  {
    const auto all = net.scope("experts");
    for (std::int64_t e = 0; e < experts; ++e)
      made.push_back(expert(net, e, slice(sent, 1, e, e + 1), sizes));
  }
  const Var back = reshape(concat(made, 1), {rows * experts, sizes.width});
  return reshape(gather(back, place) * gate, {sizes.batch, sizes.seq, sizes.width});
}

}  // namespace

Result<ir::Graph> build_moe(const std::string& name, const Sizes& sizes) {
  if (sizes.batch * sizes.seq > kMostExactly / sizes.experts)
    return fail(ErrorCode::kUsage, "{}: {} x {} tokens are too many for {} experts, at most {}",
                name, sizes.batch, sizes.seq, sizes.experts, kMostExactly / sizes.experts);
  Net net(name, net_options(sizes));
  const Var ids = net.tokens("input_ids", {sizes.batch, sizes.seq}, sizes.vocab);
  const Var tokens = embedding_table(net, "wte", sizes.vocab, sizes.width, normal(kMoeDeviation));
  const Var positions = embedding_table(net, "wpe", std::max(kMoePositions, sizes.seq), sizes.width,
                                        normal(kMoeDeviation));
  const Var sum = look_up(tokens, ids) + first_rows(positions, sizes.seq);
  Var x = dropout(net, net.computed(sum), sizes.dropout);
  for (std::int64_t i = 0; i < sizes.layers; ++i) {
    const auto block = net.scope("h", i);
    x = x + dropout(net, moe_attention(net, layer_norm(net, "ln_1", x), sizes), sizes.dropout);
    x = x + dropout(net, switch_layer(net, layer_norm(net, "ln_2", x), sizes), sizes.dropout);
  }
  return net.finish(tied_head(net, layer_norm(net, "ln_f", x), tokens));
}

}  // namespace plimsoll::model
