// What `plimsoll pack` does, for the command line: pack/pack_file.h, and what a file is that is no
// problem.
#pragma once

#include "plimsoll/api/file_kind.h"
#include "plimsoll/pack/pack_file.h"

namespace plimsoll::api {

using pack::check_packing_file;
using pack::generate_problem;
using pack::PackReport;
using pack::PackRequest;

inline Result<PackReport> pack_file(const PackRequest& request) {
  auto report = pack::pack_file(request);
  if (!report)
    return tl::unexpected<Error>(naming_kind(report.error(), request.problem, "packing problem"));
  return report;
}

}  // namespace plimsoll::api
