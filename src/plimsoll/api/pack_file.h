// The flow of `plimsoll pack`: read a problem -> pack it -> (checked inside) -> write offsets.
#pragma once

#include <filesystem>
#include <string>

#include "plimsoll/base/result.h"
#include "plimsoll/pack/pack.h"

namespace plimsoll::api {

// `.json` is our own format, anything else MiniMalloc's CSV (docs/formats/packing.md).
Result<pack::Problem> read_packing_problem(const std::filesystem::path& path);

// The offsets as the ending of `path` says, whole or not at all.
Status write_packing(const std::filesystem::path& path, const pack::Problem& problem,
                     const pack::Packing& packing);
std::string packing_csv(const pack::Problem& problem, const pack::Packing& packing);
std::string packing_json(const pack::Problem& problem, const pack::Packing& packing);

// The independent checker on two files.
Result<pack::Packing> check_packing_file(const std::filesystem::path& problem,
                                         const std::filesystem::path& packing);

// "tiling", "training" or "random" problems; writes CSV, or JSON when the ending says so.
Status generate_problem(const std::string& family, std::size_t n, std::uint64_t seed, double holes,
                        const std::filesystem::path& path);

// What the command line calls the methods: auto, skyline, exact, by-size, ...
Result<pack::Method> packing_method(const std::string& name);

// The error a packing that does not fit is on the command line (exit 4 or 5), core included.
Status packing_verdict(const pack::Problem& problem, const pack::Packing& packing);

}  // namespace plimsoll::api
