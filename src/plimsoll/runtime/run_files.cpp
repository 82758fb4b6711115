#include "plimsoll/runtime/run_files.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "plimsoll/base/file.h"
#include "plimsoll/dist/communicator.h"
#include "plimsoll/ops/collective/shard.h"
#include "plimsoll/ops/products/encoded_weight.h"
#include "plimsoll/runtime/dataset.h"
#include "plimsoll/runtime/layout_copy.h"
#include "plimsoll/runtime/model_weights.h"
#include "plimsoll/runtime/output_rows.h"
#include "plimsoll/runtime/sharded_files.h"
#include "plimsoll/store/npz.h"
#include "plimsoll/trace/chrome_trace.h"
#include "plimsoll/trace/trace_file.h"

namespace plimsoll::runtime {
namespace {

using Arrays = std::shared_ptr<const store::NpzFile>;

Result<Arrays> open_arrays(const std::string& path) {
  PLIMSOLL_TRY(store::NpzFile file, store::NpzFile::open(path));
  return std::make_shared<const store::NpzFile>(std::move(file));
}

Status check_type(const ir::Value& value, const ir::TensorType& type) {
  if (type.dtype == value.type.dtype && type.shape == value.type.shape) return {};
  return bad_input("{} '{}': the file has {}, the model expects {}", ir::name(value.kind),
                   value.name, ir::to_string(type), ir::to_string(value.type));
}

// Types are compared first: what a file says is never inflated unless the model has room for it.
Status read_source(Executor& executor, ValueId id, const store::NpzFile& file,
                   const store::NpzEntry& entry) {
  const ir::Value& value = executor.graph().value(id);
  PLIMSOLL_RETURN_IF_ERROR(check_type(value, entry.type));
  return executor.write(id, [&](std::span<std::byte> memory) -> Status {
    if (value.type.layout.is_row_major()) return file.read_into(entry, memory);
    PLIMSOLL_TRY(const store::NamedTensor array, file.read(entry));
    copy_from_row_major(value.type, array.bytes, memory);
    return {};
  });
}

std::vector<ValueId> saved_values(const ir::Graph& graph,
                                  const std::vector<ops::ShardedState>& parts) {
  std::vector<bool> is_part(graph.values.size(), false);
  for (const ops::ShardedState& part : parts) is_part[part.value.index()] = true;
  std::vector<ValueId> out;
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    if (ir::is_persistent(graph.values[v].kind) && !is_part[v]) out.push_back(ValueId(v));
  }
  return out;
}

// Every weight, moment and state, from the array of its name.
Status read_sources(Executor& executor, const store::NpzFile& file, int rank) {
  const ir::Graph& graph = executor.graph();
  const std::vector<ops::ShardedState> parts = ops::sharded_state(graph);
  PLIMSOLL_RETURN_IF_ERROR(read_parts(executor, parts, rank, file));
  for (const ValueId id : saved_values(graph, parts)) {
    const ir::Value& value = graph.value(id);
    const store::NpzEntry* entry = file.find(value.name);
    if (entry == nullptr)
      return bad_input("{} '{}' is not in the checkpoint", ir::name(value.kind), value.name);
    PLIMSOLL_RETURN_IF_ERROR(read_source(executor, id, file, *entry));
  }
  return {};
}

Result<int> steps_done(const store::NpzFile& checkpoint) {
  const store::NpzEntry* entry = checkpoint.find(kStepsDone);
  if (entry == nullptr || ir::bytes_of(entry->type).value != sizeof(std::int64_t)) return 0;
  std::int64_t steps = 0;
  PLIMSOLL_RETURN_IF_ERROR(
      checkpoint.read_into(*entry, std::as_writable_bytes(std::span(&steps, 1))));
  return static_cast<int>(std::clamp<std::int64_t>(steps, 0, 1 << 30));
}

// What would stop a file of these values after the run is said before it: the name, the types, the
// room.
Status check_archive(const ir::Graph& graph, const std::vector<ValueId>& values,
                     const std::string& path) {
  std::uint64_t content = 0;
  std::size_t longest_name = 0;
  for (const ValueId id : values) {
    const ir::Value& value = graph.value(id);
    const auto header = store::npy_header(value.type);
    if (!header)
      return forward(header, fmt::format("{}: {} '{}'", path, ir::name(value.kind), value.name));
    content +=
        static_cast<std::uint64_t>(value.type.shape.elements() * ir::bits(value.type.dtype) / 8);
    longest_name = std::max(longest_name, value.name.size());
  }
  std::size_t arrays = values.size() + 1;
  // Of what this rank has a part of, whole tensors are written.
  for (const ops::ShardedState& state : ops::sharded_state(graph)) {
    if (std::find(values.begin(), values.end(), state.value) == values.end()) continue;
    const std::uint64_t element =
        static_cast<std::uint64_t>(ir::bits(graph.value(state.value).type.dtype) / 8);
    for (const ops::ShardedState::Member& member : state.members) {
      content += element * static_cast<std::uint64_t>(member.count);
      longest_name = std::max(longest_name, member.name.size());
    }
    arrays += state.members.size();
  }
  return check_writable(
      path, store::npz_bytes_at_most(content, arrays, std::max<std::size_t>(longest_name, 32)));
}

std::vector<ValueId> all_state(const ir::Graph& graph) {
  return saved_values(graph, {});
}

// One array at a time, straight from the executor's memory where it lies row by row.
Status add_array(store::NpzWriter& out, const ir::Value& value, std::span<const std::byte> memory) {
  const ir::TensorType plain{value.type.dtype, value.type.shape, {}};
  if (value.type.layout.is_row_major()) return out.add(value.name, plain, memory);
  return out.add(value.name, plain, copy_to_row_major(value.type, memory));
}

// Of ranks that share state all come here, and one writes.
Status save_sources(Executor& executor, const RunFiles& files, std::int64_t steps,
                    dist::Communicator* ranks) {
  const ir::Graph& graph = executor.graph();
  const std::vector<ops::ShardedState> parts = ops::sharded_state(graph);
  // A graph of parts may be run by one process that has all of them.
  const auto alone = ranks == nullptr ? dist::make_self_communicator() : nullptr;
  dist::Communicator& all = ranks == nullptr ? *alone : *ranks;
  if (!files.writes_save)
    return parts.empty() ? Status{} : save_parts(executor, parts, all, nullptr);
  PLIMSOLL_TRY(store::NpzWriter out, store::NpzWriter::create(files.save));
  if (!parts.empty()) PLIMSOLL_RETURN_IF_ERROR(save_parts(executor, parts, all, &out));
  for (const ValueId id : saved_values(graph, parts)) {
    PLIMSOLL_RETURN_IF_ERROR(executor.read(id, [&](std::span<const std::byte> memory) {
      return add_array(out, graph.value(id), memory);
    }));
  }
  PLIMSOLL_RETURN_IF_ERROR(
      out.add(kStepsDone, {ir::DType::kI64, {}, {}}, std::as_bytes(std::span(&steps, 1))));
  return out.commit();
}

Status save_outputs(Executor& executor, const std::string& path) {
  const ir::Graph& graph = executor.graph();
  PLIMSOLL_TRY(store::NpzWriter out, store::NpzWriter::create(path));
  for (const ValueId id : graph.outputs) {
    PLIMSOLL_RETURN_IF_ERROR(executor.result(id, [&](std::span<const std::byte> memory) {
      return add_array(out, graph.value(id), memory);
    }));
  }
  return out.commit();
}

bool is_archive(const std::string& data) {
  return !data.empty() && data != "synthetic" && data != "fresh";
}

bool trains(const ir::Graph& graph) {
  return ir::has_phase(graph, ir::Phase::kUpdate);
}

// Steps, batches and collected outputs of a run on arrays of files.
Status bind_data(const RunFiles& files, RunOptions& how) {
  PLIMSOLL_TRY(Dataset opened, Dataset::open(files.data));
  const auto data = std::make_shared<Dataset>(std::move(opened));
  how.on_start = [data, seed = how.seed](Executor& executor) -> Status {
    if (trains(executor.graph())) data->shuffle_by(seed);
    return data->bind(executor.graph());
  };
  // Ranks take batches in turn: together they see what one rank with all of them would see.
  const BatchPart part = how.part;
  how.feed = [data, part](Executor& executor, int step) {
    return data->feed(executor, std::int64_t{step} * part.ranks + part.rank);
  };
  how.data_facts = [data, part]() -> std::optional<DataFacts> {
    if (!data->has_batches()) return std::nullopt;
    return DataFacts{data->examples(), data->batch() * part.ranks, data->is_shuffled()};
  };
  how.steps_for = [data, files, part, steps = how.steps](const ir::Graph& graph) -> Result<int> {
    if (files.epochs > 0 && !data->has_batches())
      return fail(ErrorCode::kUsage, "--epochs: {} has one batch; give --steps", files.data);
    const bool all = files.every_example && data->has_batches() && !trains(graph);
    const std::int64_t batch = data->batch() * part.ranks;
    const std::int64_t wanted = files.epochs > 0
                                    ? (data->examples() * files.epochs + batch - 1) / batch
                                : all ? data->steps_per_epoch()
                                      : steps;
    if (wanted > (1 << 30)) return fail(ErrorCode::kUsage, "{} steps are too many", wanted);
    return static_cast<int>(wanted);
  };
  return {};
}

// Weights that stay encoded come from the file that they were encoded in, and from no other.
Status check_encoded(const ir::Graph& graph, const RunFiles& files) {
  PLIMSOLL_TRY(const auto encoded, ops::encoded_weights(graph));
  if (encoded.empty()) return {};
  const std::string& name = graph.value(encoded.begin()->first).name;
  if (files.weights.empty())
    return fail(ErrorCode::kUsage, "weight '{}' stays encoded: give its file with --weights", name);
  if (!files.save.empty())
    return fail(ErrorCode::kUsage,
                "--save: weight '{}' stays encoded; `plimsoll weights {} -o FILE` writes it plain",
                name, files.weights);
  return {};
}

// Nothing may write where pages of a file lie.
LoadOptions lay_if_allowed(LoadOptions how, const ir::Graph& graph) {
  how.may_lay_pages = how.may_lay_pages && !trains(graph) && graph.updates.empty();
  return how;
}

// After a step, before anybody believes its results.
void watch_pages(const std::string& file, const std::shared_ptr<const WeightsLoaded>& loaded,
                 RunOptions& how) {
  how.after_step = [file, loaded, next = std::move(how.after_step)](Executor& executor, int step,
                                                                    bool last) -> Status {
    if (loaded->was_cut())
      return bad_input(
          "{}: it became shorter while its weights were in use; is somebody writing it? "
          "--load cached copies them first",
          file);
    return next ? next(executor, step, last) : Status{};
  };
}

Result<std::optional<store::ReadMethod>> parse_load(const std::string& text) {
  if (text == "auto") return std::optional<store::ReadMethod>();
  const auto method = store::parse_read_method(text);
  if (!method)
    return fail(ErrorCode::kUsage, "--load {}: expects auto, mapped, cached, direct or network",
                text);
  return std::optional(*method);
}

// Called when a run begins: what stops an output is said, then sources get what files bring.
std::function<Status(Executor&)> start_with(const RunFiles& files,
                                            std::shared_ptr<const ModelWeights> weights,
                                            const LoadOptions& loading,
                                            std::shared_ptr<WeightsLoaded> loaded,
                                            Arrays checkpoint, int rank,
                                            std::function<Status(Executor&)> data) {
  return [weights = std::move(weights), loading, loaded = std::move(loaded),
          checkpoint = std::move(checkpoint), files, rank,
          data = std::move(data)](Executor& executor) -> Status {
    const ir::Graph& graph = executor.graph();
    if (!files.save.empty() && files.writes_save)
      PLIMSOLL_RETURN_IF_ERROR(check_archive(graph, all_state(graph), files.save));
    if (!files.outputs.empty())
      PLIMSOLL_RETURN_IF_ERROR(check_archive(graph, graph.outputs, files.outputs));
    PLIMSOLL_RETURN_IF_ERROR(check_encoded(graph, files));
    if (weights)
      PLIMSOLL_RETURN_IF_ERROR(weights->load(executor, lay_if_allowed(loading, graph), *loaded));
    if (checkpoint) {
      const Status read = read_sources(executor, *checkpoint, rank);
      if (!read) return forward(read, files.resume);
    }
    return data ? data(executor) : Status{};
  };
}

// Checkpoints on the way and at the end, outputs at the end or, of a data set, collected.
void bind_outputs(const RunFiles& files, RunOptions& how) {
  const auto rows = std::make_shared<OutputRows>();
  const std::int64_t before = how.first_step;
  how.after_step = [files, rows, before, facts = how.data_facts, ranks = how.communicator](
                       Executor& executor, int step, bool last) -> Status {
    const std::int64_t done = before + step + 1;
    const bool now = last || (files.save_every > 0 && done % files.save_every == 0);
    if (!files.save.empty() && now)
      PLIMSOLL_RETURN_IF_ERROR(save_sources(executor, files, done, ranks.get()));
    if (files.outputs.empty()) return {};
    const std::optional<DataFacts> data = facts ? facts() : std::nullopt;
    if (!data || data->shuffled) return last ? save_outputs(executor, files.outputs) : Status{};
    const std::int64_t left = data->examples - data->batch * step;
    if (left > 0)
      PLIMSOLL_RETURN_IF_ERROR(rows->add(executor, data->batch, std::min(left, data->batch)));
    return last ? rows->save(files.outputs) : Status{};
  };
}

}  // namespace

Status bind_files(const RunFiles& files, RunOptions& how) {
  how.fresh_batches = files.data == "fresh";
  std::function<Status(Executor&)> data;
  if (is_archive(files.data)) {
    PLIMSOLL_RETURN_IF_ERROR(bind_data(files, how));
    data = std::move(how.on_start);
  } else if (files.epochs > 0) {
    return fail(ErrorCode::kUsage, "--epochs: there is no --data FILE to count them in");
  }
  std::shared_ptr<const ModelWeights> weights;
  Arrays checkpoint;
  if (!files.weights.empty()) {
    PLIMSOLL_TRY(const std::optional<store::ReadMethod> method, parse_load(files.load));
    PLIMSOLL_TRY(weights, ModelWeights::open(files.weights, method));
    how.loaded = std::make_shared<WeightsLoaded>();
    how.is_loaded = [weights](const ir::Graph& graph) { return weights->names_in(graph); };
  } else if (files.load != "auto") {
    return fail(ErrorCode::kUsage, "--load: there is no --weights file to load");
  }
  if (!files.resume.empty()) {
    PLIMSOLL_TRY(checkpoint, open_arrays(files.resume));
    PLIMSOLL_TRY(how.first_step, steps_done(*checkpoint));
  }
  if (files.allow_missing && !weights)
    return fail(ErrorCode::kUsage,
                "--allow-missing: there is no --weights file that could lack something");
  if (files.save_every > 0 && files.save.empty())
    return fail(ErrorCode::kUsage, "--save-every: there is no --save FILE to write");
  const LoadOptions loading{files.allow_missing, !how.measure && !how.poison};
  const bool watched = weights != nullptr;
  how.on_start = start_with(files, std::move(weights), loading, how.loaded, std::move(checkpoint),
                            how.part.rank, std::move(data));
  if (!files.save.empty() || !files.outputs.empty()) bind_outputs(files, how);
  if (watched) watch_pages(files.weights, how.loaded, how);
  return {};
}

namespace {

// Piece by piece, so that file and copy never stand in memory both.
Status copy_weight(Executor& executor, ValueId id, const store::WeightSource& weights,
                   const store::WeightSource::Entry& entry) {
  constexpr std::size_t kPiece = 16 << 20;
  const ir::TensorType& type = executor.graph().value(id).type;
  if (type != entry.type) {
    PLIMSOLL_RETURN_IF_ERROR(check_type(executor.graph().value(id), entry.type));
    return executor.write(id, [&](std::span<std::byte> memory) -> Status {
      copy_from_row_major(type, entry.bytes, memory);
      weights.release(entry.bytes);
      return {};
    });
  }
  return executor.write(id, [&](std::span<std::byte> memory) -> Status {
    for (std::size_t at = 0; at < entry.bytes.size(); at += kPiece) {
      const auto piece = entry.bytes.subspan(at, std::min(kPiece, entry.bytes.size() - at));
      std::memcpy(memory.data() + at, piece.data(), piece.size());
      weights.release(piece);
    }
    return {};
  });
}

}  // namespace

std::function<Status(Executor&)> load_sources(const store::WeightSource& weights,
                                              std::function<Status(Executor&)> next) {
  return [&weights, next = std::move(next)](Executor& executor) -> Status {
    const ir::Graph& graph = executor.graph();
    PLIMSOLL_TRY(const auto encoded, ops::encoded_weights(graph));
    for (std::size_t v = 0; v < graph.values.size(); ++v) {
      const ir::Value& value = graph.values[v];
      if (!ir::is_source(value.kind) || value.init.kind != ir::Init::Kind::kFile) continue;
      // --weights brings those that stay encoded
      if (encoded.contains(ValueId(v))) continue;
      const store::WeightSource::Entry* entry = weights.find(value.name);
      if (entry == nullptr)
        return bad_input("weight '{}': the model's file does not have it", value.name);
      PLIMSOLL_RETURN_IF_ERROR(copy_weight(executor, ValueId(v), weights, *entry));
    }
    return next ? next(executor) : Status{};
  };
}

Status require_inputs(const RunFiles& files, const ir::Graph& graph) {
  if (files.outputs.empty() || !files.data.empty()) return {};
  std::vector<std::string> names;
  for (const ir::Value& value : graph.values) {
    if (value.kind == ir::ValueKind::kInput) names.push_back(value.name);
  }
  if (names.empty()) return {};
  return fail(ErrorCode::kUsage,
              "--outputs: no values for the inputs {}; give --inputs FILE.npz, or --random for "
              "synthetic ones",
              fmt::join(names, ", "));
}

Status write_traces(const trace::Trace& trace, const RunFiles& files) {
  if (!files.trace.empty()) PLIMSOLL_RETURN_IF_ERROR(trace::write_trace(files.trace, trace));
  if (!files.chrome_trace.empty())
    PLIMSOLL_RETURN_IF_ERROR(write_file(files.chrome_trace, trace::format_chrome_trace(trace)));
  return {};
}

}  // namespace plimsoll::runtime
