// GPT-2 (Radford et al. 2019) as Hugging Face names it, output tied to the token table: 124,439,808
// parameters. `labels` are the next tokens, already shifted. Dropout is on embeddings and residual
// branches; the attention operator keeps no probabilities, so there is none on those.
#include <algorithm>
#include <cmath>

#include "plimsoll/model/families.h"
#include "plimsoll/model/layers.h"

namespace plimsoll::model {
namespace {

constexpr std::int64_t kGpt2Positions = 1024;
constexpr double kGpt2Deviation = 0.02;

// Weights lie as [in, out]; those that feed the residual stream start smaller, by the number of
// them.
LinearOptions into_branch() {
  return {.init = InitRule::normal(kGpt2Deviation), .input_major = true};
}
LinearOptions into_stream(const Sizes& sizes) {
  const double count = std::max<double>(1, 2 * static_cast<double>(sizes.layers));
  return {.init = InitRule::normal(kGpt2Deviation / std::sqrt(count)), .input_major = true};
}

Var gpt2_attention(Net& net, Var x, const Sizes& sizes) {
  const auto scope = net.scope("attn");
  const Var qkv = linear(net, "c_attn", x, 3 * sizes.width, into_branch());
  const Var y = attend_fused(qkv, {.heads = sizes.heads, .causal = true});
  return dropout(net, linear(net, "c_proj", y, sizes.width, into_stream(sizes)), sizes.dropout);
}

Var gpt2_feed_forward(Net& net, Var x, const Sizes& sizes) {
  const auto scope = net.scope("mlp");
  const Var h = gelu(linear(net, "c_fc", x, 4 * sizes.width, into_branch()), ops::GeluForm::kTanh);
  return dropout(net, linear(net, "c_proj", h, sizes.width, into_stream(sizes)), sizes.dropout);
}

Var transformer(Net& net, Var ids, const Sizes& sizes) {
  const auto scope = net.scope("transformer");
  const Var tokens = embedding_table(net, "wte", sizes.vocab, sizes.width, normal(kGpt2Deviation));
  const Var positions = embedding_table(net, "wpe", std::max(kGpt2Positions, sizes.seq),
                                        sizes.width, normal(kGpt2Deviation));
  const Var words = look_up(tokens, ids);
  Var x = dropout(net, net.computed(words + first_rows(positions, sizes.seq)), sizes.dropout);
  for (std::int64_t i = 0; i < sizes.layers; ++i) {
    const auto block = net.scope("h", i);
    x = x + gpt2_attention(net, layer_norm(net, "ln_1", x), sizes);
    x = x + gpt2_feed_forward(net, layer_norm(net, "ln_2", x), sizes);
  }
  return tied_head(net, layer_norm(net, "ln_f", x), tokens);
}

}  // namespace

Result<ir::Graph> build_gpt2(const std::string& name, const Sizes& sizes) {
  Net net(name, net_options(sizes));
  const Var ids = net.tokens("input_ids", {sizes.batch, sizes.seq}, sizes.vocab);
  return net.finish(transformer(net, ids, sizes));
}

}  // namespace plimsoll::model
