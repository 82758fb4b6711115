#include "plimsoll/model/onnx/convert/operator_table.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>

#include "plimsoll/model/onnx/convert/attribute_table.h"

namespace plimsoll::model::onnx {
namespace {

auto key(const Operator& op) {
  return std::tuple(op.domain, op.name);
}

std::vector<Operator> all_operators() {
  std::vector<Operator> out;
  for (const auto family : {elementwise_operators,      making_operators,
                            shaping_operators,          indexing_operators,
                            reduction_operators,        product_operators,
                            convolution_operators,      pooling_operators,
                            normalization_operators,    loss_operators,
                            recurrent_operators,        resize_operators,
                            quantization_operators,     control_operators,
                            sequence_operators,         attention_operators,
                            linear_attention_operators, sampling_operators,
                            signal_operators,           elimination_operators,
                            contrib_operators,          contrib_attention_operators,
                            contrib_quantized_operators}) {
    auto rows = family();
    std::move(rows.begin(), rows.end(), std::back_inserter(out));
  }
  std::sort(out.begin(), out.end(),
            [](const Operator& a, const Operator& b) { return key(a) < key(b); });
  const auto twice =
      std::adjacent_find(out.begin(), out.end(),
                         [](const Operator& a, const Operator& b) { return key(a) == key(b); });
  PLIMSOLL_CHECK(twice == out.end(), "ONNX operator '{}' has two rows", twice->name);
  return out;
}

}  // namespace

std::span<const Operator> operator_table() {
  static const std::vector<Operator> kTable = all_operators();
  return kTable;
}

const Operator* find_operator(std::string_view domain, std::string_view name) {
  // Some of ONNX's operators were com.microsoft's before.
  constexpr std::array<std::string_view, 5> kAdopted{"DequantizeLinear", "GatherND", "GridSample",
                                                     "QuantizeLinear", "Trilu"};
  const bool adopted =
      domain == "com.microsoft" && std::ranges::find(kAdopted, name) != kAdopted.end();
  if (domain == "ai.onnx" || adopted) domain = "";
  const auto table = operator_table();
  const auto place =
      std::lower_bound(table.begin(), table.end(), std::tuple(domain, name),
                       [](const Operator& op, const auto& wanted) { return key(op) < wanted; });
  return place != table.end() && key(*place) == std::tuple(domain, name) ? &*place : nullptr;
}

OperatorSet operator_set() {
  const auto convert = [](Importer& importer, const NodeFile& node, Scope& scope,
                          const Operator& op, std::int64_t version, std::vector<TensorId> inputs) {
    return OperatorCall(importer, node, scope, op, version, std::move(inputs)).run();
  };
  return {find_operator, check_attributes, convert};
}

}  // namespace plimsoll::model::onnx
