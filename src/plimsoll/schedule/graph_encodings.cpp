#include "plimsoll/schedule/graph_encodings.h"

#include "plimsoll/base/checked.h"
#include "plimsoll/codec/box.h"
#include "plimsoll/schedule/graph_workload.h"

namespace plimsoll::schedule {
namespace {

// Bits are set and values moved one by one: several times slower than a plain copy.
constexpr double kSparsePasses = 4;
constexpr double kHalfPasses = 2;

Encoding encoding(const codec::Codec& codec, const ir::TensorType& type, double seconds) {
  const auto count = static_cast<std::size_t>(type.shape.elements());
  const auto bytes = static_cast<std::int64_t>(codec::box_bytes(codec, count));
  return {std::string(codec.name), Bytes(round_up(bytes, kTensorAlignment.value)), seconds, seconds, codec.lossless};
}

bool makes_zeros(const ir::Node& maker, ValueId value) {
  if (maker.op == "relu" || maker.op == "add_relu" || maker.op == "dropout") return true;
  return maker.outputs.front() == value && maker.attributes.text("activation", "") == "relu";
}

}  // namespace

std::vector<Encoding> offer_encodings(const ir::Graph& graph, const ir::Node& maker, ValueId value,
                                      double bytes_per_second) {
  const ir::TensorType& type = graph.value(value).type;
  if (maker.phase != ir::Phase::kForward || type.dtype != ir::DType::kF32) return {};
  const bool half_zero = makes_zeros(maker, value);
  const codec::Codec* codec = codec::find_codec(half_zero ? "sparse" : "fp16");
  const double pass = static_cast<double>(ir::bytes_of(type).value) / bytes_per_second;
  return {encoding(*codec, type, pass * (half_zero ? kSparsePasses : kHalfPasses))};
}

}  // namespace plimsoll::schedule
