#include "plimsoll/cli/model_options.h"

#include <algorithm>
#include <initializer_list>

#include "plimsoll/api/file_kind.h"

namespace plimsoll::cli {
namespace {

void bind_sizes(Command& command, api::ModelRequest& request) {
  auto& sizes = request.sizes;
  constexpr const char* kGroup = "Size of a built-in model (`plimsoll models` lists which apply)";
  const auto add = [&](const char* flag, std::optional<std::int64_t>& target, const char* help) {
    command.add_option(flag, target, help).group(kGroup);
  };
  add("--batch", sizes.batch, "examples in a step");
  add("--seq", sizes.seq, "tokens, or steps of an unrolled network");
  add("--image", sizes.image, "height and width");
  add("--frames", sizes.frames, "frames of a spectrogram");
  add("--depth", sizes.depth, "layers of a resnet");
  add("--width", sizes.width, "channels of the first stage, or features");
  add("--layers", sizes.layers, "repeated blocks");
  add("--heads", sizes.heads, "attention heads (default width/64)");
  add("--experts", sizes.experts, "experts of a mixture, of which a token takes one");
  add("--classes", sizes.classes, "classes to tell apart");
  add("--vocab", sizes.vocab, "rows of the token table");
  command.add_option("--dropout", sizes.dropout, "ratio of all dropouts; 0 for none").group(kGroup);
}

void bind_training(Command& command, api::ModelRequest& request) {
  constexpr const char* kGroup = "Training";
  command
      .add_option("--loss", request.loss, "for files: what to train for, or the name of an output")
      .type_name("cross-entropy|mse|OUTPUT")
      .group(kGroup);
  command.add_option("--optimizer", request.optimizer, "default adamw")
      .type_name("sgd|momentum|adam|adamw")
      .group(kGroup);
  command
      .add_option(
          "--lr", request.learning_rate,
          "learning rate (default 0.0003 with adam and adamw, 0.003 with sgd, 0.001 with momentum)")
      .not_negative()
      .group(kGroup);
  command.add_option("--weight-decay", request.weight_decay, "default 0.01 with adamw, else 0")
      .not_negative()
      .group(kGroup);
  command
      .add_option("--clip-norm", request.clip_norm,
                  "clip gradients by their global norm (default 0: no)")
      .not_negative()
      .group(kGroup);
  command
      .add_option("--accumulate", request.accumulate,
                  "micro-batches of --batch in a step (default 1)")
      .between(1, 4096)
      .group(kGroup);
  command
      .add_option("--freeze", request.freeze,
                  "weights that are not trained, by pattern: '*.bias'; may be repeated")
      .type_name("PATTERN")
      .group(kGroup);
  command
      .add_flag("--untie", request.untie,
                "a weight that stands in several places of an .onnx file is one for each")
      .group(kGroup);
}

// Of an inference they would change nothing; most often --train was forgotten.
void refuse_training_options(Command& command, const api::ModelRequest& request) {
  command.before([&command, &request]() -> Status {
    const bool file = request.model.ends_with(".onnx") || request.model.ends_with(".graph");
    if (request.train.value_or(!file)) return {};
    for (const char* option : {"--loss", "--optimizer", "--lr", "--weight-decay", "--clip-norm",
                               "--accumulate", "--freeze"}) {
      if (command.has(option))
        return fail(ErrorCode::kUsage, "{} is for training, and this is an inference of {}; {}",
                    option, request.model,
                    request.train ? "leave out --infer" : "give --train too");
    }
    return {};
  });
}

// What a plan has decided: of the model, and of how it is run.
constexpr std::initializer_list<const char*> kOfModels = {
    "--image",     "--frames",     "--depth", "--width",   "--layers", "--heads",
    "--experts",   "--classes",    "--vocab", "--dropout", "--loss",   "--optimizer",
    "--lr",        "--freeze",     "--untie", "--train",   "--infer",  "--weight-decay",
    "--clip-norm", "--accumulate", "--dim",   "--dtype",   "--amp",    "--routing-capacity"};
constexpr std::initializer_list<const char*> kOfPlans = {
    "--budget",    "--slowdown",        "--techniques",     "--lossy",         "--order",
    "--placement", "--deadline",        "--two-ended",      "--deterministic", "--bucket",
    "--pin",       "--streams",         "--shard",          "--reduction",     "--bucket-bytes",
    "--tune",      "--sparse-as-dense", "--sync-batch-norm"};

// A plan, a schedule, a trace or a snapshot, by its name.
bool is_recorded(const std::string& name) {
  return api::is_read_as_plan(name) || name.ends_with(".jsonl") || name.ends_with(".pickle") ||
         name.ends_with(".gz");
}

Status decided_before(const char* option, const std::string& model) {
  if (api::is_read_as_plan(model))
    return fail(ErrorCode::kUsage, "{}: the plan {} has decided that; plan again with it", option,
                model);
  return fail(ErrorCode::kUsage, "{} is for a model, and {} is what was recorded of a run", option,
              model);
}

}  // namespace

Option bind_model_options(Command& command, api::ModelRequest& request) {
  Option model =
      command.add_option("MODEL", request.model, "a built-in model, a .graph file or an .onnx file")
          .required();
  Option train = command.add_flag_callback(
      "--train", [&request] { request.train = true; },
      "the graph of a training step (default for built-in models)");
  command
      .add_flag_callback(
          "--infer", [&request] { request.train = false; },
          "the forward graph alone (default for files)")
      .excludes(train);
  command
      .add_option("--dim", request.dims,
                  "NAME=SIZE of a symbolic dimension of an .onnx file; may be repeated")
      .type_name("NAME=SIZE");
  command
      .add_option("--routing-capacity", request.capacity,
                  "of an .onnx file: room for what NonZero finds in a run, a number or a share of "
                  "all there can be; what finds more gives NaN (default 100%)")
      .type_name("N|PERCENT");
  command.add_option("--dtype", request.dtype, "of weights and activations (default fp32)")
      .type_name("fp64|fp32|fp16|bf16");
  command.add_option("--amp", request.amp, "compute in this type and keep weights in --dtype")
      .type_name("bf16|fp16");
  command.add_option("--seed", request.seed, "of weights, data and dropout (default 1)");
  command.add_option("--threads", request.threads, "default: all cores").between(0, 1024);
  bind_sizes(command, request);
  bind_training(command, request);
  refuse_training_options(command, request);
  return model;
}

Status refuse_words_beside_plan(const Command& command, const std::string& model) {
  if (!is_recorded(model)) return {};
  for (const auto& names : {kOfModels, kOfPlans}) {
    for (const char* name : names) {
      if (command.has(name)) return decided_before(name, model);
    }
  }
  return {};
}

Status refuse_words_beside_plans(const Command& command, const std::vector<std::string>& subjects) {
  if (!std::all_of(subjects.begin(), subjects.end(), is_recorded)) return {};
  for (const char* name : {"--batch", "--seq"}) {
    if (command.has(name)) return decided_before(name, subjects.back());
  }
  return refuse_words_beside_plan(command, subjects.back());
}

void bind_encoded_weights(Command& command, api::ModelRequest& request) {
  command
      .add_option("--encoded-weights", request.encoded_weights,
                  "which weights of an inference stay in memory as the file of --weights has them: "
                  "as few as make --budget fit (default), all that are encoded there, or none")
      .type_name("auto|all|none");
  command.add_flag("--int8-activations", request.int8_activations,
                   "products with weights that stay encoded as int8 or q8_0 round their other "
                   "operand to int8, by its largest value in each step; run says what it loses");
}

void bind_tf32(Command& command, api::ModelRequest& request) {
  command.add_flag("--tf32", request.tf32,
                   "on --device cuda: products of fp32 round their operands to TF32");
}

}  // namespace plimsoll::cli
