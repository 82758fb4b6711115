#pragma once

// Where tests find the files they read and may write: the source tree and the build folder.
// The definitions are written at configure time (cmake/test_paths.cpp.in) and linked into test
// programs only.

#include <filesystem>

namespace plimsoll {

std::filesystem::path test_source_dir();
std::filesystem::path test_binary_dir();

}  // namespace plimsoll
