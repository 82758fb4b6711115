// The ONNX door: an .onnx file becomes a graph of ours, and its initialisers a source of weights.
//
//   PLIMSOLL_TRY(ImportedModel model, import_onnx("bert.onnx", {.batch = 8, .seq = 128}));
//   model.graph                        inputs and outputs named as in the file
//   model.weights.find("fc.weight")    bytes in the mapped file; nothing is held twice
//
// Any exporter's file should simply work, so the importer trusts nothing but the operators'
// meaning:
//   - shapes are inferred again by our own definitions; the file's value_info is not read;
//   - every dimension is a number in the end. Symbolic ones are bound by name (`dims`), by `batch`
//     and
//     `seq` (names that say batch or sequence; an unnamed first dimension is a batch), or by the
//     shapes
//     of the arrays that will be fed (`shapes`). One that stays open is an error that names it;
//   - what is known at import is computed at import: an operator whose inputs are all constants is
//     built
//     into a graph of its own, run by the reference evaluation, and replaced by its result. With
//     static
//     shapes the shape arithmetic of exported transformers disappears without a rule for any of it;
//   - control flow that is decided at import (If with a known condition, Loop with a known trip
//     count,
//     Scan) is inlined; model-local functions too.
// A float initialiser becomes a weight (Init::Kind::kFile), a small or integer one a constant; with
// `training` every float initialiser of rank 1 or more is a weight, so that it gets a gradient.
//
// Hostile files: the file is mapped and read through spans; counts, nesting, folded elements and
// inlined nodes are bounded (see importer.h), external data stays in the model's folder
// (store/data_folder.h).
//
// Failures: kBadInput, "path: node 'name' (Op): what and why", first problem only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/ops/evaluation/array.h"
#include "plimsoll/store/weight_source.h"

namespace plimsoll::model {

struct ImportOptions {
  std::optional<std::int64_t> batch;
  std::optional<std::int64_t> seq;
  // By symbol ("batch_size"), or "input:axis" for a dimension without one.
  std::map<std::string, std::int64_t> dims;
  // Whole shapes of inputs by name; they bind the symbols they meet.
  std::map<std::string, ir::Shape> shapes;
  // Inputs whose content is given at import (shapes and axes that a model takes as inputs): they
  // become constants, and the graph has no such input any more.
  std::map<std::string, ops::Array> values;
  bool training = false;
  // Exporters' patterns are put together again (layer norm, attention, ...); off to see the raw
  // import.
  bool recover_patterns = true;
  // External data may be reached through symbolic links (caches of model hubs are made of them).
  bool follow_links = false;
};

struct ImportedModel {
  ir::Graph graph;
  store::WeightSource weights;
  // Names of graph.outputs in their order, as the file has them.
  std::vector<std::string> outputs;
};

Result<ImportedModel> import_onnx(const std::filesystem::path& path,
                                  const ImportOptions& options = {});
// From bytes that outlive the result; external data is refused.
Result<ImportedModel> import_onnx_bytes(std::span<const std::byte> bytes,
                                        const ImportOptions& options = {});

}  // namespace plimsoll::model
