#include "plimsoll/base/temporary_name.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <mutex>
#include <utility>

namespace plimsoll {
namespace {

enum class SlotState { kFree, kFilling, kHeld, kTaken };

struct Slot {
  std::atomic<SlotState> state{SlotState::kFilling};
  std::atomic<pid_t> owner{0};  // a forked child must not remove its parent's files
  Slot* next = nullptr;
  std::array<char, PATH_MAX> path{};
};

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};

// A handler has no other way to know what to remove: these are the only variables of the process
// here.
std::atomic<Slot*> slots{nullptr};
std::atomic<int> waiting{0};
std::atomic<int> pending{0};
std::mutex watch_mutex;
int watched = 0;
std::array<bool, kSignals.size()> installed{};
static_assert(std::atomic<Slot*>::is_always_lock_free &&
              std::atomic<SlotState>::is_always_lock_free);

void remove_and_end(int signal) {
  for (Slot* slot = slots.load(); slot != nullptr; slot = slot->next) {
    SlotState held = SlotState::kHeld;
    if (slot->owner.load() == ::getpid() &&
        slot->state.compare_exchange_strong(held, SlotState::kTaken))
      ::unlink(slot->path.data());
  }
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  ::sigaction(signal, &by_default, nullptr);
  ::raise(signal);  // inside the handler it is blocked until we return
}

void on_signal(int signal) {
  const int error = errno;
  pending.store(signal);  // before the question, so that whoever ends the wait sees it
  if (waiting.load() == 0) remove_and_end(signal);
  errno = error;
}

void watch_signals() {
  const std::lock_guard lock(watch_mutex);
  if (watched++ > 0) return;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction before {};
    installed[i] = ::sigaction(kSignals[i], nullptr, &before) == 0 &&
                   (before.sa_flags & SA_SIGINFO) == 0 && before.sa_handler == SIG_DFL;
    if (!installed[i]) continue;
    struct sigaction ours {};
    ours.sa_handler = on_signal;
    ours.sa_flags = SA_RESTART;
    installed[i] = ::sigaction(kSignals[i], &ours, nullptr) == 0;
  }
}

void unwatch_signals() {
  const std::lock_guard lock(watch_mutex);
  if (--watched > 0) return;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction now {};
    // Somebody may have put a handler of his own in our place.
    if (!installed[i] || ::sigaction(kSignals[i], nullptr, &now) != 0 ||
        now.sa_handler != on_signal)
      continue;
    struct sigaction by_default {};
    by_default.sa_handler = SIG_DFL;
    ::sigaction(kSignals[i], &by_default, nullptr);
  }
}

Slot* free_slot() {
  for (Slot* slot = slots.load(); slot != nullptr; slot = slot->next) {
    SlotState free = SlotState::kFree;
    if (slot->state.compare_exchange_strong(free, SlotState::kFilling)) return slot;
  }
  auto* made = new Slot;
  made->next = slots.load();
  while (!slots.compare_exchange_weak(made->next, made)) {
  }
  return made;
}

}  // namespace

TemporaryName::TemporaryName(std::string path) : path_(std::move(path)) {
  watch_signals();
  if (path_.size() >= PATH_MAX) return;  // no system call takes it either
  Slot* slot = free_slot();
  std::memcpy(slot->path.data(), path_.c_str(), path_.size() + 1);
  slot->owner.store(::getpid());
  slot->state.store(SlotState::kHeld);
  slot_ = slot;
}

TemporaryName::TemporaryName(TemporaryName&& other) noexcept
    : path_(std::exchange(other.path_, {})), slot_(std::exchange(other.slot_, nullptr)) {}

TemporaryName& TemporaryName::operator=(TemporaryName&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(slot_, other.slot_);
  return *this;
}

TemporaryName::~TemporaryName() {
  if (path_.empty()) return;
  ::unlink(path_.c_str());
  forget();
}

void TemporaryName::forget() {
  if (path_.empty()) return;
  path_.clear();
  if (auto* slot = static_cast<Slot*>(std::exchange(slot_, nullptr))) {
    SlotState held = SlotState::kHeld;
    slot->state.compare_exchange_strong(held, SlotState::kFree);
  }
  unwatch_signals();
}

SignalsWait::SignalsWait() {
  waiting.fetch_add(1);
}

SignalsWait::~SignalsWait() {
  if (waiting.fetch_sub(1) > 1) return;
  if (const int signal = pending.exchange(0)) remove_and_end(signal);
}

}  // namespace plimsoll
