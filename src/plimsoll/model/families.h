// One function per family of built-in models; zoo.h lists them with their defaults.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/model/net.h"
#include "plimsoll/model/sizes.h"

namespace plimsoll::model {

inline NetOptions net_options(const Sizes& sizes) {
  NetOptions out;
  out.training = sizes.training;
  out.dtype = sizes.dtype;
  out.compute = sizes.amp;
  out.seed = sizes.seed;
  return out;
}

Result<ir::Graph> build_alexnet(const std::string& name, const Sizes& sizes);
Result<ir::Graph> build_bert(const std::string& name, const Sizes& sizes);
Result<ir::Graph> build_densenet(const std::string& name, const Sizes& sizes);
Result<ir::Graph> build_exp_example(const std::string& name, const Sizes& sizes);
Result<ir::Graph> build_gpt2(const std::string& name, const Sizes& sizes);
Result<ir::Graph> build_lstm(const std::string& name, const Sizes& sizes);
Result<ir::Graph> build_mlp(const std::string& name, const Sizes& sizes);
Result<ir::Graph> build_mobilenet(const std::string& name, const Sizes& sizes);
Result<ir::Graph> build_moe(const std::string& name, const Sizes& sizes);
Result<ir::Graph> build_resnet(const std::string& name, const Sizes& sizes);
Result<ir::Graph> build_unet(const std::string& name, const Sizes& sizes);
Result<ir::Graph> build_vgg(const std::string& name, const Sizes& sizes);
Result<ir::Graph> build_whisper(const std::string& name, const Sizes& sizes);

}  // namespace plimsoll::model
