#include "plimsoll/schedule/workload/graph_encodings.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "plimsoll/base/checked.h"
#include "plimsoll/base/comma_list.h"
#include "plimsoll/codec/compressed_buffer.h"
#include "plimsoll/ops/elementwise/fused_relu.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/schedule/workload/tensor_alignment.h"

namespace plimsoll::schedule {
namespace {

// Half of what ReLU makes is zero; the margin is for activations that are a little fuller.
constexpr double kReluZeros = 0.45;
constexpr double kMargin = 0.05;
constexpr double kWorthIt = 0.3;  // fewer zeros are not worth two passes

Encoding encoding(const codec::Codec& codec, const ir::TensorType& type, double zeros,
                  const CodecRates& rates, Bytes alignment) {
  const auto count = static_cast<std::size_t>(type.shape.elements());
  const auto bytes = static_cast<std::int64_t>(codec::compressed_bytes(codec, count, zeros));
  const auto plain = static_cast<double>(ir::bytes_of(type).value);
  const std::string name(codec.name);
  const CodecRate rate = rates.of(name);
  return {name, Bytes(round_up(bytes, alignment.value)),
          rates.latency_seconds + plain / rate.encode_bytes_per_second,
          rates.latency_seconds + plain / rate.decode_bytes_per_second, codec.lossless};
}

// The share of a forward result that may be counted on to be zero.
double zeros_of(const ir::Graph& graph, const ir::Node& maker, ValueId value) {
  if (maker.outputs.front() != value) return 0;
  if (maker.op == "relu" || maker.op == "add_relu") return kReluZeros;
  if (ops::has_relu(ops::attributes_of(maker))) return kReluZeros;
  if (maker.op == "clip" && ops::attributes_of(maker).real("min") == 0) return kReluZeros;
  if (maker.op != "dropout") return 0;
  const double dropped = std::max(0.0, ops::attributes_of(maker).real("ratio") - kMargin);
  const ir::Value& before = graph.value(maker.inputs.front());
  const double already = before.producer.valid()
                             ? zeros_of(graph, graph.node(before.producer), maker.inputs.front())
                             : 0;
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

std::vector<std::string> lossy_forms() {
  std::vector<std::string> out;
  for (const codec::Codec& codec : codec::codecs()) {
    if (!codec.lossless) out.emplace_back(codec.name);
  }
  return out;
}

bool is_lossy_form(std::string_view name) {
  const codec::Codec* codec = codec::find_codec(name);
  return codec != nullptr && !codec->lossless;
}

Result<std::vector<std::string>> parse_lossy_forms(std::string_view text) {
  const std::string known =
      fmt::format("a comma list of {}; fp8 is fp8-e4m3", fmt::join(lossy_forms(), ", "));
  std::vector<std::string> out;
  for (const std::string_view word : comma_list(text)) {
    const std::string name(word == "fp8" ? "fp8-e4m3" : word);
    if (!is_lossy_form(name))
      return fail(ErrorCode::kUsage, "lossy form '{}': expects {}", word, known);
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  }
  if (out.empty()) return fail(ErrorCode::kUsage, "lossy forms '{}': expects {}", text, known);
  return out;
}

std::vector<Encoding> offer_encodings(const ir::Graph& graph, ValueId value,
                                      const CodecRates& rates,
                                      const std::vector<std::string>& lossy, Bytes alignment) {
  const ir::TensorType& type = graph.value(value).type;
  if (!graph.value(value).producer.valid() || ir::bytes_of(type).value == 0) return {};
  const ir::Node& maker = graph.node(graph.value(value).producer);
  if (maker.phase != ir::Phase::kForward) return {};
  std::vector<Encoding> out;
  const auto offer = [&](const codec::Codec* codec, double zeros) {
    if (codec == nullptr) return;
    Encoding form = encoding(*codec, type, zeros, rates, alignment);
    if (form.bytes < ir::bytes_of(type)) out.push_back(std::move(form));
  };
  if (maker.op == "max_pool" && type.dtype == ir::DType::kU8) offer(index_codec(maker), 0);
  if (type.dtype != ir::DType::kF32) return out;
  if (const double zeros = zeros_of(graph, maker, value); zeros >= kWorthIt)
    offer(codec::find_codec("sparse"), zeros);
  // Statistics (the mean and deviation of a norm) are few, and every value of their row depends on
  // each.
  if (maker.outputs.front() != value) return out;
  for (const std::string& form : lossy) offer(codec::find_codec(form), 0);
  return out;
}

}  // namespace plimsoll::schedule
