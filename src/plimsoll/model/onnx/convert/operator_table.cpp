#include "plimsoll/model/onnx/convert/operator_table.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>

#include "plimsoll/ops/registry.h"

namespace plimsoll::model::onnx {
namespace {

auto key(const Operator& op) {
  return std::tuple(op.domain, std::string_view(op.name));
}

// Where ONNX's name is not ours with every word capitalised.
struct Names {
  std::string_view ours;
  std::string_view onnx;
};
constexpr auto kOtherNames = std::to_array<Names>({
    {"bit_and", "BitwiseAnd"},
    {"bit_not", "BitwiseNot"},
    {"bit_or", "BitwiseOr"},
    {"bit_xor", "BitwiseXor"},
    {"gather_nd", "GatherND"},
    {"greater_equal", "GreaterOrEqual"},
    {"is_nan", "IsNaN"},
    {"less_equal", "LessOrEqual"},
    {"logical_and", "And"},
    {"logical_not", "Not"},
    {"logical_or", "Or"},
    {"logical_xor", "Xor"},
    {"maximum", "Max"},
    {"minimum", "Min"},
    {"scatter_nd", "ScatterND"},
});

// What ONNX's operator of the same name does not have.
bool is_ours_alone(std::string_view op, std::string_view attribute) {
  return op == "scatter_nd" && attribute == "batch_dims";
}

// An absent attribute is ONNX's default, a float with the value of ours.
Status hand_on(OperatorCall& call) {
  const ops::OpDefinition& definition = *ops::find_definition(call.target());
  ir::Attributes attributes;
  for (const ops::AttributeSpec& spec : definition.attributes) {
    const ir::Attribute& otherwise = *spec.otherwise;
    if (spec.type == ops::AttributeType::kReal) {
      const auto value = static_cast<float>(std::get<double>(otherwise));
      attributes.set(spec.name, call.real(spec.name, static_cast<double>(value)));
    } else if (spec.type == ops::AttributeType::kText) {
      attributes.set(spec.name, call.text(spec.name, std::get<std::string>(otherwise)));
    } else {
      attributes.set(spec.name, call.integer(spec.name, std::get<std::int64_t>(otherwise)));
    }
  }
  std::vector<Var> inputs;
  for (int i = 0; i < definition.inputs.most; ++i) inputs.push_back(call.in(i));
  return call.done(call.builder().call1(call.target(), std::move(inputs), std::move(attributes)));
}

std::vector<Operator> all_operators() {
  std::vector<Operator> out;
  for (const auto family : {elementwise_operators,
                            making_operators,
                            shaping_operators,
                            indexing_operators,
                            reduction_operators,
                            product_operators,
                            convolution_operators,
                            pooling_operators,
                            normalization_operators,
                            loss_operators,
                            recurrent_operators,
                            resize_operators,
                            quantization_operators,
                            control_operators,
                            sequence_operators,
                            attention_operators,
                            linear_attention_operators,
                            sampling_operators,
                            signal_operators,
                            elimination_operators,
                            contrib_operators,
                            contrib_attention_operators,
                            contrib_quantized_operators,
                            random_operators}) {
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

std::string onnx_name(std::string_view ours) {
  const auto other = std::ranges::find(kOtherNames, ours, &Names::ours);
  if (other != kOtherNames.end()) return std::string(other->onnx);
  std::string out;
  bool first = true;
  for (const char c : ours) {
    if (c != '_') out += first ? static_cast<char>(c - 'a' + 'A') : c;
    first = c == '_';
  }
  return out;
}

Operator same(std::string_view ours, Convert convert, std::string_view more) {
  const ops::OpDefinition* definition = ops::find_definition(ours);
  PLIMSOLL_CHECK(definition != nullptr, "no operator '{}'", ours);
  std::string attributes(more);
  for (const ops::AttributeSpec& spec : definition->attributes) {
    if (is_ours_alone(ours, spec.name)) continue;
    attributes += fmt::format("{}{}", attributes.empty() ? "" : " ", spec.name);
  }
  return {.name = onnx_name(ours),
          .convert = convert,
          .attributes = std::move(attributes),
          .target = definition->name,
          .same = true};
}

Operator same(std::string_view ours) {
  return same(ours, hand_on);
}

std::vector<Operator> in_domain(std::string_view domain, std::vector<Operator> rows) {
  for (Operator& row : rows) row.domain = domain;
  return rows;
}

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

const Operator* find_same(std::string_view ours) {
  const auto table = operator_table();
  const auto place =
      std::ranges::find_if(table, [&](const Operator& op) { return op.same && op.target == ours; });
  return place != table.end() ? &*place : nullptr;
}

bool Operator::has(std::string_view attribute) const {
  return fmt::format(" {} ", attributes).find(fmt::format(" {} ", attribute)) != std::string::npos;
}

Status check_attributes(const Operator& op, const NodeFile& node) {
  for (const AttributeFile& attribute : node.attributes) {
    // Operator sets before 6 say with it which inputs may be overwritten.
    if (attribute.name == "consumed_inputs" || op.has(attribute.name)) continue;
    if (op.attributes.empty())
      return bad_input("attribute '{}' is not known; the operator has none", attribute.name);
    return bad_input("attribute '{}' is not known; known are: {}", attribute.name, op.attributes);
  }
  return {};
}

OperatorSet operator_set() {
  const auto convert = [](Importer& importer, const NodeFile& node, Scope& scope,
                          const Operator& op, std::int64_t version, std::vector<TensorId> inputs) {
    return OperatorCall(importer, node, scope, op, version, std::move(inputs)).run();
  };
  return {find_operator, check_attributes, convert};
}

}  // namespace plimsoll::model::onnx
