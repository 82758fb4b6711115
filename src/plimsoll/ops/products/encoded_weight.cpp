#include "plimsoll/ops/products/encoded_weight.h"

#include <algorithm>
#include <cmath>

#include "plimsoll/base/checked.h"
#include "plimsoll/codec/weights/form_work.h"
#include "plimsoll/ops/compose.h"
#include "plimsoll/ops/definition/attribute_rules.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/expect.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/movement/scatter_reduction.h"
#include "plimsoll/ops/products/dense.h"
#include "plimsoll/ops/products/linear.h"

namespace plimsoll::ops {
namespace {

std::optional<codec::WeightKind> kind_of(const std::string& dtype) {
  if (dtype == "fp32") return codec::WeightKind::kF32;
  if (dtype == "fp16") return codec::WeightKind::kF16;
  if (dtype == "bf16") return codec::WeightKind::kBF16;
  return std::nullopt;
}

std::vector<AttributeSpec> encoded_specs(std::vector<AttributeSpec> more = {}) {
  std::vector<AttributeSpec> out = {attribute::integers("dims"), attribute::text("dtype"),
                                    attribute::text("form")};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

// The weight's extents; input `input` must be bytes enough for its table.
Result<ir::Shape> encoded_shape(const Call& call, int input) {
  PLIMSOLL_RETURN_IF_ERROR(expect_dtype(call, input, ir::DType::kU8));
  PLIMSOLL_RETURN_IF_ERROR(expect_rank(call, input, 1, 1));
  for (const char* name : {"dims", "dtype", "form"})
    if (!call.attributes().has(name)) return bad_input("has no attribute \"{}\"", name);
  PLIMSOLL_TRY(const ir::Shape shape, shape_attribute(call.attributes(), "dims"));
  const auto type = encoded_type(call.attributes());
  if (!type || shape.elements() == 0)
    return bad_input("dims {} of {}: expects the extents of a weight of fp32, fp16 or bf16",
                     ir::to_string(shape), call.attributes().text("dtype"));
  const auto least = static_cast<std::int64_t>(codec::encoded_table_bytes(type->chunks()));
  if (call.shape(input)[0] < least)
    return bad_input("a weight of {} chunks has {} bytes at least, input {} has {}", type->chunks(),
                     least, input, call.shape(input)[0]);
  return shape;
}

// The weight in doubles; zeros where the bytes are none.
class DecodedWeight {
 public:
  DecodedWeight(const Evaluation& e, int input)
      : type_(*encoded_type(e.attributes)),
        bytes_(e.in(input).integers.size()),
        scratch_(codec::EncodedMatrix::kScratchBytes) {
    std::transform(e.in(input).integers.begin(), e.in(input).integers.end(), bytes_.begin(),
                   [](std::int64_t byte) { return static_cast<std::uint8_t>(byte); });
    matrix_ = codec::EncodedMatrix::view(bytes_, type_);
  }
  const codec::EncodedType& type() const { return type_; }
  std::vector<double> all() { return elements(0, type_.elements); }
  std::vector<double> elements(std::size_t first, std::size_t count) {
    std::vector<float> values(count);
    if (!matrix_ || !matrix_->decode(first, count, values.data(), scratch_.data()))
      std::fill(values.begin(), values.end(), 0.0f);
    return {values.begin(), values.end()};
  }

 private:
  codec::EncodedType type_;
  std::vector<std::uint8_t> bytes_;
  std::vector<std::byte> scratch_;
  std::optional<codec::EncodedMatrix> matrix_;
};

Result<std::vector<TensorType>> infer_decode_weight(const Call& call) {
  PLIMSOLL_TRY(const ir::Shape shape, encoded_shape(call, 0));
  return std::vector<TensorType>{{ir::DType::kF32, shape, {}}};
}
void evaluate_decode_weight(const Evaluation& e) {
  e.out().reals = DecodedWeight(e, 0).all();
}
codec::FormWork work_of(const Call& call) {
  return codec::work_of_form(call.attributes().text("form"));
}

Cost decode_weight_cost(const Call& call, std::span<const TensorType> outputs) {
  return cost_with(work_of(call).decode * element_count(outputs[0].shape), call, outputs);
}

bool encoded_is_turned(const AttributeReader& attributes) {
  return attributes.integer("trans_w") != 0;
}
std::int64_t last_extent(const ir::Shape& shape) {
  return shape[shape.rank() - 1];
}

Result<std::vector<TensorType>> infer_encoded_linear(const Call& call) {
  PLIMSOLL_TRY(const ir::Shape weight, encoded_shape(call, 1));
  PLIMSOLL_RETURN_IF_ERROR(expect_float(call, 0));
  PLIMSOLL_RETURN_IF_ERROR(expect_rank(call, 0, 1, ir::kMaxRank));
  if (weight.rank() != 2) return bad_input("a weight {} is no matrix", ir::to_string(weight));
  const bool turned = encoded_is_turned(call.attributes());
  const std::int64_t expected = weight[turned ? 1 : 0];
  const std::int64_t made = weight[turned ? 0 : 1];
  if (rounds_activations(call.attributes()) && !turned)
    return bad_input("int8_activations: expects a weight [out, in], trans_w=1");
  if (last_extent(call.shape(0)) != expected)
    return bad_input("input has {} features, weight expects {}", last_extent(call.shape(0)),
                     expected);
  if (call.has(2)) PLIMSOLL_RETURN_IF_ERROR(expect_type(call, 2, call.type(0).dtype, {made}));
  ir::Shape shape = call.shape(0);
  shape[shape.rank() - 1] = made;
  return std::vector<TensorType>{{call.type(0).dtype, shape, {}}};
}

// The weight is fixed: x and bias alone have gradients.
std::vector<Var> encoded_linear_gradient(const Backward& g) {
  const bool turned = encoded_is_turned(g.attributes);
  std::vector<Var> out(g.inputs.size());
  if (g.wants(0)) {
    ir::Attributes attributes = g.attributes.given();
    attributes.set("trans_w", std::int64_t{turned ? 0 : 1});
    attributes.set("int8_activations", std::int64_t{0});
    out[0] = g.builder.call1("encoded_linear", {g.dy(), g.in(1)}, std::move(attributes));
  }
  if (g.inputs.size() > 2 && g.in(2) && g.wants(2)) out[2] = sum_to(g.dy(), g.in(2).shape());
  return out;
}

// One row straight from the form, several after decoding each value once.
Cost encoded_linear_cost(const Call& call, std::span<const TensorType> outputs) {
  const double columns = static_cast<double>(last_extent(outputs[0].shape));
  const double inner = static_cast<double>(last_extent(call.shape(0)));
  const codec::FormWork work = work_of(call);
  const double values = inner * columns;
  if (element_count(call.shape(0)) <= inner)
    return cost_with((encoded_is_turned(call.attributes()) ? work.rows : work.columns) * values,
                     call, outputs);
  return cost_with(2 * element_count(call.shape(0)) * columns + work.decode * values, call,
                   outputs);
}

// In fp32, so that ties fall as kernels let them.
std::vector<double> rounded_to_int8(const std::vector<double>& values) {
  std::vector<float> x(values.begin(), values.end());
  const Int8Scale scale = int8_scale(x);
  std::vector<double> out(x.size());
  std::transform(x.begin(), x.end(), out.begin(), [&](float value) {
    return static_cast<double>(scale.scale) *
           static_cast<double>(std::nearbyint(value * scale.inverse));
  });
  return out;
}

void evaluate_encoded_linear(const Evaluation& e) {
  if (e.out().elements() == 0) return;
  const std::int64_t inner = last_extent(e.in(0).type.shape);
  const std::int64_t columns = last_extent(e.out().type.shape);
  const std::int64_t count = e.out().elements() / columns;
  double* y = e.out().reals.data();
  if (e.has(2)) {
    for (std::int64_t i = 0; i < count * columns; ++i) y[i] = e.in(2).reals.data()[i % columns];
  }
  std::vector<double> w = DecodedWeight(e, 1).all();
  if (encoded_is_turned(e.attributes)) w = turned(columns, inner, w.data());
  if (rounds_activations(e.attributes)) {
    const std::vector<double> x = rounded_to_int8(e.in(0).reals);
    return multiply_add(count, inner, columns, x.data(), w.data(), y);
  }
  multiply_add(count, inner, columns, e.in(0).reals.data(), w.data(), y);
}

Result<std::vector<TensorType>> infer_encoded_gather(const Call& call) {
  PLIMSOLL_TRY(const ir::Shape weight, encoded_shape(call, 0));
  PLIMSOLL_RETURN_IF_ERROR(check_indices(call.type(1)));
  if (weight.rank() != 2) return bad_input("a weight {} is no matrix", ir::to_string(weight));
  ir::Ints dims(call.shape(1).begin(), call.shape(1).end());
  dims.push_back(weight[1]);
  PLIMSOLL_TRY(const ir::Shape shape, ir::Shape::make(dims));
  return std::vector<TensorType>{{ir::DType::kF32, shape, {}}};
}

void evaluate_encoded_gather(const Evaluation& e) {
  DecodedWeight w(e, 0);
  const std::size_t columns = w.type().columns;
  for (std::int64_t i = 0; i < e.in(1).elements(); ++i) {
    const std::int64_t row = resolve(e.in(1).integers[static_cast<std::size_t>(i)],
                                     static_cast<std::int64_t>(w.type().rows()));
    if (row < 0) continue;
    const std::vector<double> values = w.elements(static_cast<std::size_t>(row) * columns, columns);
    std::copy(values.begin(), values.end(),
              e.out().reals.begin() + i * static_cast<std::int64_t>(columns));
  }
}

// What is read of the weight are the rows.
Cost encoded_gather_cost(const Call& call, std::span<const TensorType> outputs) {
  Cost out = cost_with(work_of(call).decode * element_count(outputs[0].shape), call, outputs);
  out.bytes_read = static_cast<double>(ir::bytes_of(outputs[0]).value) +
                   static_cast<double>(ir::bytes_of(call.type(1)).value);
  return out;
}

}  // namespace

std::optional<codec::EncodedType> encoded_type(const AttributeReader& attributes) {
  const auto kind = kind_of(attributes.text("dtype"));
  const ir::Ints dims = attributes.integers("dims");
  if (!kind || dims.empty()) return std::nullopt;
  std::int64_t elements = 1;
  for (const std::int64_t dim : dims) {
    const auto product = checked_multiply(elements, dim);
    if (dim <= 0 || !product) return std::nullopt;
    elements = *product;
  }
  return codec::EncodedType{
      *kind, static_cast<std::size_t>(elements),
      codec::row_elements(std::vector<std::uint64_t>(dims.begin(), dims.end()))};
}

ir::Attributes encoded_attributes(const ir::Shape& dims, ir::DType dtype, std::string_view form) {
  ir::Attributes out;
  out.set("dims", ir::Ints(dims.begin(), dims.end()));
  out.set("dtype", std::string(ir::name(dtype)));
  out.set("form", std::string(form));
  return out;
}

bool rounds_activations(const AttributeReader& attributes) {
  return attributes.integer("int8_activations") != 0;
}

Int8Scale int8_scale(std::span<const float> x) {
  float largest = 0;
  float zero = 0;  // times x, added up: NaN where one is not finite
  for (const float value : x) {
    largest = std::max(largest, std::fabs(value));
    zero += 0.0f * value;
  }
  if (zero != 0.0f) return {zero, 0};
  const float inverse = 127.0f / largest;
  if (largest == 0 || !std::isfinite(inverse)) return {};
  return {largest / 127.0f, inverse};
}

Result<std::map<ValueId, const ir::Node*>> encoded_weights(const ir::Graph& graph) {
  std::map<ValueId, const ir::Node*> out;
  for (const ir::Node& node : graph.nodes) {
    const bool linear = node.op == "encoded_linear";
    if (!linear && node.op != "decode_weight" && node.op != "encoded_gather") continue;
    const ValueId weight = node.inputs[linear ? 1 : 0];
    const auto [place, is_new] = out.emplace(weight, &node);
    for (const char* name : {"dims", "dtype", "form"}) {
      if (!is_new && *place->second->attributes.find(name) != *node.attributes.find(name))
        return bad_input("weight '{}': {} and {} read it as different things",
                         graph.value(weight).name, place->second->op, node.op);
    }
  }
  return out;
}

Var decode_weight(Var weight, const ir::Attributes& attributes) {
  return weight.builder().call1("decode_weight", {weight}, attributes);
}

std::vector<OpDefinition> encoded_weight_definitions() {
  return {{.name = "decode_weight",
           .inputs = exactly(1),
           .outputs = exactly(1),
           .attributes = encoded_specs(),
           .infer = infer_decode_weight,
           .gradient = Gradient::none(),
           .in_place = InPlace::never(),
           .cost = decode_weight_cost,
           .recompute = Recompute::kCheap,
           .layout = LayoutRule::kPlain,
           .evaluate = evaluate_decode_weight},
          {.name = "encoded_linear",
           .inputs = between(2, 3),
           .outputs = exactly(1),
           .attributes = encoded_specs(
               {attribute::integer("trans_w", 0), attribute::integer("int8_activations", 0)}),
           .infer = infer_encoded_linear,
           .gradient = Gradient(encoded_linear_gradient),
           .in_place = InPlace::never(),
           .cost = encoded_linear_cost,
           .recompute = Recompute::kExpensive,
           .layout = LayoutRule::kPlain,
           .evaluate = evaluate_encoded_linear},
          {.name = "encoded_gather",
           .inputs = exactly(2),
           .outputs = exactly(1),
           .attributes = encoded_specs(),
           .infer = infer_encoded_gather,
           .gradient = Gradient::none(),
           .in_place = InPlace::never(),
           .cost = encoded_gather_cost,
           .recompute = Recompute::kCheap,
           .layout = LayoutRule::kPlain,
           .evaluate = evaluate_encoded_gather}};
}

}  // namespace plimsoll::ops
