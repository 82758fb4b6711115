#include "plimsoll/schedule/graph_encodings.h"

#include <algorithm>

#include "plimsoll/base/checked.h"
#include "plimsoll/codec/box.h"
#include "plimsoll/ops/fused_relu.h"
#include "plimsoll/schedule/graph_workload.h"

namespace plimsoll::schedule {
namespace {

// Half of what ReLU makes is zero; the margin is for maps that are a little fuller.
constexpr double kReluZeros = 0.45;
constexpr double kMargin = 0.05;
constexpr double kWorthIt = 0.3;  // fewer zeros are not worth two passes

Encoding encoding(const codec::Codec& codec, const ir::TensorType& type, double zeros, const CodecRates& rates) {
  const auto count = static_cast<std::size_t>(type.shape.elements());
  const auto bytes = static_cast<std::int64_t>(codec::box_bytes(codec, count, zeros));
  const auto plain = static_cast<double>(ir::bytes_of(type).value);
  return {std::string(codec.name), Bytes(round_up(bytes, kTensorAlignment.value)), rates.latency_seconds + plain / rates.encode_bytes_per_second,
          rates.latency_seconds + plain / rates.decode_bytes_per_second, codec.lossless};
}

// The share of a forward result that may be counted on to be zero.
double zeros_of(const ir::Graph& graph, const ir::Node& maker, ValueId value) {
  if (maker.outputs.front() != value) return 0;
  if (maker.op == "relu" || maker.op == "add_relu") return kReluZeros;
  if (ops::has_relu(maker.attributes)) return kReluZeros;
  if (maker.op == "clip" && maker.attributes.real("min", -1) == 0) return kReluZeros;
  if (maker.op != "dropout") return 0;
  const double dropped = std::max(0.0, maker.attributes.real("ratio", 0.5) - kMargin);
  const ir::Value& before = graph.value(maker.inputs.front());
  const double already = before.producer.valid() ? zeros_of(graph, graph.node(before.producer), maker.inputs.front()) : 0;
  return 1 - (1 - already) * (1 - dropped);
}

// The codec for an index into this window; null when it needs its byte.
const codec::Codec* index_codec(const ir::Node& maker) {
  std::int64_t places = 1;
  for (const std::int64_t extent : maker.attributes.integers("kernel")) places *= extent;
  if (places <= 4) return codec::find_codec("crumbs");
  return places <= 16 ? codec::find_codec("nibbles") : nullptr;
}

}  // namespace

std::vector<Encoding> offer_encodings(const ir::Graph& graph, const ir::Node& maker, ValueId value,
                                      const CodecRates& rates) {
  const ir::TensorType& type = graph.value(value).type;
  if (maker.phase != ir::Phase::kForward || ir::bytes_of(type).value == 0) return {};
  if (maker.op == "max_pool" && type.dtype == ir::DType::kU8) {
    const codec::Codec* codec = index_codec(maker);
    if (codec == nullptr) return {};
    const Encoding offer = encoding(*codec, type, 0, rates);
    return offer.bytes < ir::bytes_of(type) ? std::vector{offer} : std::vector<Encoding>{};
  }
  if (type.dtype != ir::DType::kF32) return {};
  const double zeros = zeros_of(graph, maker, value);
  const Encoding offer = zeros >= kWorthIt ? encoding(*codec::find_codec("sparse"), type, zeros, rates) : encoding(*codec::find_codec("fp16"), type, 0, rates);
  return offer.bytes < ir::bytes_of(type) ? std::vector{offer} : std::vector<Encoding>{};
}

}  // namespace plimsoll::schedule
