#include "plimsoll/model/onnx/buffers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/model/onnx/format/tensor_content.h"

namespace plimsoll::model::onnx {
namespace {

constexpr std::int64_t kMostTable = 1 << 20;
constexpr std::int64_t kLeastTable = 8;
constexpr std::int64_t kSample = 256;

constexpr std::array<std::string_view, 14> kBufferNames = {"inv_freq",
                                                           "original_inv_freq",
                                                           "position_ids",
                                                           "running_mean",
                                                           "running_var",
                                                           "num_batches_tracked",
                                                           "masked_bias",
                                                           "attn_mask",
                                                           "causal_mask",
                                                           "relative_position_index",
                                                           "relative_coords_table",
                                                           "cos_cached",
                                                           "sin_cached",
                                                           "freqs_cis"};

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool named_like_a_buffer(std::string_view name) {
  const std::size_t last = name.find_last_of("./");
  const std::string_view part = last == std::string_view::npos ? name : name.substr(last + 1);
  return std::find(kBufferNames.begin(), kBufferNames.end(), part) != kBufferNames.end();
}

// Exporters number what had no name in the model; state_dict names have a word at the end.
bool has_made_up_name(std::string_view name) {
  return name.find("::") != std::string_view::npos || name.starts_with("val_") ||
         name.starts_with("_val_") || name.find("onstant") != std::string_view::npos ||
         name.find("lifted_tensor") != std::string_view::npos;
}

bool is_setting(std::string_view op, std::size_t input) {
  if (op == "Pow" || op == "Dropout" || op == "Upsample") return input == 1;
  if (op == "Clip" || op == "Resize") return input >= 1;
  if (op == "Pad" || op == "OneHot") return input == 2;
  return is_one_of(op, {"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal", "Range"});
}

// Moves or multiplies elements: what goes in comes out, in other places and scaled.
bool carries(std::string_view op) {
  return is_one_of(op, {"Mul", "MatMul", "Einsum", "Cast", "Reshape", "Transpose", "Unsqueeze",
                        "Squeeze", "Expand", "Concat", "Slice", "Identity", "Flatten", "Tile"});
}

struct Use {
  std::size_t node;
  std::size_t input;
};

class Evidence {
 public:
  Evidence(const GraphFile& graph, store::DataFolder* folder) : graph_(graph), folder_(folder) {}

  Status read() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      auto read = read_node(graph_.nodes[n]);
      if (!read) return forward(read, fmt::format("node {}", n));
      NodeFile node = std::move(*read);
      for (std::size_t i = 0; i < node.inputs.size(); ++i) uses_[node.inputs[i]].push_back({n, i});
      nodes_.push_back(std::move(node));
    }
    for (const ValueFile& input : graph_.inputs) {
      if (is_float_element(input.element)) floats_.insert(input.name);
    }
    for (const TensorFile& tensor : graph_.initializers) {
      if (is_float_element(tensor.element) && !tensor.dims.empty()) floats_.insert(tensor.name);
    }
    for (const NodeFile& node : nodes_) follow_floats(node);
    return {};
  }

  std::string_view why(const TensorFile& tensor) const {
    if (!is_float_element(tensor.element) || tensor.dims.empty()) return {};
    if (named_like_a_buffer(tensor.name)) return "buffers by name";
    const auto uses = uses_.find(tensor.name);
    if (uses == uses_.end()) return {};
    const bool settings =
        std::all_of(uses->second.begin(), uses->second.end(),
                    [&](const Use& use) { return is_setting(nodes_[use.node].op, use.input); });
    if (settings) return "settings of operators";
    if (elements_of(tensor) == 1 && has_made_up_name(tensor.name)) return "single numbers";
    if (only_to_waves(tensor.name)) return "frequencies";
    return {};
  }

  // Tables of sines and cosines, among those for which nothing else speaks.
  void find_tables(Buffers& found) const {
    std::map<std::vector<std::int64_t>, std::vector<const TensorFile*>> by_shape;
    for (const TensorFile& tensor : graph_.initializers) {
      if (is_float_element(tensor.element) && !found.contains(&tensor) &&
          elements_of(tensor) >= kLeastTable && elements_of(tensor) <= kMostTable &&
          uses_.contains(tensor.name))
        by_shape[tensor.dims].push_back(&tensor);
    }
    for (const auto& [dims, tensors] : by_shape) {
      std::vector<Wave> waves;
      for (const TensorFile* tensor : tensors) {
        const std::vector<double> first = numbers_of(*tensor, std::max(kSample, dims.back()));
        if (first.empty() || !std::all_of(first.begin(), first.end(), is_wave)) continue;
        if (dims.size() > 1 && holds_both(first, dims.back()) &&
            holds_both(numbers_of(*tensor, kMostTable), dims.back())) {
          if (is_between(numbers_of(*tensor, kMostTable))) found.emplace(tensor, kTable);
        } else if (waves.size() < kMostCandidates) {
          waves.push_back({tensor, first});
        }
      }
      pair_up(waves, found);
    }
  }

 private:
  static constexpr std::string_view kTable = "tables of sines and cosines";
  static constexpr std::size_t kMostCandidates = 64;  // of one shape that might be such tables

  static bool is_float_element(ElementType element) {
    const auto dtype = dtype_of(element);
    return dtype && ir::is_float(*dtype);
  }

  static std::int64_t elements_of(const TensorFile& tensor) {
    const auto type = type_of(tensor);
    return type ? type->shape.elements() : 0;
  }

  // A result depends on floats when something it is made of does, unless only its shape is read.
  void follow_floats(const NodeFile& node) {
    if (is_one_of(node.op, {"Shape", "Size", "Constant", "ConstantOfShape", "ArgMax"})) return;
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(),
                                 [&](std::string_view name) { return floats_.contains(name); });
    if (any) floats_.insert(node.outputs.begin(), node.outputs.end());
  }

  bool only_to_waves(std::string_view name) const {
    std::vector<std::string_view> open{name};
    std::unordered_set<std::string_view> seen{name};
    bool reached = false;
    while (!open.empty()) {
      const auto uses = uses_.find(open.back());
      open.pop_back();
      if (uses == uses_.end()) return false;
      for (const Use& use : uses->second) {
        const NodeFile& node = nodes_[use.node];
        if (node.op == "Sin" || node.op == "Cos") {
          reached = true;
          continue;
        }
        const bool alone =
            std::all_of(node.inputs.begin(), node.inputs.end(), [&](std::string_view input) {
              return seen.contains(input) || !floats_.contains(input);
            });
        if (!carries(node.op) || !alone) return false;
        for (const std::string_view output : node.outputs) {
          if (seen.insert(output).second) open.push_back(output);
        }
      }
    }
    return reached;
  }

  // The first of its numbers, at most so many.
  std::vector<double> numbers_of(const TensorFile& tensor, std::int64_t most) const {
    const auto content = content_of(tensor, folder_);
    if (!content) return {};
    const std::int64_t count = std::min(most, content->type.shape.elements());
    const ir::TensorType part{content->type.dtype, {count}, {}};
    const auto array = ops::Array::from_bytes(
        part, content->bytes.first(static_cast<std::size_t>(ir::bytes_of(part).value)));
    return array ? array->reals : std::vector<double>{};
  }

  static bool is_wave(double number) { return std::abs(number) <= 1.001; }
  // Zeros and ones are on the circle too: what layer norms begin with.
  static bool is_between(const std::vector<double>& numbers) {
    return std::any_of(numbers.begin(), numbers.end(), [](double number) {
      return std::abs(number) > 0.05 && std::abs(number) < 0.95;
    });
  }

  static bool on_circle(double a, double b) { return std::abs(a * a + b * b - 1) < 4e-3; }

  // Rows [sines, cosines], or sine and cosine in turn.
  static bool holds_both(const std::vector<double>& numbers, std::int64_t width) {
    if (width % 2 != 0) return false;
    const auto row = static_cast<std::size_t>(width);
    bool halves = true;
    bool turns = true;
    for (std::size_t at = 0; at < numbers.size() && (halves || turns); at += row) {
      for (std::size_t i = 0; i < row / 2; ++i) {
        halves = halves && on_circle(numbers[at + i], numbers[at + i + row / 2]);
        turns = turns && on_circle(numbers[at + 2 * i], numbers[at + 2 * i + 1]);
      }
    }
    return halves || turns;
  }

  struct Wave {
    const TensorFile* tensor;
    std::vector<double> first;
  };

  static bool all_on_circle(const std::vector<double>& a, const std::vector<double>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), on_circle);
  }

  void pair_up(const std::vector<Wave>& waves, Buffers& found) const {
    for (std::size_t a = 0; a < waves.size(); ++a) {
      for (std::size_t b = a + 1; b < waves.size(); ++b) {
        if (!all_on_circle(waves[a].first, waves[b].first)) continue;
        const std::vector<double> sines = numbers_of(*waves[a].tensor, kMostTable);
        if (!is_between(sines) || !all_on_circle(sines, numbers_of(*waves[b].tensor, kMostTable)))
          continue;
        found.emplace(waves[a].tensor, kTable);
        found.emplace(waves[b].tensor, kTable);
      }
    }
  }

  const GraphFile& graph_;
  store::DataFolder* folder_;
  std::vector<NodeFile> nodes_;
  std::unordered_map<std::string_view, std::vector<Use>> uses_;
  std::unordered_set<std::string_view> floats_;  // names of what floats had a part in
};

}  // namespace

Result<Buffers> find_buffers(const GraphFile& graph, store::DataFolder* folder) {
  Evidence evidence(graph, folder);
  PLIMSOLL_RETURN_IF_ERROR(evidence.read());
  Buffers out;
  for (const TensorFile& tensor : graph.initializers) {
    const std::string_view why = evidence.why(tensor);
    if (!why.empty()) out.emplace(&tensor, why);
  }
  evidence.find_tables(out);
  return out;
}

}  // namespace plimsoll::model::onnx
