#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include <nlohmann/json.hpp>

#include "plimsoll/api/onnx_file.h"
#include "plimsoll/api/show_graph.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/file.h"
#include "plimsoll/cli/model_options.h"
#include "plimsoll/cli/verb.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kGraphExamples =
    "Examples:\n"
    "  plimsoll graph resnet50 --batch 32 --train         the training step as text\n"
    "  plimsoll graph gpt2 --infer -o gpt2.graph          the forward graph, into a file\n"
    "  plimsoll graph gpt2.graph --train --loss cross-entropy\n"
    "  plimsoll graph resnet50 --infer -o resnet50.onnx   as ONNX, with weights from the seed\n"
    "  plimsoll graph mlp --dot | dot -Tsvg -o mlp.svg    a picture\n"
    "  plimsoll graph gpt2 --symbols batch,seq -o g.graph one graph for every size: plimsoll plan "
    "g.graph --batch 4\n"
    "  plimsoll graph bert --layers 2 --json              for programs";

struct GraphOptions {
  api::ModelRequest request;
  bool json = false;
  bool dot = false;
  std::string symbols;
  std::string output;
};

Status say_written(const GraphOptions& options) {
  std::error_code error;
  const auto size = std::filesystem::file_size(options.output, error);
  const Bytes bytes(error ? 0 : static_cast<std::int64_t>(size));
  if (options.json) {
    std::printf(
        "%s\n",
        nlohmann::ordered_json{{"schema", 1}, {"path", options.output}, {"bytes", bytes.value}}
            .dump()
            .c_str());
  } else if (!error) {
    std::fprintf(stderr, "%s  %s\n", options.output.c_str(), human(bytes).c_str());
  }
  return {};
}

Action bind_graph(Command& command) {
  auto options = std::make_shared<GraphOptions>();
  bind_model_options(command, options->request);
  Option json = command.add_flag("--json", options->json, "one JSON object");
  Option dot = command.add_flag("--dot", options->dot, "Graphviz").excludes(json);
  command.add_option("--symbols", options->symbols, "one graph for every size of these")
      .type_name("batch,seq")
      .excludes(json)
      .excludes(dot);
  command.add_output("-o,--output", options->output,
                     "write to this file instead of stdout; .onnx: as ONNX");
  return [options]() -> Status {
    if (options->output.ends_with(".onnx")) {
      PLIMSOLL_RETURN_IF_ERROR(api::write_onnx_file(options->request, options->output));
      return say_written(*options);
    }
    const api::GraphFormat format = options->json  ? api::GraphFormat::kJson
                                    : options->dot ? api::GraphFormat::kDot
                                                   : api::GraphFormat::kText;
    PLIMSOLL_TRY(const std::string text,
                 options->symbols.empty()
                     ? api::show_graph(options->request, format)
                     : api::show_symbolic_graph(options->request, options->symbols));
    if (!options->output.empty()) {
      PLIMSOLL_RETURN_IF_ERROR(write_file(options->output, text));
      return say_written(*options);
    }
    std::fwrite(text.data(), 1, text.size(), stdout);
    return {};
  };
}

}  // namespace

Verb graph_verb() {
  return {"graph", "prints the graph of a model", kGraphExamples, bind_graph};
}

}  // namespace plimsoll::cli
