#include "plimsoll/device/cuda/card_usage.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>

namespace plimsoll::device::cuda {
namespace {

using CardHandle = void*;

// As nvml.h lays them out.
struct UsedMemory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
struct RunningProcess {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance;
  unsigned compute_instance;
};

struct Management {
  int (*init)() = nullptr;
  int (*card)(const char*, CardHandle*) = nullptr;
  int (*memory)(CardHandle, UsedMemory*) = nullptr;
  int (*processes)(CardHandle, unsigned*, RunningProcess*) = nullptr;
  bool usable = false;
};

template <typename Function>
bool find(void* library, const char* name, Function& out) {
  out = reinterpret_cast<Function>(::dlsym(library, name));
  return out != nullptr;
}

Management open_management() {
  Management out;
  void* const library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return out;
  out.usable = find(library, "nvmlInit_v2", out.init) &&
               find(library, "nvmlDeviceGetHandleByPciBusId_v2", out.card) &&
               find(library, "nvmlDeviceGetMemoryInfo", out.memory) &&
               find(library, "nvmlDeviceGetComputeRunningProcesses_v3", out.processes) &&
               out.init() == 0;
  return out;
}

const Management& management() {
  static const Management kOpened = open_management();
  return kOpened;
}

std::optional<CardHandle> card_at(const std::string& pci_address) {
  CardHandle out = nullptr;
  if (!management().usable || management().card(pci_address.c_str(), &out) != 0)
    return std::nullopt;
  return out;
}

}  // namespace

std::optional<Bytes> used_on_card(const std::string& pci_address) {
  const auto card = card_at(pci_address);
  UsedMemory memory{};
  if (!card || management().memory(*card, &memory) != 0) return std::nullopt;
  return Bytes(static_cast<std::int64_t>(memory.used));
}

std::vector<unsigned> other_processes(const std::string& pci_address) {
  std::vector<unsigned> out;
  const auto card = card_at(pci_address);
  std::array<RunningProcess, 64> running{};
  auto count = static_cast<unsigned>(running.size());
  if (!card || management().processes(*card, &count, running.data()) != 0) return out;
  for (unsigned i = 0; i < count && i < running.size(); ++i) {
    if (running[i].pid != static_cast<unsigned>(::getpid())) out.push_back(running[i].pid);
  }
  return out;
}

}  // namespace plimsoll::device::cuda
