// Our graphs as .onnx files, so that other tools open them.
//
//   PLIMSOLL_TRY(std::string file, export_onnx(graph, content));
//
// Operators become ONNX's own (operator set 20, IR version 9); what ONNX has not, attention and rms
// norm among them, is written in simpler ones. Weights and state become initialisers with the
// content that `content` gives. Layouts are physical and are left behind. A training step cannot be
// written: gradients and updates have no ONNX form, and the error names the first operator that has
// none.
//
// A file of more than 2 GiB is impossible in this format; write_onnx() puts the weights beside it
// (model.onnx.data) when they would make one.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"

namespace plimsoll::model {

// The bytes of a weight or state source, row-major.
using SourceContent = std::function<Result<std::vector<std::byte>>(const ir::Value&)>;

// The whole file. With `data` given, initialisers of 1 KiB and more are appended there and the file
// refers to `data_name` for them.
Result<std::string> export_onnx(const ir::Graph& graph, const SourceContent& content,
                                std::string* data = nullptr, const std::string& data_name = {});

// Whole or not at all; weights of more than 1.9 GB go to PATH.data.
Status write_onnx(const std::filesystem::path& path, const ir::Graph& graph,
                  const SourceContent& content);

}  // namespace plimsoll::model
