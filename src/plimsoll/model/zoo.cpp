#include "plimsoll/model/zoo.h"

#include <algorithm>
#include <array>

#include <fmt/ranges.h>

#include "plimsoll/base/nearest_name.h"
#include "plimsoll/model/families.h"

namespace plimsoll::model {
namespace {

// One row per size a user may set: its name, where it stands in both structs, and the largest that
// makes sense (so that products of sizes stay far from 64 bits).
struct SizeField {
  std::string_view name;
  std::optional<std::int64_t> ModelOptions::*given;
  std::int64_t Sizes::*decided;
  std::int64_t most;
};
constexpr std::array<SizeField, 11> kFields = {{
    {"batch", &ModelOptions::batch, &Sizes::batch, 1 << 24},
    {"image", &ModelOptions::image, &Sizes::image, 1 << 16},
    {"seq", &ModelOptions::seq, &Sizes::seq, 1 << 20},
    {"frames", &ModelOptions::frames, &Sizes::frames, 1 << 20},
    {"depth", &ModelOptions::depth, &Sizes::depth, 100'000},
    {"width", &ModelOptions::width, &Sizes::width, 1 << 16},
    {"layers", &ModelOptions::layers, &Sizes::layers, 10'000},
    {"heads", &ModelOptions::heads, &Sizes::heads, 1 << 12},
    {"classes", &ModelOptions::classes, &Sizes::classes, 1 << 24},
    {"vocab", &ModelOptions::vocab, &Sizes::vocab, 1 << 24},
    {"experts", &ModelOptions::experts, &Sizes::experts, 1 << 12},
}};

// Sizes of its own; what is 0 there is as for most networks of images.
ModelInfo image_model(std::string name, std::string description, decltype(ModelInfo::build) build,
                      Sizes own) {
  const auto usually = [](std::int64_t& size, std::int64_t usual) {
    if (size == 0) size = usual;
  };
  usually(own.batch, 32);
  usually(own.image, 224);
  usually(own.width, 64);
  usually(own.classes, 1000);
  ModelInfo out{
      std::move(name), std::move(description), own, {"batch", "image", "width", "classes"}, build};
  if (own.dropout > 0) out.options.emplace_back("dropout");
  return out;
}

ModelInfo any_resnet() {
  ModelInfo out =
      image_model("resnet", "residual network of any depth; 1000 gives stages of 83, 83, 83, 84",
                  build_resnet, {.depth = 1000});
  out.options.insert(out.options.begin() + 2, "depth");
  return out;
}

ModelInfo resnet(std::int64_t depth) {
  return image_model(fmt::format("resnet{}", depth),
                     fmt::format("residual network, {} layers", depth), build_resnet,
                     {.depth = depth});
}

ModelInfo mlp() {
  ModelInfo out = image_model("mlp", "multi-layer perceptron on images of 28 x 28", build_mlp,
                              {.image = 28, .width = 512, .layers = 2, .classes = 10});
  out.options = {"batch", "image", "width", "layers", "classes", "dropout"};
  return out;
}

ModelInfo exp_example() {
  return {"exp-example",
          "exp(a*b+3), the smallest teaching graph",
          {.batch = 1, .width = 1024},
          {"batch", "width"},
          build_exp_example};
}

ModelInfo lstm() {
  return {"lstm",
          "stacked LSTM unrolled over time, 50 features, a class at every step",
          {.batch = 64, .seq = 64, .width = 1024, .layers = 4, .classes = 5000},
          {"batch", "seq", "width", "layers", "classes"},
          build_lstm};
}

// heads = 0: one for every 64 features.
ModelInfo transformer(std::string name, std::string description, decltype(ModelInfo::build) build,
                      Sizes own) {
  own.width = 768;
  own.layers = 12;
  return {std::move(name),
          std::move(description),
          own,
          {"batch", "seq", "width", "layers", "heads", "vocab", "dropout"},
          build};
}

ModelInfo moe() {
  return {"moe",
          "mixture of experts as in the Switch Transformer: each token through one of them",
          {.batch = 8,
           .seq = 512,
           .width = 512,
           .layers = 4,
           .vocab = 32128,
           .experts = 32,
           .dropout = 0.1},
          {"batch", "seq", "width", "layers", "heads", "vocab", "experts", "dropout"},
          build_moe};
}

ModelInfo whisper() {
  ModelInfo out = transformer(
      "whisper-small", "speech recognition: mel 80 x 3000, encoder and decoder of 12 layers",
      build_whisper, {.batch = 1, .seq = 224, .frames = 3000, .vocab = 51865});
  out.options.insert(out.options.begin() + 2, "frames");
  return out;
}

std::vector<ModelInfo> all_models() {
  return {exp_example(),
          mlp(),
          image_model("alexnet", "five convolutions, three linear layers", build_alexnet,
                      {.dropout = 0.5}),
          image_model("vgg16", "VGG, 16 layers, no batch norm", build_vgg,
                      {.depth = 16, .dropout = 0.5}),
          image_model("vgg19", "VGG, 19 layers, no batch norm", build_vgg,
                      {.depth = 19, .dropout = 0.5}),
          resnet(18),
          resnet(34),
          resnet(50),
          resnet(101),
          resnet(152),
          any_resnet(),
          image_model("mobilenet", "MobileNetV2: inverted residuals, depthwise convolutions",
                      build_mobilenet, {.width = 32, .dropout = 0.2}),
          image_model("unet", "U-Net for segmentation, batch norm, four levels", build_unet,
                      {.batch = 8, .image = 256, .classes = 2}),
          image_model("densenet121", "densely connected network, growth 32", build_densenet, {}),
          lstm(),
          transformer("gpt2", "GPT-2 small, output tied to the token table", build_gpt2,
                      {.batch = 8, .seq = 1024, .vocab = 50257, .dropout = 0.1}),
          transformer("bert", "BERT-base with the masked-language head", build_bert,
                      {.batch = 8, .seq = 128, .vocab = 30522, .dropout = 0.1}),
          whisper(),
          moe()};
}

bool takes(const ModelInfo& model, std::string_view option) {
  return std::find(model.options.begin(), model.options.end(), option) != model.options.end();
}

Status refuse_option(const ModelInfo& model, std::string_view option) {
  return fail(ErrorCode::kUsage, "{}: has no option --{}; it has --{}", model.name, option,
              fmt::join(model.options, ", --"));
}

Status decide_heads(const ModelInfo& model, Sizes& sizes) {
  if (sizes.heads == 0) sizes.heads = std::max<std::int64_t>(1, sizes.width / 64);
  if (sizes.width % sizes.heads == 0) return {};
  return fail(ErrorCode::kUsage, "{}: width {} does not divide into {} heads", model.name,
              sizes.width, sizes.heads);
}

// The depth of a model made of equal layers is their number.
const SizeField& meaning(const ModelInfo& model, const SizeField& given) {
  if (given.name != "depth" || takes(model, "depth")) return given;
  return *std::ranges::find(kFields, "layers", &SizeField::name);
}

Result<Sizes> decide(const ModelInfo& model, const ModelOptions& options) {
  Sizes out = model.defaults;
  for (const SizeField& field : kFields) {
    const auto& given = options.*field.given;
    if (!given) continue;
    const SizeField& meant = meaning(model, field);
    if (!takes(model, meant.name)) return forward(refuse_option(model, field.name));
    if (*given < 1 || *given > field.most) {
      return fail(ErrorCode::kUsage, "{}: --{} {} is out of range, expects 1 to {}", model.name,
                  field.name, *given, field.most);
    }
    out.*meant.decided = *given;
  }
  if (options.dropout) {
    if (*options.dropout != 0 && !takes(model, "dropout"))
      return forward(refuse_option(model, "dropout"));
    if (!(*options.dropout >= 0 && *options.dropout < 1)) {
      return fail(ErrorCode::kUsage,
                  "{}: --dropout {} is out of range, expects 0 or more and less than 1", model.name,
                  *options.dropout);
    }
    out.dropout = *options.dropout;
  }
  if (!ir::is_float(options.dtype))
    return fail(ErrorCode::kUsage, "{}: --dtype {} is no float", model.name,
                ir::name(options.dtype));
  if (options.amp && !ir::is_float(*options.amp))
    return fail(ErrorCode::kUsage, "{}: --amp {} is no float", model.name, ir::name(*options.amp));
  out.dtype = options.dtype;
  out.amp = options.amp;
  out.training = options.training;
  out.seed = options.seed;
  if (takes(model, "heads")) {
    PLIMSOLL_RETURN_IF_ERROR(decide_heads(model, out));
  }
  return out;
}

}  // namespace

std::span<const ModelInfo> models() {
  static const std::vector<ModelInfo> kModels = all_models();
  return kModels;
}

const ModelInfo* find_model(std::string_view name) {
  const auto all = models();
  const auto place = std::find_if(all.begin(), all.end(),
                                  [&](const ModelInfo& model) { return model.name == name; });
  return place == all.end() ? nullptr : &*place;
}

double default_of(const ModelInfo& model, std::string_view option) {
  if (option == "dropout") return model.defaults.dropout;
  if (option == "heads" && model.defaults.heads == 0) {
    const std::int64_t heads = model.defaults.width / 64;
    return static_cast<double>(heads);
  }
  for (const SizeField& field : kFields) {
    if (field.name == option) return static_cast<double>(model.defaults.*field.decided);
  }
  return 0;
}

Result<ir::Graph> build_model(std::string_view name, const ModelOptions& options) {
  const ModelInfo* model = find_model(name);
  if (model == nullptr) {
    std::vector<std::string> names;
    for (const ModelInfo& info : models()) names.push_back(info.name);
    const std::string nearest = nearest_name(name, names);
    return fail(
        ErrorCode::kUsage,
        "model '{}' is neither built in nor an .onnx or .graph file; {}`plimsoll models` lists the "
        "built-in ones",
        name, nearest.empty() ? "" : fmt::format("did you mean '{}'? ", nearest));
  }
  PLIMSOLL_TRY(const Sizes sizes, decide(*model, options));
  return model->build(model->name, sizes);
}

std::int64_t count_parameters(const ir::Graph& graph) {
  std::int64_t out = 0;
  for (const ir::Value& value : graph.values) {
    if (value.kind == ir::ValueKind::kWeight) out += value.type.shape.elements();
  }
  return out;
}

}  // namespace plimsoll::model
