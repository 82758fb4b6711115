#include <cstdio>
#include <memory>
#include <span>

#include <nlohmann/json.hpp>

#include "plimsoll/api/memory_of_model.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/json.h"
#include "plimsoll/cli/model_options.h"
#include "plimsoll/cli/verb.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kMemoryExamples =
    "Examples:\n"
    "  plimsoll memory gpt2 --batch 8 --seq 1024            what uses memory, and how it grows\n"
    "  plimsoll memory resnet50 --batch 32 --optimizer sgd  without Adam's moments\n"
    "  plimsoll memory alexnet --layers-table               layer by layer";

struct MemoryOptions {
  api::ModelRequest request;
  bool layers = false;
  bool json = false;
};

nlohmann::ordered_json by_use_json(std::span<const Bytes> by_use) {
  nlohmann::ordered_json out;
  for (std::size_t use = 0; use < by_use.size(); ++use)
    out[std::string(report::use_name(use))] = by_use[use].value;
  return out;
}

nlohmann::ordered_json law_json(const report::Law& law) {
  nlohmann::ordered_json out{{"at", law.here}};
  for (std::size_t use = 0; use < law.by_use.size(); ++use) {
    const auto& polynomial = law.by_use[use];
    if (!polynomial) continue;
    out[std::string(report::use_name(use))] = {
        {"constant", static_cast<double>(polynomial->twice_constant) / 2},
        {"linear", static_cast<double>(polynomial->twice_linear) / 2},
        {"quadratic", static_cast<double>(polynomial->twice_quadratic) / 2}};
  }
  return out;
}

void print_json(const report::MemoryReport& report) {
  nlohmann::ordered_json out{
      {"schema", 1}, {"total_bytes", report.total.value}, {"parameters", report.parameters}};
  out["by_kind"] = by_use_json(report.by_use);
  out["by_layer"] = nlohmann::ordered_json::array();
  for (const report::LayerBytes& layer : report.by_layer) {
    nlohmann::ordered_json row = by_use_json(layer.by_use);
    row["layer"] = layer.layer;
    row["total"] = layer.total().value;
    out["by_layer"].push_back(std::move(row));
  }
  for (const report::Law& law : report.laws) out["law"][law.variable] = law_json(law);
  out["law"]["copies"] = {
      {"per_copy", nlohmann::ordered_json::array(
                       {"weights", "gradients", "optimizer", "activations", "inputs", "outputs"})}};
  out["scratch"] = nlohmann::ordered_json::array();
  for (const report::ScratchRow& row : report.scratch) {
    nlohmann::ordered_json one;
    if (row.batch) one["batch"] = *row.batch;
    one["largest_bytes"] = row.largest.value;
    one["operator"] = row.operator_name;
    out["scratch"].push_back(std::move(one));
  }
  std::printf("%s\n", json_text(out, 2).c_str());
}

std::string law_text(const report::Polynomial& law, const std::string& variable) {
  std::string out = human(Bytes(law.twice_constant / 2));
  if (law.twice_linear != 0)
    out += fmt::format(" + {} x {}", human(Bytes(law.twice_linear / 2)), variable);
  if (law.twice_quadratic != 0)
    out += fmt::format(" + {} x {}^2", human(Bytes(law.twice_quadratic / 2)), variable);
  return out;
}

void print(const report::MemoryReport& report, bool layers) {
  std::printf("%s parameters\n", grouped(report.parameters).c_str());
  for (std::size_t use = 0; use < report.by_use.size(); ++use) {
    std::printf("  %-12s %18s  %10s\n", std::string(report::use_name(use)).c_str(),
                grouped(report.by_use[use].value).c_str(), human(report.by_use[use]).c_str());
  }
  std::printf(
      "  %-12s %18s  %10s  (every tensor with memory of its own; `plimsoll plan` shows what is "
      "alive at once)\n",
      "total", grouped(report.total.value).c_str(), human(report.total).c_str());
  for (const report::Law& law : report.laws) {
    std::printf("growth with %s (here %lld), exact before rounding tensors to 64 bytes:\n",
                law.variable.c_str(), static_cast<long long>(law.here));
    for (std::size_t use = 0; use < law.by_use.size(); ++use) {
      if (law.by_use[use] && report.by_use[use].value > 0) {
        std::printf("  %-12s %s\n", std::string(report::use_name(use)).c_str(),
                    law_text(*law.by_use[use], law.variable).c_str());
      }
    }
  }
  std::printf(
      "growth with parallel copies: each copy holds weights, gradients and optimizer state again, "
      "and the activations of its own batch\n");
  std::printf("largest kernel scratch by batch (it jumps with the algorithm):\n");
  for (const report::ScratchRow& row : report.scratch) {
    const std::string size = row.batch ? fmt::format("batch {}", *row.batch) : "as given";
    std::printf("  %-12s %10s  %s\n", size.c_str(), human(row.largest).c_str(),
                row.operator_name.c_str());
  }
  if (!layers) return;
  std::printf("by layer:\n");
  for (const report::LayerBytes& layer : report.by_layer)
    std::printf("  %-48s %10s\n", layer.layer.c_str(), human(layer.total()).c_str());
}

Action bind_memory(Command& command) {
  auto options = std::make_shared<MemoryOptions>();
  bind_model_options(command, options->request);
  command.add_flag("--layers-table", options->layers, "a row for every layer too");
  command.add_flag("--json", options->json, "one JSON object");
  return [options]() -> Status {
    PLIMSOLL_TRY(const report::MemoryReport report, api::memory_of_model(options->request));
    if (options->json) {
      print_json(report);
    } else {
      print(report, options->layers);
    }
    return {};
  };
}

}  // namespace

Verb memory_verb() {
  return {"memory", "what uses memory, and how it grows", kMemoryExamples, bind_memory};
}

}  // namespace plimsoll::cli
