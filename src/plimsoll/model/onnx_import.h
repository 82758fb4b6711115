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

#include <filesystem>
#include <span>

#include "plimsoll/base/result.h"
#include "plimsoll/model/onnx/import_options.h"
#include "plimsoll/store/weight_source.h"

namespace plimsoll::model {

Result<ImportedModel> import_onnx(const std::filesystem::path& path,
                                  const ImportOptions& options = {});
// From bytes that outlive the result; external data is refused.
Result<ImportedModel> import_onnx_bytes(std::span<const std::byte> bytes,
                                        const ImportOptions& options = {});

// The initialisers of an .onnx file by their names, and constants of floats by the names of what
// they are written to, without the graph: no size need be known, and no operator. Bodies of control
// flow are looked into; where two of them have the same name, it is the second's with its place in
// front, "If_0/else_branch/weight".
Result<store::WeightSource> read_onnx_weights(const std::filesystem::path& path);

}  // namespace plimsoll::model
