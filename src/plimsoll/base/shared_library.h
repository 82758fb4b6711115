// Libraries of ours that are opened on demand, so that the program starts without what they need:
// CUDA, MPI, NCCL.
//
// Looked for where the variable of the environment says, else beside the program, one folder above
// it (tests lie one below), in ../lib, and where the loader looks. Never closed: what is inside
// keeps threads and tables. A file that is there but cannot be opened says why, for instance which
// library it lacks. All errors are of the device.
#pragma once

#include "plimsoll/base/result.h"

namespace plimsoll {

struct SharedLibrary {
  const char* file;      // "libplimsoll_mpi.so"
  const char* variable;  // that names another file
  const char* what;      // "MPI"
  const char* remedy;    // what to do where there is none
};

// For dlsym.
Result<void*> open_beside_program(const SharedLibrary& library);

}  // namespace plimsoll
