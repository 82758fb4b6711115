#include "plimsoll/pack/pack_file.h"

#include <algorithm>
#include <filesystem>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/comma_list.h"
#include "plimsoll/base/file.h"
#include "plimsoll/pack/check/check_packing.h"
#include "plimsoll/pack/formats/csv.h"
#include "plimsoll/pack/formats/json.h"
#include "plimsoll/pack/model/generate.h"

namespace plimsoll::pack {
namespace {

constexpr std::size_t kMostNamed = 8;  // buffers of a core that an error message names

bool is_json(const std::filesystem::path& path) {
  return path.extension() == ".json";
}

// A file by its name; standard input, which has none, by how it begins.
bool holds_json(const std::filesystem::path& path, std::string_view text) {
  if (!path.has_extension())
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return is_json(path) || (!path.has_extension() && text.starts_with('{'));
}

Result<Problem> read_packing_problem(const std::filesystem::path& path) {
  PLIMSOLL_TRY(const MappedFile file, MappedFile::open(path));
  auto problem = holds_json(path, file.text()) ? read_json(file.text()) : read_csv(file.text());
  if (!problem) return forward(problem, path.string());
  return problem;
}

Status check_output(const std::filesystem::path& path, const Problem& problem) {
  if (is_json(path)) {
    // Told before the search, not after it.
    const Status writable = check_json_names(problem);
    return writable ? writable : forward(writable, path.string());
  }
  if (path.empty() || problem.memories.size() == 1) return {};
  return fail(ErrorCode::kUsage,
              "{}: a CSV cannot say which of {} memories a buffer is in; use a .json file",
              path.string(), problem.memories.size());
}

Status take_hints(Problem& problem, const std::filesystem::path& old_packing) {
  PLIMSOLL_TRY(const MappedFile file, MappedFile::open(old_packing));
  const Status taken = is_json(old_packing) ? take_hints_json(problem, file.text())
                                            : take_hints_csv(problem, file.text());
  if (!taken) return forward(taken, old_packing.string());
  return {};
}

Status leave_out(PackOptions& options, const std::string& ideas) {
  const std::pair<std::string_view, bool*> known[] = {
      {"split-parts", &options.split_parts},     {"slack-guidance", &options.slack_guidance},
      {"snug-fit", &options.snug_fit},           {"levelling", &options.levelling},
      {"squeaky-wheel", &options.squeaky_wheel}, {"window-search", &options.window_search},
      {"peak-stack", &options.peak_stack},       {"fail-first", &options.fail_first},
      {"decompose", &options.decompose},         {"memo", &options.memo},
      {"backjump", &options.backjump},           {"snug-cover", &options.snug_cover},
      {"guided-dives", &options.guided_dives}};
  for (const std::string_view idea : comma_list(ideas)) {
    const auto found = std::find_if(std::begin(known), std::end(known),
                                    [&](const auto& entry) { return entry.first == idea; });
    if (found == std::end(known)) {
      std::string names;
      for (const auto& [name, flag] : known)
        names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
      return fail(ErrorCode::kUsage, "'{}' is no part of the search; there are {}", idea, names);
    }
    *found->second = false;
  }
  return {};
}

Result<Method> packing_method(const std::string& name) {
  constexpr std::pair<const char*, Method> kMethods[] = {
      {"auto", Method::kAuto},
      {"skyline", Method::kSkyline},
      {"exact", Method::kExact},
      {"by-size", Method::kBySize},
      {"by-lifetime", Method::kByLifetime},
      {"by-area", Method::kByArea},
      {"execution-order", Method::kExecutionOrder},
      {"first-fit", Method::kFirstFit},
      {"given-order", Method::kGivenOrder}};
  for (const auto& [key, method] : kMethods) {
    if (name == key) return method;
  }
  return fail(ErrorCode::kUsage,
              "'{}' is no method; choose auto, skyline, exact, by-size, by-lifetime, by-area, "
              "execution-order, first-fit or given-order",
              name);
}

Status packing_verdict(const Problem& problem, const Packing& packing) {
  if (packing.fits()) return {};
  if (packing.status == PackStatus::kUnknown)
    return fail(ErrorCode::kNoAnswer,
                "no packing within the capacity found in the time given (best height {}, lower "
                "bound {}); give more time or more room",
                packing.height().value, packing.lower_bound.value);
  std::string names;
  for (std::size_t k = 0; k < std::min(packing.core.size(), kMostNamed); ++k)
    names += (k > 0 ? ", " : "") + problem.name(packing.core[k]);
  if (packing.core.size() > kMostNamed) names += ", ...";
  const char* who = packing.core.size() == 1 ? "this buffer alone does" : "these buffers alone do";
  const auto capacity = problem.capacity();
  if (!capacity || packing.lower_bound <= *capacity || packing.lower_bound.value > kLargest)
    return fail(ErrorCode::kDoesNotFit,
                "no packing exists: {} not fit with the places, alignments and slabs asked for: {}",
                who, names);
  return fail(ErrorCode::kDoesNotFit,
              "no packing exists: {} not fit: {} (at least {} bytes are needed, there are {})", who,
              names, packing.lower_bound.value, capacity->value);
}

// What the request adds to the problem in the file.
Status amend(Problem& problem, PackOptions& options, const PackRequest& request) {
  if (!request.capacity.empty()) {
    PLIMSOLL_TRY(const Bytes capacity, parse_byte_size(request.capacity));
    problem.set_capacity(capacity);
  }
  if (!request.slab.empty()) {
    PLIMSOLL_TRY(const Bytes slab, parse_byte_size(request.slab));
    for (Memory& memory : problem.memories) memory.slab = slab;
  }
  if (request.two_ended >= 0) split_ends_by_lifetime(problem, request.two_ended);
  if (!request.old_packing.empty()) {
    PLIMSOLL_RETURN_IF_ERROR(take_hints(problem, request.old_packing));
    options.keep_hints = true;
  }
  return leave_out(options, request.without);
}

}  // namespace

Result<PackReport> pack_file(const PackRequest& request) {
  const auto tell = [&](const std::string& what, std::optional<double> deadline) {
    return request.on_progress ? request.on_progress(what, deadline) : nullptr;
  };
  auto waiting = tell("reading", {});
  PLIMSOLL_TRY(Problem problem, read_packing_problem(request.problem));
  waiting.reset();
  PackOptions options = request.options;
  PLIMSOLL_RETURN_IF_ERROR(amend(problem, options, request));
  PLIMSOLL_RETURN_IF_ERROR(check_output(request.output, problem));
  PLIMSOLL_TRY(options.deadline_seconds, parse_seconds(request.deadline));
  PLIMSOLL_TRY(options.method, packing_method(request.method));
  options.goal = request.minimize ? Goal::kMinimize : Goal::kAuto;
  waiting = tell("packing", options.deadline_seconds);
  PLIMSOLL_TRY(const Packing packing, pack(problem, options));
  waiting.reset();
  PackReport out;
  out.buffers = static_cast<std::int64_t>(problem.size());
  out.packed = !packing.offsets.empty() || problem.size() == 0;
  if (out.packed) out.height = packing.height();
  out.lower_bound = packing.lower_bound;
  if (out.packed) out.gap = packing.gap();
  out.status = name(packing.status);
  out.method = packing.method;
  out.seconds = packing.seconds;
  out.interrupted = packing.interrupted;
  if (request.json) {
    PLIMSOLL_TRY(out.json, write_packing_json(problem, packing, false));
  }
  out.verdict = packing_verdict(problem, packing);
  if (!out.verdict || (request.json && request.output.empty())) return out;
  const bool json = request.output.empty() ? problem.memories.size() > 1 : is_json(request.output);
  PLIMSOLL_TRY(out.offsets,
               json ? write_packing_json(problem, packing, true) : write_csv(problem, &packing));
  if (!request.output.empty()) out.verdict = write_file(request.output, out.offsets);
  return out;
}

Result<Bytes> check_packing_file(const std::string& problem_path, const std::string& packing_path) {
  PLIMSOLL_TRY(const Problem problem, read_packing_problem(problem_path));
  PLIMSOLL_TRY(const MappedFile file, MappedFile::open(packing_path));
  auto packing = holds_json(packing_path, file.text()) ? read_packing_json(problem, file.text())
                                                       : read_packing_csv(problem, file.text());
  if (!packing) return forward(packing, packing_path);
  const Status checked = check_packing(problem, *packing);
  if (!checked) return forward(checked, packing_path);
  packing->heights = packed_heights(problem, *packing);
  return packing->height();
}

Status generate_problem(const std::string& family, std::size_t n, std::uint64_t seed, double holes,
                        const std::string& path) {
  const auto known = family_named(family);
  if (!known)
    return fail(ErrorCode::kUsage, "'{}' is no kind of problem; choose tiling, training or random",
                family);
  const Problem problem = generate(*known, n, seed, holes);
  PLIMSOLL_TRY(const std::string text,
               is_json(path) ? write_json(problem) : write_csv(problem, nullptr));
  return write_file(path, text);
}

}  // namespace plimsoll::pack
