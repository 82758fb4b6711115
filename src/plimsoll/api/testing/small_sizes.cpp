#include "plimsoll/api/testing/small_sizes.h"

#include <map>

namespace plimsoll::api {

model::ModelOptions small_sizes(const std::string& model) {
  static const std::map<std::string, model::ModelOptions> kSizes = {
      {"exp-example", {}},
      {"mlp", {.batch = 4, .width = 64}},
      {"alexnet", {.batch = 2, .image = 64, .width = 8, .classes = 10}},
      {"resnet", {.batch = 1, .image = 32, .depth = 50, .width = 8, .classes = 10}},
      {"unet", {.batch = 1, .image = 32, .width = 8}},
      {"densenet121", {.batch = 1, .image = 32, .width = 8, .classes = 10}},
      {"lstm", {.batch = 2, .seq = 4, .width = 32, .layers = 2, .classes = 50}},
      {"gpt2", {.batch = 2, .seq = 16, .width = 64, .layers = 2, .heads = 2, .vocab = 100}},
      {"bert", {.batch = 2, .seq = 16, .width = 64, .layers = 2, .heads = 2, .vocab = 100}},
      {"moe",
       {.batch = 2, .seq = 16, .width = 64, .layers = 2, .heads = 2, .vocab = 100, .experts = 4}},
      {"whisper-small",
       {.batch = 1, .seq = 8, .frames = 32, .width = 64, .layers = 1, .heads = 2, .vocab = 100}}};
  const auto place = kSizes.find(model);
  return place != kSizes.end()
             ? place->second
             : model::ModelOptions{.batch = 1, .image = 32, .width = 8, .classes = 10};
}

}  // namespace plimsoll::api
