#include "plimsoll/base/shared_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace plimsoll {
namespace {

std::vector<std::string> places_beside_program(const char* file) {
  std::vector<std::string> out;
  std::error_code code;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", code);
  if (!code) {
    const std::filesystem::path folder = program.parent_path();
    out.push_back(folder / file);
    out.push_back(folder.parent_path() / file);
    out.push_back(folder.parent_path() / "lib" / file);
  }
  out.emplace_back(file);
  return out;
}

}  // namespace

Result<void*> open_beside_program(const SharedLibrary& library) {
  const char* given = std::getenv(library.variable);
  const bool is_given = given != nullptr && *given != '\0';
  std::string why;
  for (const std::string& place :
       is_given ? std::vector<std::string>{given} : places_beside_program(library.file)) {
    std::error_code code;
    const bool named = place.find('/') != std::string::npos;
    if (named && !std::filesystem::exists(place, code)) continue;
    if (void* handle = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    const char* said = ::dlerror();
    if (named && why.empty() && said != nullptr) why = said;
  }
  if (!why.empty()) return fail(ErrorCode::kDevice, "{}: {}", library.what, why);
  if (is_given)
    return fail(ErrorCode::kDevice, "{}: {} names '{}', which is not there", library.what,
                library.variable, given);
  return fail(ErrorCode::kDevice, "{}: {} is not beside the program: {}", library.what,
              library.file, library.remedy);
}

}  // namespace plimsoll
