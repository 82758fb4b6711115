#include "plimsoll/api/run_files.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <unordered_map>

#include <fmt/format.h>

#include "plimsoll/base/file.h"
#include "plimsoll/runtime/layout_copy.h"
#include "plimsoll/store/npy.h"
#include "plimsoll/trace/chrome_trace.h"
#include "plimsoll/trace/trace_file.h"

namespace plimsoll::api {
namespace {

using Arrays = std::unordered_map<std::string, store::NamedTensor>;

Result<std::shared_ptr<const Arrays>> read_arrays(const std::string& path) {
  auto read = store::read_npz(path);
  if (!read) return forward(read);
  auto out = std::make_shared<Arrays>();
  for (store::NamedTensor& array : *read) {
    std::string name = array.name;
    out->emplace(std::move(name), std::move(array));
  }
  return std::shared_ptr<const Arrays>(std::move(out));
}

Status write_source(runtime::Executor& executor, ValueId id, const ir::TensorType& type, std::span<const std::byte> bytes) {
  const ir::Value& value = executor.graph().value(id);
  if (type.dtype != value.type.dtype || type.shape != value.type.shape) {
    return bad_input("{} '{}': the file has {}, the model expects {}", ir::name(value.kind), value.name, ir::to_string(type),
                     ir::to_string(value.type));
  }
  runtime::copy_from_row_major(value.type, bytes, executor.source(id));
  return {};
}

// Writes every array that names a source of one of the wanted kinds.
Status write_sources(runtime::Executor& executor, const Arrays& arrays, bool demand_all) {
  const ir::Graph& graph = executor.graph();
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const ir::Value& value = graph.values[v];
    if (!ir::is_persistent(value.kind)) continue;
    const auto place = arrays.find(value.name);
    if (place != arrays.end()) {
      PLIMSOLL_RETURN_IF_ERROR(write_source(executor, ValueId(v), place->second.type, place->second.bytes));
    } else if (demand_all) {
      return bad_input("{} '{}' is not in the checkpoint", ir::name(value.kind), value.name);
    }
  }
  return {};
}

Status feed_arrays(runtime::Executor& executor, const Arrays& arrays) {
  const ir::Graph& graph = executor.graph();
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const ir::Value& value = graph.values[v];
    if (value.kind != ir::ValueKind::kInput) continue;
    const auto place = arrays.find(value.name);
    if (place == arrays.end()) return bad_input("input '{}' is not in the data file", value.name);
    PLIMSOLL_RETURN_IF_ERROR(write_source(executor, ValueId(v), place->second.type, place->second.bytes));
  }
  return {};
}

// How many steps a checkpoint has behind it; kept beside the state so that data goes on where it stopped.
constexpr const char* kStepsDone = "plimsoll.steps";

int steps_done(const Arrays& checkpoint) {
  const auto place = checkpoint.find(kStepsDone);
  if (place == checkpoint.end() || place->second.bytes.size() != sizeof(std::int64_t)) return 0;
  std::int64_t steps = 0;
  std::memcpy(&steps, place->second.bytes.data(), sizeof steps);
  return static_cast<int>(std::clamp<std::int64_t>(steps, 0, 1 << 30));
}

Status save_sources(runtime::Executor& executor, const std::string& path, std::int64_t steps) {
  const ir::Graph& graph = executor.graph();
  std::vector<store::NamedTensor> arrays;
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const ir::Value& value = graph.values[v];
    if (!ir::is_persistent(value.kind)) continue;
    store::NamedTensor array{value.name, {value.type.dtype, value.type.shape, {}}, {}};
    array.bytes = runtime::copy_to_row_major(value.type, executor.source(ValueId(v)));
    arrays.push_back(std::move(array));
  }
  PLIMSOLL_RETURN_IF_ERROR(executor.status());
  const auto* count = reinterpret_cast<const std::byte*>(&steps);
  arrays.push_back({kStepsDone, {ir::DType::kI64, {}, {}}, {count, count + sizeof steps}});
  return store::write_npz(path, arrays);
}

Status save_outputs(runtime::Executor& executor, const std::string& path) {
  const ir::Graph& graph = executor.graph();
  std::vector<store::NamedTensor> arrays;
  for (const ValueId output : graph.outputs) {
    const ir::Value& value = graph.value(output);
    store::NamedTensor array{value.name, {value.type.dtype, value.type.shape, {}}, {}};
    array.bytes = runtime::copy_to_row_major(value.type, executor.result(output));
    arrays.push_back(std::move(array));
  }
  return store::write_npz(path, arrays);
}

}  // namespace

Status bind_files(const RunFiles& files, RunOptions& how) {
  how.fresh_batches = files.data == "fresh";
  if (!files.data.empty() && files.data != "synthetic" && files.data != "fresh") {
    PLIMSOLL_TRY(const std::shared_ptr<const Arrays> arrays, read_arrays(files.data));
    how.feed = [arrays](runtime::Executor& executor, int) { return feed_arrays(executor, *arrays); };
  }
  std::shared_ptr<const Arrays> weights;
  std::shared_ptr<const Arrays> checkpoint;
  if (!files.weights.empty()) {
    PLIMSOLL_TRY(weights, read_arrays(files.weights));
  }
  if (!files.resume.empty()) {
    PLIMSOLL_TRY(checkpoint, read_arrays(files.resume));
    how.first_step = steps_done(*checkpoint);
  }
  if (weights || checkpoint) {
    how.on_start = [weights, checkpoint](runtime::Executor& executor) -> Status {
      if (weights) PLIMSOLL_RETURN_IF_ERROR(write_sources(executor, *weights, false));
      if (checkpoint) PLIMSOLL_RETURN_IF_ERROR(write_sources(executor, *checkpoint, true));
      return {};
    };
  }
  if (!files.save.empty() || !files.outputs.empty()) {
    const std::int64_t steps = std::int64_t{how.first_step} + how.steps;
    how.on_end = [save = files.save, outputs = files.outputs, steps](runtime::Executor& executor) -> Status {
      if (!save.empty()) PLIMSOLL_RETURN_IF_ERROR(save_sources(executor, save, steps));
      if (!outputs.empty()) PLIMSOLL_RETURN_IF_ERROR(save_outputs(executor, outputs));
      return {};
    };
  }
  return {};
}

namespace {

// Piece by piece, so that file and copy never stand in memory both.
Status copy_weight(runtime::Executor& executor, ValueId id, const store::WeightSource& weights,
                   const store::WeightSource::Entry& entry) {
  constexpr std::size_t kPiece = 16 << 20;
  const ir::TensorType& type = executor.graph().value(id).type;
  if (type != entry.type) {
    PLIMSOLL_RETURN_IF_ERROR(write_source(executor, id, entry.type, entry.bytes));
    weights.release(entry.bytes);
    return {};
  }
  const std::span<std::byte> to = executor.source(id);
  for (std::size_t at = 0; at < entry.bytes.size(); at += kPiece) {
    const auto piece = entry.bytes.subspan(at, std::min(kPiece, entry.bytes.size() - at));
    std::memcpy(to.data() + at, piece.data(), piece.size());
    weights.release(piece);
  }
  return {};
}

}  // namespace

std::function<Status(runtime::Executor&)> load_sources(const LoadedModel& model, std::function<Status(runtime::Executor&)> next) {
  return [&model, next = std::move(next)](runtime::Executor& executor) -> Status {
    const ir::Graph& graph = executor.graph();
    for (std::size_t v = 0; v < graph.values.size(); ++v) {
      const ir::Value& value = graph.values[v];
      if (!ir::is_source(value.kind) || value.init.kind != ir::Init::Kind::kFile) continue;
      const store::WeightSource::Entry* entry = model.weights.find(value.name);
      if (entry == nullptr) return bad_input("weight '{}': the model's file does not have it", value.name);
      PLIMSOLL_RETURN_IF_ERROR(copy_weight(executor, ValueId(v), model.weights, *entry));
    }
    return next ? next(executor) : Status{};
  };
}

Status require_inputs(const RunFiles& files, const LoadedModel& model) {
  if (files.outputs.empty() || !files.data.empty()) return {};
  std::vector<std::string> names;
  for (const ir::Value& value : model.graph.values) {
    if (value.kind == ir::ValueKind::kInput) names.push_back(value.name);
  }
  if (names.empty()) return {};
  return fail(ErrorCode::kUsage, "--outputs: no values for the inputs {}; give --inputs FILE.npz, or --random for made-up ones",
              fmt::join(names, ", "));
}

Status write_traces(const trace::Trace& trace, const RunFiles& files) {
  if (!files.trace.empty()) PLIMSOLL_RETURN_IF_ERROR(trace::write_trace(files.trace, trace));
  if (!files.chrome_trace.empty()) PLIMSOLL_RETURN_IF_ERROR(write_file(files.chrome_trace, trace::format_chrome_trace(trace)));
  return {};
}

}  // namespace plimsoll::api
