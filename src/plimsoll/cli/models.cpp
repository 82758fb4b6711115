#include <algorithm>
#include <memory>

#include <nlohmann/json.hpp>

#include "plimsoll/api/show_graph.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/json.h"
#include "plimsoll/cli/verb.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kModelsExamples =
    "Examples:\n"
    "  plimsoll models            names, parameters, options with their defaults\n"
    "  plimsoll models --json     the same for programs";

// Sizes are whole numbers and written so; a dropout ratio is not.
nlohmann::ordered_json option_json(double value) {
  const auto whole = static_cast<std::int64_t>(value);
  return static_cast<double>(whole) == value ? nlohmann::ordered_json(whole)
                                             : nlohmann::ordered_json(value);
}

void print_json(const std::vector<api::ModelSummary>& models) {
  auto list = nlohmann::ordered_json::array();
  for (const api::ModelSummary& model : models) {
    auto options = nlohmann::ordered_json::object();
    for (const auto& [name, value] : model.options) options[name] = option_json(value);
    list.push_back({{"name", model.name},
                    {"parameters", model.parameters},
                    {"description", model.description},
                    {"options", std::move(options)}});
  }
  fmt::print("{}\n",
             json_text(nlohmann::ordered_json({{"schema", 1}, {"models", std::move(list)}})));
}

void print_table(const std::vector<api::ModelSummary>& models) {
  fmt::print("{:<14} {:>13}  {}\n", "model", "parameters", "description and options");
  for (const api::ModelSummary& model : models) {
    std::string options;
    for (const auto& [name, value] : model.options) options += fmt::format(" --{} {}", name, value);
    fmt::print("{:<14} {:>13}  {}\n{:<30}{}\n", model.name, grouped(model.parameters),
               model.description, "", options.substr(1));
  }
}

Action bind_models(Command& command) {
  auto json = std::make_shared<bool>(false);
  command.add_flag("--json", *json, "one JSON object");
  return [json]() -> Status {
    PLIMSOLL_TRY(const std::vector<api::ModelSummary> models, api::list_models());
    if (*json) {
      print_json(models);
    } else {
      print_table(models);
    }
    return {};
  };
}

}  // namespace

Verb models_verb() {
  return {"models", "lists the built-in models", kModelsExamples, bind_models};
}

}  // namespace plimsoll::cli
