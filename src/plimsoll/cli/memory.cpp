#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "plimsoll/api/memory_of_model.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/json.h"
#include "plimsoll/cli/model_options.h"
#include "plimsoll/cli/search_progress.h"
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

nlohmann::ordered_json growth_json(const report::Growth& growth) {
  const report::Polynomial& polynomial = growth.polynomial;
  const auto divided = [&](std::int64_t coefficient) {
    return static_cast<double>(coefficient) / static_cast<double>(polynomial.divisor);
  };
  nlohmann::ordered_json out{{"constant", divided(polynomial.constant)},
                             {"linear", divided(polynomial.linear)},
                             {"quadratic", divided(polynomial.quadratic)}};
  for (const report::Share& share : growth.shares) {
    out["shares"].push_back({{"tensors", share.tensors},
                             {"granule_bytes", share.granule},
                             {"whole_bytes", share.whole},
                             {"each", share.each}});
  }
  return out;
}

nlohmann::ordered_json law_json(const report::Law& law) {
  nlohmann::ordered_json out{{"at", law.here}};
  if (law.period > 1) out["period"] = law.period;
  for (std::size_t use = 0; use < law.by_use.size(); ++use) {
    if (law.by_use[use]) out[std::string(report::use_name(use))] = growth_json(*law.by_use[use]);
  }
  for (std::size_t use = 0; use < law.jumping.size(); ++use) {
    if (law.jumping[use].tensors == 0) continue;
    nlohmann::ordered_json rest{{"tensors", law.jumping[use].tensors},
                                {"at", nlohmann::ordered_json::array()}};
    for (const auto& [size, bytes] : law.jumping[use].at)
      rest["at"].push_back({{"size", size}, {"bytes", bytes.value}});
    out["jumping"][std::string(report::use_name(use))] = std::move(rest);
  }
  return out;
}

nlohmann::ordered_json laws_json(const report::MemoryReport& report) {
  nlohmann::ordered_json out;
  for (const report::Law& law : report.laws) out[law.variable] = law_json(law);
  for (const report::Law& law : report.rank_laws) out[law.variable] = law_json(law);
  nlohmann::ordered_json per_copy = nlohmann::ordered_json::array();
  for (const report::Law& law : report.rank_laws) {
    for (std::size_t use = 0; law.variable == "copies" && use < law.by_use.size(); ++use) {
      if (law.by_use[use] && law.by_use[use]->shares.empty())
        per_copy.push_back(report::use_name(use));
    }
  }
  if (!per_copy.empty()) out["copies"]["per_copy"] = std::move(per_copy);
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
  out["law"] = laws_json(report);
  if (!report.left_out.empty()) out["law_left_out"] = report.left_out;
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

// "1.00 KiB"; less than a byte where a period divides.
std::string term(std::int64_t coefficient, std::int64_t divisor) {
  if (coefficient % divisor == 0 || std::abs(coefficient / divisor) >= 1024)
    return human(Bytes(coefficient / divisor));
  return fmt::format("{:.4g} B", static_cast<double>(coefficient) / static_cast<double>(divisor));
}

std::string law_text(const report::Growth& law, const std::string& variable) {
  const report::Polynomial& polynomial = law.polynomial;
  std::vector<std::string> terms;
  if (polynomial.constant != 0) terms.push_back(term(polynomial.constant, polynomial.divisor));
  if (polynomial.linear != 0)
    terms.push_back(term(polynomial.linear, polynomial.divisor) + " x " + variable);
  if (polynomial.quadratic != 0)
    terms.push_back(term(polynomial.quadratic, polynomial.divisor) + " x " + variable + "^2");
  std::int64_t whole = 0;
  for (const report::Share& share : law.shares) whole += share.tensors * share.whole;
  if (whole > 0 && law.shares.front().each)
    terms.push_back(fmt::format("{} in {} equal parts", human(Bytes(whole)), variable));
  else if (whole > 0)
    terms.push_back(fmt::format("{} / {}", human(Bytes(whole)), variable));
  return terms.empty() ? "0 B" : fmt::format("{}", fmt::join(terms, " + "));
}

std::string jumping_text(const report::Jumping& jumping, bool scratch) {
  if (jumping.tensors == 0) return "";
  std::vector<std::string> at;
  for (const auto& [size, bytes] : jumping.at)
    at.push_back(fmt::format("{} at {}", human(bytes), size));
  return fmt::format("; {} more {} jump: {}", jumping.tensors, scratch ? "operators" : "tensors",
                     fmt::join(at, ", "));
}

void print_law(const report::Law& law, const report::MemoryReport& report) {
  const std::string steps =
      law.period > 1 ? fmt::format(", and any multiple of {} more or less", law.period) : "";
  std::printf("growth with %s (here %lld%s), exact before rounding tensors to 64 bytes:\n",
              law.variable.c_str(), static_cast<long long>(law.here), steps.c_str());
  for (std::size_t use = 0; use < law.by_use.size(); ++use) {
    if (!law.by_use[use] || report.by_use[use].value == 0) continue;
    const bool scratch = use == report::kScratchUse;
    std::printf("  %-12s %s%s\n", std::string(report::use_name(use)).c_str(),
                law_text(*law.by_use[use], law.variable).c_str(),
                jumping_text(law.jumping[use], scratch).c_str());
  }
}

void print_rank_law(const report::Law& law) {
  std::printf("one of n %s%s:\n", law.variable.c_str(),
              law.variable == "copies"
                  ? ", each with a batch of its own"
                  : " (--shard optimizer,gradients,weights --bucket-bytes 25MiB)");
  for (std::size_t use = 0; use < law.by_use.size(); ++use) {
    if (law.by_use[use] && *law.by_use[use] != report::Growth{})
      std::printf("  %-12s %s\n", std::string(report::use_name(use)).c_str(),
                  law_text(*law.by_use[use], "n").c_str());
  }
}

void print_table(const report::MemoryReport& report) {
  std::printf("%s parameters\n", grouped(report.parameters).c_str());
  for (std::size_t use = 0; use < report.by_use.size(); ++use) {
    std::printf("  %-12s %18s  %10s\n", std::string(report::use_name(use)).c_str(),
                grouped(report.by_use[use].value).c_str(), human(report.by_use[use]).c_str());
  }
  std::printf(
      "  %-12s %18s  %10s  (every tensor with memory of its own; `plimsoll plan` shows what is "
      "alive at once)\n",
      "total", grouped(report.total.value).c_str(), human(report.total).c_str());
}

void print_rest(const report::MemoryReport& report, bool layers) {
  if (report.laws.empty() && report.left_out.empty())
    std::printf(
        "no law of growth: the file has one size only (torch.onnx.export leaves sizes open with "
        "dynamic_shapes or dynamic_axes)\n");
  if (!report.left_out.empty())
    std::printf(
        "growth with %s was not looked for: it takes graphs of too many operators; ask for a "
        "smaller model\n",
        fmt::format("{}", fmt::join(report.left_out, ", ")).c_str());
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

constexpr const char* kWaiting = "looking for how it grows";

// What is known is printed while the rest is looked for.
api::MemoryReportOptions printing(std::shared_ptr<void>& waiting) {
  const auto between = [&waiting](auto print) {
    return [&waiting, print](const auto&... what) {
      waiting.reset();
      print(what...);
      std::fflush(stdout);
      waiting = waiting_on_terminal(kWaiting);
    };
  };
  api::MemoryReportOptions out;
  out.on_table = between(print_table);
  out.on_law = between(print_law);
  out.on_rank_law = between(print_rank_law);
  return out;
}

Status memory(const MemoryOptions& options) {
  auto waiting = waiting_on_terminal(kWaiting);
  const auto how = options.json ? api::MemoryReportOptions() : printing(waiting);
  const auto report = api::memory_of_model(options.request, how);
  waiting.reset();
  if (!report) return forward(report);
  if (options.json) {
    print_json(*report);
  } else {
    print_rest(*report, options.layers);
  }
  return {};
}

Action bind_memory(Command& command) {
  auto options = std::make_shared<MemoryOptions>();
  bind_model_options(command, options->request);
  command.add_flag("--layers-table", options->layers, "a row for every layer too");
  command.add_flag("--json", options->json, "one JSON object");
  return [options]() { return memory(*options); };
}

}  // namespace

Verb memory_verb() {
  return {"memory", "what uses memory, and how it grows", kMemoryExamples, bind_memory};
}

}  // namespace plimsoll::cli
