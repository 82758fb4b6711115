// The law by which a model's bytes grow with one of its sizes.
//
// First a period is looked for along which all bytes of a use (activations, gradients, ...) are a
// polynomial: at four sizes next to each other, and at a dozen others. Where there is none, what is
// dealt out is tried (rows of experts), and then every tensor by itself: those with a law are
// summed, the others jump.
//
// Cost: some dozen graphs for a size; kernels are asked for their scratch at a few of them, whose
// graphs are kept until then.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>

#include "plimsoll/base/result.h"
#include "plimsoll/report/memory_laws.h"

namespace plimsoll::report {

// What a law is made from: the bytes of one graph, before rounding.
struct Sample {
  std::array<std::int64_t, plan::kUseCount> by_use{};
  std::array<std::map<std::string, std::int64_t>, plan::kUseCount> by_name;
};

Sample sample_of(const ir::Graph& graph, const ops::KernelTable& kernels);

struct GraphsOfSizes {
  // The model at a size, if there is such a model.
  std::function<Result<ir::Graph>(std::int64_t size)> build;
  // Its bytes with the scratch of its kernels.
  std::function<Result<Sample>(const ir::Graph&)> with_kernels;
};

Result<Law> find_law(const std::string& variable, std::int64_t here, const GraphsOfSizes& graphs);

}  // namespace plimsoll::report
