#include "plimsoll/api/weights.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/api/file_kind.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/base/json.h"
#include "plimsoll/base/utf8.h"
#include "plimsoll/model/onnx_import.h"
#include "plimsoll/store/npz.h"
#include "plimsoll/store/plim_file.h"
#include "plimsoll/store/safetensors.h"
#include "plimsoll/store/weight_form.h"
#include "plimsoll/store/weights_file.h"

namespace plimsoll::api {
namespace {

using store::Form;
using store::FormError;
using store::WeightsFile;
using store::WeightTensor;

// 32 chunks of 256 KiB say enough about a file of any size; a smaller file is measured whole.
constexpr std::uint64_t kSampledChunks = 32;
constexpr std::uint64_t kMeasuredWhole = 8 << 20;

Result<WeightsFile> open_weights(const std::string& path) {
  if (!path.ends_with(".onnx")) {
    auto file = WeightsFile::open(path);
    if (!file) return tl::unexpected<Error>(naming_kind(file.error(), path, "weights"));
    return file;
  }
  PLIMSOLL_TRY(store::WeightSource source, model::read_onnx_weights(path));
  std::error_code ignored;
  const std::uint64_t bytes = std::filesystem::file_size(path, ignored);
  auto file = WeightsFile::from_source(std::move(source), "onnx", bytes);
  if (!file) return forward(file, path);
  return file;
}

WeightsError error_of(const FormError& error) {
  return {error.max_error(), error.rms_error(), error.cosine()};
}

// ---- what is inside

struct SampledChunk {
  const WeightTensor* tensor;
  std::uint64_t chunk;
};
// Those that lie at even distances in the bytes of all tensors, so that each counts by its size.
std::vector<SampledChunk> sample(const WeightsFile& file, bool all) {
  std::uint64_t total = 0;
  for (const WeightTensor& tensor : file.tensors()) total += tensor.bytes;
  const bool whole = all || total <= kMeasuredWhole;
  std::vector<SampledChunk> out;
  std::uint64_t before = 0;
  std::uint64_t next = 0;  // the place in all bytes whose chunk is taken next
  std::uint64_t taken = 0;
  for (const WeightTensor& tensor : file.tensors()) {
    for (std::uint64_t chunk = 0; chunk < store::chunks_of(tensor.bytes); ++chunk) {
      before += store::chunk_bytes(tensor.bytes, chunk);
      if (!whole && next >= before) continue;
      out.push_back({&tensor, chunk});
      while (!whole && next < before) next = ++taken * (total / kSampledChunks);
    }
  }
  return out;
}

// Of many tensors (weights.h).
class ErrorOfTensors {
 public:
  void add(const FormError& tensor) {
    max_error_ = std::max(max_error_, tensor.max_error());
    if (tensor.squares == 0) return;
    squares_ += tensor.values * std::pow(tensor.rms_error(), 2);
    cosines_ += tensor.values * tensor.cosine();
    values_ += tensor.values;
  }
  WeightsError total() const {
    if (values_ == 0) return {max_error_, 0, 1};
    return {max_error_, std::sqrt(squares_ / values_), cosines_ / values_};
  }

 private:
  double max_error_ = 0;
  double squares_ = 0;
  double cosines_ = 0;
  double values_ = 0;
};

struct FormTotals {
  std::map<store::Element, std::pair<std::uint64_t, std::uint64_t>> bytes;  // before, after
  ErrorOfTensors error;
  FormError of_tensor;  // that is looked at
  double decoding = 0;  // seconds
};

Status try_forms(const WeightsFile& file, const std::vector<SampledChunk>& chunks,
                 std::map<Form, FormTotals>& out, WeightsReport& report) {
  store::Entropy entropy;
  std::vector<std::byte> values;
  std::vector<std::byte> back;
  const WeightTensor* before_it = nullptr;
  const auto end_tensor = [&] {
    for (auto& [form, totals] : out) totals.error.add(std::exchange(totals.of_tensor, {}));
  };
  for (const auto& [tensor, chunk] : chunks) {
    if (std::exchange(before_it, tensor) != tensor) end_tensor();
    PLIMSOLL_RETURN_IF_ERROR(file.read_chunk(*tensor, chunk, values));
    entropy.add(tensor->element, values);
    report.sampled_bytes += values.size();
    back.resize(values.size());
    for (const Form form : store::all_forms()) {
      if (form == Form::kRaw || !store::takes(form, tensor->element, tensor->dims)) continue;
      const store::Chunk coded =
          store::encode_chunk(form, tensor->element, tensor->dims, chunk, values);
      FormTotals& totals = out[form];
      const Stopwatch watch;
      if (!store::decode_chunk(coded.form, tensor->element, tensor->dims, chunk, coded.bytes, back))
        return fail(ErrorCode::kInternal, "{}: what was encoded does not decode", name(form));
      totals.decoding += watch.seconds();
      auto& [before, after] = totals.bytes[tensor->element];
      before += values.size();
      after += coded.bytes.size();
      totals.of_tensor.add(tensor->element, values, back);
    }
  }
  end_tensor();
  if (report.sampled_bytes > 0)
    report.entropy_share = entropy.bytes() / static_cast<double>(report.sampled_bytes);
  return {};
}

// All tensors by the ratios of the sample, element type by element type.
WeightsOfForm form_line(const WeightsFile& file, Form form, const FormTotals& totals) {
  WeightsOfForm out{std::string(name(form)), store::is_lossless(form), 0, totals.error.total()};
  double bytes = 0;
  std::uint64_t sampled_bytes = 0;
  for (const auto& [element, of_element] : totals.bytes) sampled_bytes += of_element.first;
  std::uint64_t taken_bytes = 0;
  for (const WeightTensor& tensor : file.tensors()) {
    if (store::takes(form, tensor.element, tensor.dims)) taken_bytes += tensor.bytes;
    double share = 1;
    const auto sampled = totals.bytes.find(tensor.element);
    if (sampled != totals.bytes.end() && sampled->second.first > 0 &&
        store::takes(form, tensor.element, tensor.dims))
      share =
          static_cast<double>(sampled->second.second) / static_cast<double>(sampled->second.first);
    bytes += share * static_cast<double>(tensor.bytes);
  }
  out.bytes = static_cast<std::uint64_t>(std::llround(bytes));
  if (sampled_bytes > 0)
    out.decode_seconds =
        totals.decoding * static_cast<double>(taken_bytes) / static_cast<double>(sampled_bytes);
  return out;
}

Status look(const WeightsFile& file, const WeightsRequest& request, WeightsReport& report) {
  for (const WeightTensor& tensor : file.tensors())
    report.tensors.push_back({tensor.name,
                              std::string(name(tensor.element)),
                              tensor.dims,
                              tensor.bytes,
                              tensor.stored_bytes,
                              tensor.form,
                              {}});
  std::map<Form, FormTotals> totals;
  PLIMSOLL_RETURN_IF_ERROR(try_forms(file, sample(file, request.all), totals, report));
  report.by_form.push_back({"raw", true, report.bytes, {}, 0});
  for (const auto& [form, of_form] : totals)
    report.by_form.push_back(form_line(file, form, of_form));
  return {};
}

// ---- into another file

struct EncodedTensor {
  Form form = Form::kRaw;
  std::vector<store::Chunk> chunks;
  std::uint64_t bytes = 0;
  FormError error;
};

// Values of at most this size are that share of the tensor; nothing: none are to be pruned.
Result<std::optional<float>> pruning_limit(const WeightsFile& file, const WeightTensor& tensor,
                                           double share) {
  std::vector<float> sizes;
  if (share > 0 && tensor.dims.size() >= 2) {
    PLIMSOLL_RETURN_IF_ERROR(
        file.for_chunks(tensor, [&](std::span<const std::byte> values) -> Status {
          store::add_sizes(tensor.element, values, sizes);
          return {};
        }));
  }
  const auto count = static_cast<std::size_t>(share * static_cast<double>(sizes.size()));
  if (count == 0) return std::optional<float>();
  const auto limit = sizes.begin() + static_cast<std::ptrdiff_t>(count - 1);
  std::nth_element(sizes.begin(), limit, sizes.end());
  return std::optional<float>(*limit);
}

Result<EncodedTensor> encode_tensor(const WeightsFile& file, const WeightTensor& tensor, Form form,
                                    std::optional<float> limit = std::nullopt) {
  EncodedTensor out;
  out.form = form;
  std::vector<std::byte> back;
  std::vector<std::byte> pruned;
  PLIMSOLL_RETURN_IF_ERROR(file.for_chunks(tensor, [&](std::span<const std::byte> was) -> Status {
    const std::uint64_t number = out.chunks.size();
    std::span<const std::byte> values = was;
    if (limit) {
      pruned.assign(was.begin(), was.end());
      store::prune(tensor.element, *limit, pruned);
      values = pruned;
    }
    store::Chunk chunk = store::encode_chunk(form, tensor.element, tensor.dims, number, values);
    back.resize(values.size());
    const bool decoded =
        store::decode_chunk(chunk.form, tensor.element, tensor.dims, number, chunk.bytes, back);
    if (!decoded ||
        (store::is_lossless(form) && !std::equal(back.begin(), back.end(), values.begin())))
      return fail(ErrorCode::kInternal, "tensor '{}': {} does not give back what it was given",
                  printable(tensor.name), name(form));
    out.error.add(tensor.element, was, back);
    out.bytes += chunk.bytes.size();
    out.chunks.push_back(std::move(chunk));
    return {};
  }));
  return out;
}

bool is_within(const FormError& error, std::optional<double> most) {
  return !error.not_finite && (!most || error.max_error() <= *most);
}

// The forms that may be tried for a tensor; raw is what is left when none serves.
Result<std::vector<Form>> candidates(const WeightsRequest& request) {
  if (request.form != "auto") {
    PLIMSOLL_TRY(const Form form, store::parse_form(request.form.empty() ? "raw" : request.form));
    return std::vector<Form>{form};
  }
  std::vector<Form> out;
  for (const Form form : store::all_forms())
    if (form != Form::kRaw && (store::is_lossless(form) || request.max_error)) out.push_back(form);
  return out;
}

Result<EncodedTensor> best_form(const WeightsFile& file, const WeightTensor& tensor,
                                const std::vector<Form>& forms, const WeightsRequest& request,
                                WeightsReport& report) {
  std::optional<EncodedTensor> best;
  bool too_far = false;
  PLIMSOLL_TRY(const std::optional<float> limit, pruning_limit(file, tensor, request.prune));
  for (const Form form : forms) {
    if (!store::takes(form, tensor.element, tensor.dims)) continue;
    PLIMSOLL_TRY(EncodedTensor encoded, encode_tensor(file, tensor, form, limit));
    if (!is_within(encoded.error, request.max_error)) {
      too_far = true;
    } else if (!best || encoded.bytes < best->bytes) {
      best = std::move(encoded);
    }
  }
  if (best && (best->bytes < tensor.bytes || limit)) return *std::move(best);
  if (too_far && !best) report.kept.push_back(tensor.name);
  return encode_tensor(file, tensor, Form::kRaw);
}

void note(const WeightTensor& tensor, std::string_view dtype, std::string_view form,
          std::uint64_t stored, const FormError& error, ErrorOfTensors& total,
          WeightsReport& report) {
  report.tensors.push_back({tensor.name, std::string(dtype), tensor.dims, tensor.bytes, stored,
                            std::string(form), error_of(error)});
  total.add(error);
}

Status write_plim(const WeightsFile& file, const WeightsRequest& request, ErrorOfTensors& total,
                  WeightsReport& report) {
  PLIMSOLL_TRY(const std::vector<Form> forms, candidates(request));
  PLIMSOLL_TRY(store::PlimWriter writer, store::PlimWriter::create(request.output));
  for (const WeightTensor& tensor : file.tensors()) {
    PLIMSOLL_TRY(const EncodedTensor encoded, best_form(file, tensor, forms, request, report));
    PLIMSOLL_RETURN_IF_ERROR(writer.begin(tensor.name, tensor.element, encoded.form, tensor.dims));
    for (const store::Chunk& chunk : encoded.chunks) PLIMSOLL_RETURN_IF_ERROR(writer.put(chunk));
    note(tensor, name(tensor.element), name(encoded.form), encoded.bytes, encoded.error, total,
         report);
  }
  PLIMSOLL_RETURN_IF_ERROR(writer.commit(file.source_header()));
  report.output_bytes = writer.bytes_written();
  return {};
}

// Whether every tensor can become two bytes a value: a chunk that stays raw keeps the whole as it
// is.
struct Narrowed {
  std::optional<store::Element> element;
  EncodedTensor encoded;
};
Result<Narrowed> narrow(const WeightsFile& file, const WeightTensor& tensor, Form form,
                        const WeightsRequest& request, WeightsReport& report) {
  Narrowed out;
  if (form == Form::kRaw || tensor.bytes == 0 || !store::takes(form, tensor.element, tensor.dims))
    return out;
  PLIMSOLL_TRY(out.encoded, encode_tensor(file, tensor, form));
  const bool whole = std::all_of(out.encoded.chunks.begin(), out.encoded.chunks.end(),
                                 [&](const store::Chunk& chunk) { return chunk.form == form; });
  if (!whole) return out;
  if (!is_within(out.encoded.error, request.max_error)) {
    report.kept.push_back(tensor.name);
    return out;
  }
  out.element = name(form) == "bf16" ? store::Element::kBF16 : store::Element::kF16;
  return out;
}

// The header of the file that this one was made of, if the tensors still are what it says.
Result<std::string> header_for(const WeightsFile& file,
                               std::vector<store::SafetensorsEntry>& entries) {
  if (const auto old = store::read_safetensors_header(file.source_header())) {
    auto sorted = entries;
    PLIMSOLL_RETURN_IF_ERROR(store::place_safetensors(sorted));
    std::map<std::string_view, const store::SafetensorsEntry*> by_name;
    for (const auto& entry : sorted) by_name[entry.name] = &entry;
    const bool same = old->entries.size() == sorted.size() &&
                      std::all_of(old->entries.begin(), old->entries.end(), [&](const auto& entry) {
                        const auto found = by_name.find(entry.name);
                        return found != by_name.end() && found->second->element == entry.element &&
                               found->second->dims == entry.dims;
                      });
    if (same) {
      entries = old->entries;
      return file.source_header();
    }
  }
  PLIMSOLL_RETURN_IF_ERROR(store::place_safetensors(entries));
  return store::safetensors_header(entries, {{"format", "pt"}});
}

Status write_safetensors(const WeightsFile& file, const WeightsRequest& request,
                         ErrorOfTensors& total, WeightsReport& report) {
  PLIMSOLL_TRY(const Form form, store::parse_form(request.form.empty() ? "raw" : request.form));
  if (form != Form::kRaw && name(form) != "fp16" && name(form) != "bf16")
    return fail(
        ErrorCode::kUsage,
        "{}: a safetensors file has no form {}, only raw, fp16 and bf16; write a .plim file",
        request.output, request.form);
  std::vector<store::SafetensorsEntry> entries;
  std::set<std::string_view> narrowed;
  for (const WeightTensor& tensor : file.tensors()) {
    PLIMSOLL_TRY(const Narrowed narrow_one, narrow(file, tensor, form, request, report));
    const store::Element element = narrow_one.element.value_or(tensor.element);
    entries.push_back({tensor.name, element, tensor.dims, 0, 0});
    if (narrow_one.element) narrowed.insert(tensor.name);
    note(tensor, name(element), narrow_one.element ? name(form) : "raw",
         narrow_one.element ? narrow_one.encoded.bytes : tensor.bytes,
         narrow_one.element ? narrow_one.encoded.error : FormError{}, total, report);
  }
  PLIMSOLL_TRY(const std::string header, header_for(file, entries));
  PLIMSOLL_TRY(store::SafetensorsWriter writer,
               store::SafetensorsWriter::create(request.output, header));
  for (const store::SafetensorsEntry& entry : entries) {
    const WeightTensor& tensor = *file.find(entry.name);
    const Form as = narrowed.contains(tensor.name) ? form : Form::kRaw;
    std::uint64_t number = 0;
    PLIMSOLL_RETURN_IF_ERROR(file.for_chunks(tensor, [&](std::span<const std::byte> values) {
      if (as == Form::kRaw) return writer.write(values);
      return writer.write(
          store::encode_chunk(as, tensor.element, tensor.dims, number++, values).bytes);
    }));
  }
  PLIMSOLL_RETURN_IF_ERROR(writer.commit());
  report.output_bytes = writer.bytes_written();
  return {};
}

Status write_npz(const WeightsFile& file, const WeightsRequest& request, ErrorOfTensors& total,
                 WeightsReport& report) {
  if (!request.form.empty() && request.form != "raw")
    return fail(ErrorCode::kUsage, "{}: an .npz file has no form {}, only raw", request.output,
                request.form);
  PLIMSOLL_TRY(store::NpzWriter writer, store::NpzWriter::create(request.output));
  std::vector<std::byte> all;
  for (const WeightTensor& tensor : file.tensors()) {
    auto type = store::tensor_type(tensor.element, tensor.dims);
    if (!type) return forward(type, fmt::format("tensor '{}'", printable(tensor.name)));
    all.resize(tensor.bytes);
    PLIMSOLL_RETURN_IF_ERROR(file.read_into(tensor, all));
    const Status added = writer.add(tensor.name, *type, all);
    if (!added) return forward(added, fmt::format("tensor '{}'", printable(tensor.name)));
    note(tensor, name(tensor.element), "raw", tensor.bytes, {}, total, report);
  }
  PLIMSOLL_RETURN_IF_ERROR(writer.commit());
  std::error_code ignored;
  report.output_bytes = std::filesystem::file_size(request.output, ignored);
  return {};
}

Status convert(const WeightsFile& file, const WeightsRequest& request, WeightsReport& report) {
  ErrorOfTensors total;
  Status written = fail(
      ErrorCode::kUsage,
      "{}: the name says the format, and .plim, .safetensors and .npz are written", request.output);
  if (request.output.ends_with(".plim")) written = write_plim(file, request, total, report);
  if (request.output.ends_with(".safetensors"))
    written = write_safetensors(file, request, total, report);
  if (request.output.ends_with(".npz")) written = write_npz(file, request, total, report);
  if (!written) return written;
  report.error = total.total();
  report.output = request.output;
  return {};
}

nlohmann::json json_of(const WeightsError& error) {
  return {{"max_error", error.max_error}, {"rms_error", error.rms_error}, {"cosine", error.cosine}};
}

}  // namespace

Result<WeightsReport> weights_of_file(const WeightsRequest& request) {
  const auto begin = std::chrono::steady_clock::now();
  if (request.output.empty() && (!request.form.empty() || request.max_error))
    return fail(ErrorCode::kUsage,
                "--form and --max-error say how to write a file: name one with -o");
  if (request.prune > 0 && !request.output.ends_with(".plim"))
    return fail(ErrorCode::kUsage, "--prune: only .plim files are written with pruned weights");
  if (!request.output.empty() && request.form != "auto" && !request.form.empty()) {
    const auto form = store::parse_form(request.form);
    if (!form) return fail(form.error().code, "--form: {}, and auto", form.error().message);
  }
  PLIMSOLL_TRY(const WeightsFile file, open_weights(request.file));
  WeightsReport report;
  report.file = request.file;
  report.format = file.format();
  for (const WeightTensor& tensor : file.tensors()) {
    report.bytes += tensor.bytes;
    report.bytes_by_dtype[std::string(name(tensor.element))] += tensor.bytes;
  }
  PLIMSOLL_RETURN_IF_ERROR(request.output.empty() ? look(file, request, report)
                                                  : convert(file, request, report));
  std::set<std::string_view> forms;
  for (const WeightsTensor& tensor : report.tensors) {
    report.stored_bytes += tensor.stored_bytes;
    forms.insert(tensor.form);
  }
  report.form = !request.form.empty() ? request.form
                : forms.size() == 1   ? std::string(*forms.begin())
                : forms.empty()       ? "raw"
                                      : "mixed";
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report;
}

std::string to_json(const WeightsReport& report) {
  nlohmann::json out = json_of(report.error);
  out["schema"] = 1;
  out["file"] = report.file;
  out["format"] = report.format;
  out["tensors"] = report.tensors.size();
  out["bytes"] = report.bytes;
  out["stored_bytes"] = report.stored_bytes;
  out["form"] = report.form;
  out["seconds"] = report.seconds;
  out["by_dtype"] = report.bytes_by_dtype;
  out["by_form"] = nlohmann::json::object();
  for (const WeightsOfForm& form : report.by_form) {
    nlohmann::json& line = out["by_form"][form.form] = json_of(form.error);
    line["bytes"] = form.bytes;
    line["lossless"] = form.lossless;
    line["decode_seconds"] = form.decode_seconds;
  }
  out["by_tensor"] = nlohmann::json::array();
  for (const WeightsTensor& tensor : report.tensors) {
    nlohmann::json line = json_of(tensor.error);
    line["name"] = tensor.name;
    line["dtype"] = tensor.dtype;
    line["shape"] = tensor.shape;
    line["bytes"] = tensor.bytes;
    line["stored_bytes"] = tensor.stored_bytes;
    line["form"] = tensor.form;
    out["by_tensor"].push_back(std::move(line));
  }
  if (report.output.empty()) {
    out["sampled_bytes"] = report.sampled_bytes;
    out["entropy_share"] = report.entropy_share;
  } else {
    out["output"] = report.output;
    out["output_bytes"] = report.output_bytes;
    out["kept"] = report.kept;
  }
  return json_text(out);
}

}  // namespace plimsoll::api
