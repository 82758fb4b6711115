// The flow of `plimsoll pack`: read a problem -> pack it -> (checked inside) -> write offsets.
#pragma once

#include <filesystem>
#include <string>

#include "plimsoll/base/result.h"
#include "plimsoll/pack/pack.h"

namespace plimsoll::api {

// `.json` is our own format, anything else MiniMalloc's CSV (docs/formats/packing.md).
Result<pack::Problem> read_packing_problem(const std::filesystem::path& path);

// The offsets as the ending of `path` says, whole or not at all. The CSV has no column for
// memories, so that check_output() asks for JSON where there are several; on stdout it is JSON
// then.
Status write_packing(const std::filesystem::path& path, const pack::Problem& problem,
                     const pack::Packing& packing);
Status check_output(const std::filesystem::path& path, const pack::Problem& problem);
// for stdout
Result<std::string> packing_text(const pack::Problem& problem, const pack::Packing& packing);
Result<std::string> packing_json(const pack::Problem& problem, const pack::Packing& packing);

// The independent checker on two files.
Result<pack::Packing> check_packing_file(const std::filesystem::path& problem,
                                         const std::filesystem::path& packing);

// "tiling", "training" or "random" problems; writes CSV, or JSON when the ending says so.
Status generate_problem(const std::string& family, std::size_t n, std::uint64_t seed, double holes,
                        const std::filesystem::path& path);

// Re-packing: the offsets of an older packing become hints, by id.
Status take_hints(pack::Problem& problem, const std::filesystem::path& old_packing);

// One size of slab for every memory: no buffer crosses a multiple of it.
void limit_slabs(pack::Problem& problem, Bytes slab);

// Turns single ideas of the search off: "memo,backjump", by their names in pack.h with hyphens.
Status leave_out(pack::PackOptions& options, const std::string& ideas);

// What the command line calls the methods: auto, skyline, exact, by-size, ...
Result<pack::Method> packing_method(const std::string& name);

// The error a packing that does not fit is on the command line (exit 4 or 5), core included.
Status packing_verdict(const pack::Problem& problem, const pack::Packing& packing);

}  // namespace plimsoll::api
