// What PyTorch made of a model, as tests/references/*.json hold it, and the model and content to
// compare with.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "deterministic.h"
#include "plimsoll/base/file.h"
#include "plimsoll/base/testing/test_paths.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/model/sizes.h"

namespace plimsoll::reference {

using Json = nlohmann::json;

// "resnet50_fp32"
inline Result<Json> read_reference(const std::string& name) {
  PLIMSOLL_TRY(const std::string text,
               read_file(test_source_dir().string() + "/tests/references/" + name + ".json"));
  return Json::parse(text);
}

inline model::ModelOptions options_of(const Json& reference, ir::DType dtype) {
  const Json& given = reference["options"];
  model::ModelOptions out;
  const auto set = [&](const char* name, std::optional<std::int64_t>& target) {
    if (given.contains(name)) target = given[name].get<std::int64_t>();
  };
  set("batch", out.batch);
  set("image", out.image);
  set("seq", out.seq);
  set("frames", out.frames);
  set("width", out.width);
  set("layers", out.layers);
  set("heads", out.heads);
  set("classes", out.classes);
  set("vocab", out.vocab);
  set("experts", out.experts);
  out.dropout = 0;
  out.dtype = dtype;
  return out;
}

inline std::int64_t bound_of(const std::string& input, const Json& options) {
  if (input == "token_type_ids") return 2;
  return options[options.contains("vocab") ? "vocab" : "classes"].get<std::int64_t>();
}

// The first content of a source, row-major.
inline ops::Array content_of(const ir::Value& value, const Json& reference) {
  const ir::TensorType plain{value.type.dtype, value.type.shape, {}};
  if (value.kind == ir::ValueKind::kWeight) return weight(value.name, plain);
  if (value.kind != ir::ValueKind::kInput) {
    ops::Array start(plain);
    for (std::int64_t i = 0; i < start.elements(); ++i) start.set_number(i, value.init.a);
    return start;
  }
  if (ir::is_float(value.type.dtype)) return reals(value.name, plain);
  return integers(value.name, value.type.shape, bound_of(value.name, reference["options"]));
}

}  // namespace plimsoll::reference
