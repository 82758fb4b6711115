#include "out_of_memory.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <typeinfo>

namespace plimsoll::torch {
namespace {

struct SourceLocation {  // as c10 has it
  const char* function;
  const char* file;
  std::uint32_t line;
};

using Construct = void (*)(void* self, SourceLocation where, std::string message);
using Destroy = void (*)(void* self);

constexpr std::size_t kRoom = 4096;       // c10::Error has some 200 bytes
constexpr std::size_t kTableHeader = 16;  // offset to top, typeinfo

constexpr const char* kConstructor =
    "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";

// In one of PyTorch's libraries, if it is loaded. Where the class is inline, each library that
// throws it has a copy.
void* find(const char* name) {
  for (const char* library : {"libc10.so", "libc10_cuda.so", "libtorch_cpu.so"}) {
    void* handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    void* found = dlsym(handle, name);
    dlclose(handle);
    if (found != nullptr) return found;
  }
  return nullptr;
}

}  // namespace

void throw_torch_out_of_memory(const char* message) {
  const auto construct = reinterpret_cast<Construct>(find(kConstructor));
  auto* type = static_cast<std::type_info*>(find("_ZTIN3c1016OutOfMemoryErrorE"));
  auto* table = static_cast<char*>(find("_ZTVN3c1016OutOfMemoryErrorE"));
  if (construct == nullptr || type == nullptr || table == nullptr) return;
  table += kTableHeader;
  Destroy destroy = nullptr;
  std::memcpy(&destroy, table, sizeof destroy);
  void* error = abi::__cxa_allocate_exception(kRoom);
  construct(error, {"plimsoll_device_alloc", "plimsoll", 0}, message);
  std::memcpy(error, &table, sizeof table);  // an Error so far
  abi::__cxa_throw(error, type, destroy);
}

}  // namespace plimsoll::torch
