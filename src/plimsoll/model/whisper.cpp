// Whisper (Radford et al. 2022) as Hugging Face names it: a convolutional front end on a mel
// spectrogram, an encoder, and a decoder that also attends to it, output tied to the token table;
// small has 241,734,912 parameters. The encoder's positions are an ordinary weight here (a
// checkpoint brings the sinusoids; freeze `*encoder.embed_positions*` to keep them).
#include <algorithm>

#include "plimsoll/model/families.h"
#include "plimsoll/model/layers.h"

namespace plimsoll::model {
namespace {

constexpr std::int64_t kMels = 80;
constexpr std::int64_t kWhisperPositions = 448;  // of the decoder
constexpr double kWhisperDeviation = 0.02;

Var whisper_attention(Net& net, std::string_view name, Var x, Var memory, const Sizes& sizes,
                      bool causal) {
  const auto scope = net.scope(name);
  const Var q = linear(net, "q_proj", x, sizes.width);
  const Var k = linear(net, "k_proj", memory, sizes.width, {.bias = false});
  const Var v = linear(net, "v_proj", memory, sizes.width);
  const Var y = attend(q, k, v, {.heads = sizes.heads, .causal = causal});
  return dropout(net, linear(net, "out_proj", y, sizes.width), sizes.dropout);
}

Var whisper_feed_forward(Net& net, Var x, const Sizes& sizes) {
  const Var h = gelu(linear(net, "fc1", layer_norm(net, "final_layer_norm", x), 4 * sizes.width));
  return dropout(net, linear(net, "fc2", h, sizes.width), sizes.dropout);
}

Var self_attention(Net& net, Var x, const Sizes& sizes, bool causal) {
  const Var h = layer_norm(net, "self_attn_layer_norm", x);
  return whisper_attention(net, "self_attn", h, h, sizes, causal);
}

Var encode(Net& net, Var features, const Sizes& sizes) {
  const auto scope = net.scope("encoder");
  Var x = gelu(conv1d(net, "conv1", features, sizes.width, {.kernel = 3, .padding = 1}));
  x = gelu(conv1d(net, "conv2", x, sizes.width, {.kernel = 3, .stride = 2, .padding = 1}));
  x = transpose(x, {0, 2, 1});
  const std::int64_t length = (sizes.frames + 1) / 2;
  const Var positions =
      embedding_table(net, "embed_positions", length, sizes.width, normal(kWhisperDeviation));
  x = dropout(net, x + net.computed(positions), sizes.dropout);
  for (std::int64_t i = 0; i < sizes.layers; ++i) {
    const auto layer = net.scope("layers", i);
    x = x + self_attention(net, x, sizes, false);
    x = x + whisper_feed_forward(net, x, sizes);
  }
  return layer_norm(net, "layer_norm", x);
}

Var decode(Net& net, Var ids, Var memory, const Sizes& sizes) {
  const auto scope = net.scope("decoder");
  const Var tokens =
      embedding_table(net, "embed_tokens", sizes.vocab, sizes.width, normal(kWhisperDeviation));
  const Var positions =
      embedding_table(net, "embed_positions", std::max(kWhisperPositions, sizes.seq), sizes.width,
                      normal(kWhisperDeviation));
  const Var words = look_up(tokens, ids);
  Var x = dropout(net, net.computed(words + first_rows(positions, sizes.seq)), sizes.dropout);
  for (std::int64_t i = 0; i < sizes.layers; ++i) {
    const auto layer = net.scope("layers", i);
    x = x + self_attention(net, x, sizes, true);
    x = x + whisper_attention(net, "encoder_attn", layer_norm(net, "encoder_attn_layer_norm", x),
                              memory, sizes, false);
    x = x + whisper_feed_forward(net, x, sizes);
  }
  return tied_head(net, layer_norm(net, "layer_norm", x), tokens);
}

}  // namespace

Result<ir::Graph> build_whisper(const std::string& name, const Sizes& sizes) {
  NetOptions options = net_options(sizes);
  options.conv_init = InitRule::normal(kWhisperDeviation);
  options.linear_init = InitRule::normal(kWhisperDeviation);
  Net net(name, options);
  const Var features = net.input("input_features", {sizes.batch, kMels, sizes.frames});
  const Var ids = net.tokens("decoder_input_ids", {sizes.batch, sizes.seq}, sizes.vocab);
  Var logits;
  {
    const auto scope = net.scope("model");
    logits = decode(net, ids, encode(net, features, sizes), sizes);
  }
  return net.finish(logits);
}

}  // namespace plimsoll::model
