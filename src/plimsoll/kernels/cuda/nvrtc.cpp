#include "plimsoll/kernels/cuda/nvrtc.h"

#include <array>
#include <mutex>
#include <unordered_map>

#include <nvrtc.h>

namespace plimsoll::kernels::cuda {
namespace {

struct Program {
  nvrtcProgram handle = nullptr;
  ~Program() {
    if (handle != nullptr) nvrtcDestroyProgram(&handle);
  }
};

std::string log_of(nvrtcProgram program) {
  std::size_t size = 0;
  if (nvrtcGetProgramLogSize(program, &size) != NVRTC_SUCCESS) return "no log";
  std::string log(size, '\0');
  nvrtcGetProgramLog(program, log.data());
  return log;
}

Result<cudaKernel_t> load(const std::vector<char>& code, const char* name) {
  // Never unloaded: kernels of a process live as long as it does.
  cudaLibrary_t library = nullptr;
  cudaKernel_t kernel = nullptr;
  cudaError_t error =
      cudaLibraryLoadData(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (error == cudaSuccess) error = cudaLibraryGetKernel(&kernel, library, name);
  if (error != cudaSuccess) {
    return fail(ErrorCode::kDevice, "a generated kernel cannot be loaded: {}",
                cudaGetErrorString(error));
  }
  // Code is loaded lazily: ask for something that needs it now, not in the first step. That is all
  // the question is for, so its answer does not matter.
  cudaFuncAttributes attributes{};
  if (cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel)) != cudaSuccess)
    cudaGetLastError();
  return kernel;
}

}  // namespace

Result<std::vector<char>> compile_source(const std::string& source,
                                         const std::string& architecture) {
  Program program;
  nvrtcResult made =
      nvrtcCreateProgram(&program.handle, source.c_str(), "pointwise.cu", 0, nullptr, nullptr);
  const std::string target = "--gpu-architecture=" + architecture;
  const std::array<const char*, 2> options{target.c_str(), "--std=c++17"};
  if (made == NVRTC_SUCCESS) {
    made = nvrtcCompileProgram(program.handle, static_cast<int>(options.size()), options.data());
  }
  if (made != NVRTC_SUCCESS) {
    return fail(ErrorCode::kInternal, "NVRTC: {}\n{}\n{}", nvrtcGetErrorString(made),
                program.handle == nullptr ? "" : log_of(program.handle), source);
  }
  std::size_t size = 0;
  nvrtcGetCUBINSize(program.handle, &size);
  std::vector<char> code(size);
  nvrtcGetCUBIN(program.handle, code.data());
  return code;
}

Result<CurrentDevice> current_device() {
  int device = 0;
  int major = 0;
  int minor = 0;
  CurrentDevice out;
  cudaError_t error = cudaGetDevice(&device);
  for (const auto& [attribute, value] :
       {std::pair{cudaDevAttrComputeCapabilityMajor, &major},
        std::pair{cudaDevAttrComputeCapabilityMinor, &minor},
        std::pair{cudaDevAttrMultiProcessorCount, &out.multiprocessors}}) {
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(value, attribute, device);
  }
  if (error != cudaSuccess)
    return fail(ErrorCode::kDevice, "CUDA device: {}", cudaGetErrorString(error));
  out.architecture = fmt::format("sm_{}{}", major, minor);
  return out;
}

Result<cudaKernel_t> load_source(const std::string& source, const char* name) {
  static std::mutex mutex;
  static std::unordered_map<std::string, cudaKernel_t> loaded;
  PLIMSOLL_TRY(const CurrentDevice device, current_device());
  const std::string key = device.architecture + '\n' + source;
  const std::lock_guard lock(mutex);
  if (const auto known = loaded.find(key); known != loaded.end()) return known->second;
  PLIMSOLL_TRY(const std::vector<char> code, compile_source(source, device.architecture));
  PLIMSOLL_TRY(const cudaKernel_t kernel, load(code, name));
  loaded.emplace(key, kernel);
  return kernel;
}

}  // namespace plimsoll::kernels::cuda
