#include "plimsoll/autodiff/training_options.h"

#include <algorithm>
#include <array>

namespace plimsoll::autodiff {
namespace {

constexpr std::array<std::string_view, 4> kOptimizerNames = {"sgd", "momentum", "adam", "adamw"};

}  // namespace

std::string_view name(Optimizer optimizer) {
  return kOptimizerNames[static_cast<std::size_t>(optimizer)];
}

double default_learning_rate(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::kSgd:
      return 3e-3;
    case Optimizer::kMomentum:
      return 1e-3;
    case Optimizer::kAdam:
    case Optimizer::kAdamW:
      return 3e-4;
  }
  return 1e-3;
}

Result<Optimizer> parse_optimizer(std::string_view text) {
  const auto place = std::find(kOptimizerNames.begin(), kOptimizerNames.end(), text);
  if (place == kOptimizerNames.end()) {
    return fail(ErrorCode::kUsage, "optimizer '{}': expects sgd, momentum, adam or adamw", text);
  }
  return static_cast<Optimizer>(place - kOptimizerNames.begin());
}

bool matches_glob(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t retry = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++retry;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::vector<ValueId> trained_weights(const ir::Graph& forward, const TrainingOptions& options) {
  std::vector<char> reaches(forward.values.size(), 0);
  if (!forward.outputs.empty()) reaches[forward.outputs.front().index()] = 1;
  for (std::size_t n = forward.nodes.size(); n-- > 0;) {
    const ir::Node& node = forward.nodes[n];
    const bool used = std::any_of(node.outputs.begin(), node.outputs.end(),
                                  [&](ValueId id) { return reaches[id.index()]; });
    if (!used) continue;
    for (const ValueId input : node.inputs) {
      if (input.valid()) reaches[input.index()] = 1;
    }
  }
  std::vector<ValueId> out;
  for (std::size_t v = 0; v < forward.values.size(); ++v) {
    const ir::Value& value = forward.values[v];
    if (value.kind != ir::ValueKind::kWeight || !reaches[v] || !ir::is_float(value.type.dtype))
      continue;
    const bool frozen =
        std::any_of(options.freeze.begin(), options.freeze.end(),
                    [&](const std::string& pattern) { return matches_glob(pattern, value.name); });
    if (!frozen) out.emplace_back(v);
  }
  return out;
}

}  // namespace plimsoll::autodiff
