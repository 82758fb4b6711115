#include "plimsoll/api/pack_file.h"

#include <algorithm>

#include "plimsoll/base/comma_list.h"
#include "plimsoll/base/file.h"
#include "plimsoll/pack/check/check_packing.h"
#include "plimsoll/pack/formats/csv.h"
#include "plimsoll/pack/formats/json.h"
#include "plimsoll/pack/model/generate.h"

namespace plimsoll::api {
namespace {

constexpr std::size_t kMostNamed = 8;  // buffers of a core that an error message names

bool is_json(const std::filesystem::path& path) {
  return path.extension() == ".json";
}

}  // namespace

Result<pack::Problem> read_packing_problem(const std::filesystem::path& path) {
  PLIMSOLL_TRY(const MappedFile file, MappedFile::open(path));
  auto problem = is_json(path) ? pack::read_json(file.text()) : pack::read_csv(file.text());
  if (!problem) return forward(problem, path.string());
  return problem;
}

Status check_output(const std::filesystem::path& path, const pack::Problem& problem) {
  if (is_json(path)) {
    // Told before the search, not after it.
    const Status writable = pack::check_json_names(problem);
    return writable ? writable : forward(writable, path.string());
  }
  if (path.empty() || problem.memories.size() == 1) return {};
  return fail(ErrorCode::kUsage,
              "{}: a CSV cannot say which of {} memories a buffer is in; use a .json file",
              path.string(), problem.memories.size());
}
Result<std::string> packing_text(const pack::Problem& problem, const pack::Packing& packing) {
  if (problem.memories.size() > 1) return pack::write_packing_json(problem, packing, true);
  return pack::write_csv(problem, &packing);
}
Result<std::string> packing_json(const pack::Problem& problem, const pack::Packing& packing) {
  return pack::write_packing_json(problem, packing, false);
}

Status write_packing(const std::filesystem::path& path, const pack::Problem& problem,
                     const pack::Packing& packing) {
  PLIMSOLL_TRY(const std::string text, is_json(path)
                                           ? pack::write_packing_json(problem, packing, true)
                                           : pack::write_csv(problem, &packing));
  return write_file(path, text);
}

Result<pack::Packing> check_packing_file(const std::filesystem::path& problem_path,
                                         const std::filesystem::path& packing_path) {
  PLIMSOLL_TRY(const pack::Problem problem, read_packing_problem(problem_path));
  PLIMSOLL_TRY(const MappedFile file, MappedFile::open(packing_path));
  auto packing = is_json(packing_path) ? pack::read_packing_json(problem, file.text())
                                       : pack::read_packing_csv(problem, file.text());
  if (!packing) return forward(packing, packing_path.string());
  const Status checked = pack::check_packing(problem, *packing);
  if (!checked) return forward(checked, packing_path.string());
  packing->heights = pack::packed_heights(problem, *packing);
  return packing;
}

Status generate_problem(const std::string& family, std::size_t n, std::uint64_t seed, double holes,
                        const std::filesystem::path& path) {
  const auto known = pack::family_named(family);
  if (!known)
    return fail(ErrorCode::kUsage, "'{}' is no family; choose tiling, training or random", family);
  const pack::Problem problem = pack::generate(*known, n, seed, holes);
  PLIMSOLL_TRY(const std::string text,
               is_json(path) ? pack::write_json(problem) : pack::write_csv(problem, nullptr));
  return write_file(path, text);
}

Status take_hints(pack::Problem& problem, const std::filesystem::path& old_packing) {
  PLIMSOLL_TRY(const MappedFile file, MappedFile::open(old_packing));
  const Status taken = is_json(old_packing) ? pack::take_hints_json(problem, file.text())
                                            : pack::take_hints_csv(problem, file.text());
  if (!taken) return forward(taken, old_packing.string());
  return {};
}

void limit_slabs(pack::Problem& problem, Bytes slab) {
  for (pack::Memory& memory : problem.memories) memory.slab = slab;
}

Status leave_out(pack::PackOptions& options, const std::string& ideas) {
  const std::pair<std::string_view, bool*> known[] = {{"split-parts", &options.split_parts},
                                                      {"slack-guidance", &options.slack_guidance},
                                                      {"snug-fit", &options.snug_fit},
                                                      {"levelling", &options.levelling},
                                                      {"squeaky-wheel", &options.squeaky_wheel},
                                                      {"window-search", &options.window_search},
                                                      {"fail-first", &options.fail_first},
                                                      {"decompose", &options.decompose},
                                                      {"memo", &options.memo},
                                                      {"backjump", &options.backjump},
                                                      {"snug-cover", &options.snug_cover},
                                                      {"guided-dives", &options.guided_dives}};
  for (const std::string_view idea : comma_list(ideas)) {
    const auto found = std::find_if(std::begin(known), std::end(known),
                                    [&](const auto& entry) { return entry.first == idea; });
    if (found == std::end(known)) {
      std::string names;
      for (const auto& [name, flag] : known)
        names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
      return fail(ErrorCode::kUsage, "'{}' is no idea of the search; there are {}", idea, names);
    }
    *found->second = false;
  }
  return {};
}

Result<pack::Method> packing_method(const std::string& name) {
  constexpr std::pair<const char*, pack::Method> kMethods[] = {
      {"auto", pack::Method::kAuto},
      {"skyline", pack::Method::kSkyline},
      {"exact", pack::Method::kExact},
      {"by-size", pack::Method::kBySize},
      {"by-lifetime", pack::Method::kByLifetime},
      {"by-area", pack::Method::kByArea},
      {"execution-order", pack::Method::kExecutionOrder},
      {"first-fit", pack::Method::kFirstFit},
      {"given-order", pack::Method::kGivenOrder}};
  for (const auto& [key, method] : kMethods) {
    if (name == key) return method;
  }
  return fail(ErrorCode::kUsage,
              "'{}' is no method; choose auto, skyline, exact, by-size, by-lifetime, by-area, "
              "execution-order, first-fit or given-order",
              name);
}

Status packing_verdict(const pack::Problem& problem, const pack::Packing& packing) {
  if (packing.fits()) return {};
  if (packing.status == pack::PackStatus::kUnknown)
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
  if (!capacity || packing.lower_bound <= *capacity || packing.lower_bound.value > pack::kLargest)
    return fail(ErrorCode::kDoesNotFit,
                "no packing exists: {} not fit with the places, alignments and slabs asked for: {}",
                who, names);
  return fail(ErrorCode::kDoesNotFit,
              "no packing exists: {} not fit: {} (at least {} bytes are needed, there are {})", who,
              names, packing.lower_bound.value, capacity->value);
}

}  // namespace plimsoll::api
