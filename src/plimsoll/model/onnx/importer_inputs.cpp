// The sizes of a model's inputs: those that the file leaves open are given by the user, by name, as
// a batch or a length, or by the arrays that will be read.
#include <algorithm>
#include <cctype>
#include <set>

#include <fmt/ranges.h>

#include "plimsoll/model/onnx/format/tensor_content.h"
#include "plimsoll/model/onnx/importer.h"

namespace plimsoll::model::onnx {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return out;
}

bool says_batch(std::string_view symbol) {
  const std::string name = lower(symbol);
  return name.find("batch") != std::string::npos || name == "n" || name == "b" || name == "bs";
}

bool says_sequence(std::string_view symbol) {
  const std::string name = lower(symbol);
  return name.find("past") == std::string::npos && name.find("batch") == std::string::npos &&
         (name.find("seq") != std::string::npos || name.find("length") != std::string::npos ||
          name == "s" || name == "t" || name == "time");
}

// A size that was asked for and that no input has would be ignored: another model would be
// planned than the one that was meant.
Status check_sizes(const ImportOptions& options, const GraphFile& file, const ir::Graph& graph) {
  std::string first = "there is no input";
  bool has_batch = false;
  bool has_seq = false;
  for (const ir::Value& value : graph.values) {
    if (value.kind != ir::ValueKind::kInput) continue;
    const ir::Shape& shape = value.type.shape;
    if (first.starts_with("there"))
      first = fmt::format("input '{}' is {}", value.name, ir::to_string(value.type));
    has_batch = has_batch || (shape.rank() > 0 && shape[0] == options.batch);
    has_seq = has_seq || std::find(shape.begin(), shape.end(), options.seq) != shape.end();
  }
  std::set<std::string> open;
  for (const ValueFile& value : file.inputs) {
    for (std::size_t axis = 0; axis < value.dims.size(); ++axis) {
      const DimFile& dim = value.dims[axis];
      if (dim.has_value && dim.value >= 0) continue;
      open.insert(fmt::format("{}:{}", value.name, axis));
      if (!dim.symbol.empty()) open.emplace(dim.symbol);
      has_batch = has_batch || says_batch(dim.symbol);
      has_seq = has_seq || says_sequence(dim.symbol);
    }
  }
  constexpr const char* kWhy =
      "sizes that the exporter did not leave open (dynamic_axes, dynamic_shapes) are fixed";
  if (options.batch && !has_batch)
    return fail(ErrorCode::kUsage, "no input takes a batch of {}: {}; {}", *options.batch, first,
                kWhy);
  if (options.seq && !has_seq)
    return fail(ErrorCode::kUsage, "no input takes a length of {}: {}; {}", *options.seq, first,
                kWhy);
  for (const auto& [name, size] : options.dims) {
    if (open.contains(name)) continue;
    return fail(ErrorCode::kUsage, "--dim {}={}: no dimension of an input is called so; {}", name,
                size,
                open.empty() ? fmt::format("{}; {}", first, kWhy)
                             : fmt::format("there are {}", fmt::join(open, ", ")));
  }
  return {};
}

}  // namespace

Result<std::int64_t> Importer::bind(const ValueFile& value, std::size_t axis,
                                    const ir::Shape* given) {
  const DimFile& dim = value.dims[axis];
  // Some exporters write -1 for what is open.
  if (dim.has_value && dim.value < -1)
    return bad_input("input '{}': dimension {} is {}", value.name, axis, dim.value);
  if (given != nullptr) {
    const std::int64_t size = (*given)[static_cast<int>(axis)];
    if (options_.shapes_of_datasets && axis == 0) {
      const std::int64_t batch =
          dim.has_value && dim.value >= 0 ? dim.value : options_.batch.value_or(size);
      // Examples of a data set: the model takes some of them at once.
      if (batch > 0 && batch < size) return batch;
    }
    if (dim.has_value && dim.value >= 0 && dim.value != size) {
      return bad_input("input '{}': dimension {} is {}, given as {}", value.name, axis, dim.value,
                       size);
    }
    if (!dim.symbol.empty()) {
      const auto [place, fresh] = bound_.emplace(std::string(dim.symbol), size);
      if (!fresh && place->second != size) {
        return bad_input("input '{}': dimension '{}' is {}, given as {}", value.name, dim.symbol,
                         place->second, size);
      }
    }
    return size;
  }
  if (const auto size = size_of(value, axis)) return *size;
  return without_size(value);
}

std::optional<std::int64_t> Importer::size_of(const ValueFile& value, std::size_t axis) const {
  const DimFile& dim = value.dims[axis];
  if (dim.has_value && dim.value >= 0) return dim.value;
  if (!dim.symbol.empty()) {
    if (const auto place = bound_.find(dim.symbol); place != bound_.end()) return place->second;
    if (options_.batch && says_batch(dim.symbol)) return options_.batch;
    if (options_.seq && says_sequence(dim.symbol)) return options_.seq;
  }
  if (const auto place = bound_.find(fmt::format("{}:{}", value.name, axis)); place != bound_.end())
    return place->second;
  return axis == 0 ? options_.batch : std::nullopt;
}

// All that an input leaves open, with the options that say it.
tl::unexpected<Error> Importer::without_size(const ValueFile& value) const {
  std::vector<std::string> names, options;
  for (std::size_t axis = 0; axis < value.dims.size(); ++axis) {
    if (size_of(value, axis)) continue;
    const std::string_view symbol = value.dims[axis].symbol;
    names.push_back(symbol.empty() ? std::to_string(axis) : fmt::format("'{}'", symbol));
    options.push_back(says_batch(symbol)      ? "--batch N"
                      : says_sequence(symbol) ? "--seq N"
                      : symbol.empty()        ? fmt::format("--dim {}:{}=SIZE", value.name, axis)
                                              : fmt::format("--dim {}=SIZE", symbol));
  }
  return bad_input("input '{}': dimension{} {} {} no size; give {} with {}", value.name,
                   names.size() == 1 ? "" : "s", fmt::join(names, " and "),
                   names.size() == 1 ? "has" : "have", names.size() == 1 ? "one" : "them",
                   fmt::join(options, " "));
}

Result<ir::TensorType> Importer::input_type(const ValueFile& value) {
  if (!value.is_tensor)
    return bad_input("input '{}' is no tensor: sequences and maps are not supported", value.name);
  auto dtype = dtype_of(value.element);
  if (!dtype) return forward(dtype, fmt::format("input '{}'", value.name));
  const auto given = options_.shapes.find(std::string(value.name));
  const ir::Shape* shape = given == options_.shapes.end() ? nullptr : &given->second;
  if (!value.has_shape) {
    if (shape == nullptr) return bad_input("input '{}' has no shape in the file", value.name);
    return ir::TensorType{*dtype, *shape, {}};
  }
  if (shape != nullptr && shape->rank() != static_cast<int>(value.dims.size())) {
    return bad_input("input '{}': has {} dimensions, given with {}", value.name, value.dims.size(),
                     shape->rank());
  }
  ir::Ints dims;
  for (std::size_t axis = 0; axis < value.dims.size(); ++axis) {
    PLIMSOLL_TRY(const std::int64_t size, bind(value, axis, shape));
    dims.push_back(size);
  }
  auto made = ir::Shape::make(dims);
  if (!made) return forward(made, fmt::format("input '{}'", value.name));
  const ir::TensorType type{*dtype, *made, {}};
  if (!ir::checked_bytes(type))
    return bad_input("input '{}': {} is too large", value.name, ir::to_string(type));
  return type;
}

Status Importer::add_inputs(Scope& scope) {
  for (const ValueFile& value : file_.graph.inputs) {
    if (scope.names.contains(value.name)) continue;  // an initialiser is its default
    if (value.name.empty()) return bad_input("an input has no name");
    const std::string name(value.name);
    if (const auto given = options_.values.find(name); given != options_.values.end()) {
      scope.names.emplace(value.name,
                          add_known(name, std::make_shared<const ops::Array>(given->second)));
      continue;
    }
    PLIMSOLL_TRY(const ir::TensorType type, input_type(value));
    if (!used_names_.insert(name).second) return bad_input("two inputs are called '{}'", name);
    scope.names.emplace(value.name,
                        add({.name = name, .type = type, .var = builder_.input(name, type)}));
  }
  return check_sizes(options_, file_.graph, builder_.graph());
}

}  // namespace plimsoll::model::onnx
