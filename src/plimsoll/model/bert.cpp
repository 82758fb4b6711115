// BERT-base with the masked-language head (Devlin et al. 2018) as Hugging Face names it, the head
// tied to the token table: 109,514,298 parameters. Labels of -100 do not count. Every token sees
// every other.
#include <algorithm>

#include "plimsoll/model/families.h"
#include "plimsoll/model/layers.h"

namespace plimsoll::model {
namespace {

constexpr std::int64_t kBertPositions = 512;
constexpr std::int64_t kSegments = 2;
constexpr double kBertDeviation = 0.02;
constexpr NormOptions kNorm{.epsilon = 1e-12};

Var embeddings(Net& net, Var ids, Var segments, Var& words, const Sizes& sizes) {
  const auto scope = net.scope("bert.embeddings");
  words = embedding_table(net, "word_embeddings", sizes.vocab, sizes.width, normal(kBertDeviation));
  const Var positions =
      embedding_table(net, "position_embeddings", std::max(kBertPositions, sizes.seq), sizes.width,
                      normal(kBertDeviation));
  const Var kinds =
      embedding_table(net, "token_type_embeddings", kSegments, sizes.width, normal(kBertDeviation));
  Var sum = look_up(words, ids);
  sum = sum + look_up(kinds, segments);
  sum = sum + first_rows(positions, sizes.seq);
  return dropout(net, net.computed(layer_norm(net, "LayerNorm", sum, kNorm)), sizes.dropout);
}

// What comes back from a branch: projected, dropped, added, normalised.
Var join(Net& net, Var branch, Var x, const Sizes& sizes) {
  const auto scope = net.scope("output");
  const Var h = dropout(net, linear(net, "dense", branch, sizes.width), sizes.dropout);
  return layer_norm(net, "LayerNorm", h + x, kNorm);
}

Var bert_attention(Net& net, Var x, const Sizes& sizes) {
  const auto scope = net.scope("attention");
  Var y;
  {
    const auto self = net.scope("self");
    const Var q = linear(net, "query", x, sizes.width);
    const Var k = linear(net, "key", x, sizes.width);
    const Var v = linear(net, "value", x, sizes.width);
    y = attend(q, k, v, {.heads = sizes.heads});
  }
  return join(net, y, x, sizes);
}

Var masked_language_head(Net& net, Var x, Var words, const Sizes& sizes) {
  const auto scope = net.scope("cls.predictions");
  const Var bias = net.weight("bias", {sizes.vocab}, constant(0));
  const auto transform = net.scope("transform");
  const Var h = layer_norm(net, "LayerNorm", gelu(linear(net, "dense", x, sizes.width)), kNorm);
  return tied_head(net, h, words, bias);
}

}  // namespace

Result<ir::Graph> build_bert(const std::string& name, const Sizes& sizes) {
  NetOptions options = net_options(sizes);
  options.linear_init = InitRule::normal(kBertDeviation);
  Net net(name, options);
  const Var ids = net.tokens("input_ids", {sizes.batch, sizes.seq}, sizes.vocab);
  const Var segments = net.tokens("token_type_ids", {sizes.batch, sizes.seq}, 2);
  Var words;
  Var x = embeddings(net, ids, segments, words, sizes);
  for (std::int64_t i = 0; i < sizes.layers; ++i) {
    const auto scope = net.scope("bert.encoder.layer", i);
    x = bert_attention(net, x, sizes);
    const Var h = gelu(linear(net, "intermediate.dense", x, 4 * sizes.width));
    x = join(net, h, x, sizes);
  }
  return net.finish(masked_language_head(net, x, words, sizes));
}

}  // namespace plimsoll::model
