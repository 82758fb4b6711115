#include "plimsoll/store/file_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>

namespace plimsoll::store {
namespace {

// Where pages of files lie; read by the handler without a lock. An entry of begin 0 is free.
struct Laid {
  std::atomic<std::uintptr_t> begin = 0;
  std::atomic<std::uintptr_t> end = 0;
  std::atomic<bool> cut = false;
};
constexpr std::size_t kMostLaid = 8192;

struct Registry {
  std::array<Laid, kMostLaid> laid;
  std::mutex mutex;  // of whoever takes and gives back entries
  struct sigaction before {};
  std::uintptr_t page = 4096;
};
Registry& registry() {
  static Registry all;
  return all;
}

// Only system calls and atomics: nothing here may lock or allocate.
void on_bus_error(int signal, siginfo_t* info, void* context) {
  Registry& all = registry();
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (Laid& laid : all.laid) {
    const std::uintptr_t begin = laid.begin.load(std::memory_order_acquire);
    if (begin == 0 || at < begin || at >= laid.end.load(std::memory_order_acquire)) continue;
    laid.cut.store(true, std::memory_order_release);
    void* page = reinterpret_cast<void*>(at / all.page * all.page);
    if (::mmap(page, all.page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page)
      return;
    break;
  }
  if ((all.before.sa_flags & SA_SIGINFO) != 0 && all.before.sa_sigaction != nullptr)
    return all.before.sa_sigaction(signal, info, context);
  if (all.before.sa_handler != SIG_DFL && all.before.sa_handler != SIG_IGN &&
      all.before.sa_handler != nullptr)
    return all.before.sa_handler(signal);
  // As if nobody had handled it: the access is made again and ends the program.
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  ::sigaction(SIGBUS, &plain, nullptr);
}

void handle_bus_errors() {
  static std::once_flag once;
  std::call_once(once, [] {
    Registry& all = registry();
    all.page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    ::sigaction(SIGBUS, &action, &all.before);
  });
}

// A free entry with these pages; kMostLaid: there is none.
std::size_t take_entry(std::span<std::byte> pages) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (std::size_t i = 0; i < kMostLaid; ++i) {
    Laid& laid = all.laid[i];
    if (laid.begin.load() != 0) continue;
    laid.cut = false;
    laid.end = reinterpret_cast<std::uintptr_t>(pages.data() + pages.size());
    laid.begin = reinterpret_cast<std::uintptr_t>(pages.data());
    return i;
  }
  return kMostLaid;
}
void give_back(std::size_t slot) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.laid[slot].begin = 0;
}

}  // namespace

Result<std::unique_ptr<FilePages>> FilePages::lay(int descriptor, std::uint64_t offset,
                                                  std::span<std::byte> memory) {
  handle_bus_errors();
  const std::uintptr_t page = registry().page;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  if ((begin - offset) % page != 0) return std::unique_ptr<FilePages>();
  const std::uintptr_t first = (begin + page - 1) / page * page;
  const std::uintptr_t last = (begin + memory.size()) / page * page;
  if (first >= last) return std::unique_ptr<FilePages>();
  const std::span<std::byte> pages = memory.subspan(first - begin, last - first);
  const std::size_t slot = take_entry(pages);
  if (slot == kMostLaid) return std::unique_ptr<FilePages>();
  void* laid = ::mmap(pages.data(), pages.size(), PROT_READ, MAP_PRIVATE | MAP_FIXED | MAP_POPULATE,
                      descriptor, static_cast<off_t>(offset + (first - begin)));
  if (laid != pages.data()) {
    const int error = errno;
    give_back(slot);
    return bad_input("mapping {} bytes of it: {}", pages.size(), std::strerror(error));
  }
  return std::unique_ptr<FilePages>(new FilePages(pages, slot));
}

FilePages::~FilePages() {
  // The arena's own memory again; it fails only where the kernel has no memory for the mapping.
  static_cast<void>(::mmap(pages_.data(), pages_.size(), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
  give_back(slot_);
}

bool FilePages::was_cut() const {
  return registry().laid[slot_].cut.load(std::memory_order_acquire);
}

}  // namespace plimsoll::store
