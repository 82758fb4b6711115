// The numbers a built-in model is built with: what a user gave, or the model's defaults.
#pragma once

#include <cstdint>
#include <optional>

#include "plimsoll/ir/dtype.h"

namespace plimsoll::model {

// What a user may say; what is absent is the model's own default.
struct ModelOptions {
  std::optional<std::int64_t> batch{};
  std::optional<std::int64_t> image{};   // height and width
  std::optional<std::int64_t> seq{};     // tokens, or steps of an unrolled network
  std::optional<std::int64_t> frames{};  // of a spectrogram
  std::optional<std::int64_t> depth{};   // layers of a resnet
  std::optional<std::int64_t> width{};   // channels of the first stage, or features of a block
  std::optional<std::int64_t> layers{};  // repeated blocks
  std::optional<std::int64_t> heads{};
  std::optional<std::int64_t> classes{};
  std::optional<std::int64_t> vocab{};
  std::optional<std::int64_t> experts{};
  std::optional<double> dropout{};
  ir::DType dtype = ir::DType::kF32;
  std::optional<ir::DType> amp = std::nullopt;  // what is computed in, with weights kept in dtype
  bool training = true;
  std::uint64_t seed = 0;  // of the dropout masks
};

// The same with everything decided; 0 where a model has no such size.
struct Sizes {
  std::int64_t batch = 0;
  std::int64_t image = 0;
  std::int64_t seq = 0;
  std::int64_t frames = 0;
  std::int64_t depth = 0;
  std::int64_t width = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t classes = 0;
  std::int64_t vocab = 0;
  std::int64_t experts = 0;
  double dropout = 0;
  ir::DType dtype = ir::DType::kF32;
  std::optional<ir::DType> amp = std::nullopt;
  bool training = true;
  std::uint64_t seed = 0;
};

}  // namespace plimsoll::model
