// What `plimsoll pack` does, for the command line: pack/pack_file.h.
#pragma once

#include "plimsoll/pack/pack_file.h"

namespace plimsoll::api {

using pack::check_packing_file;
using pack::generate_problem;
using pack::pack_file;
using pack::PackReport;
using pack::PackRequest;

}  // namespace plimsoll::api
