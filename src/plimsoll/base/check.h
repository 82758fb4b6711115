// PLIMSOLL_CHECK: for what can only be false through a bug of ours.
//
// It is on in every build: a memory planner that goes on after a broken invariant corrupts
// somebody's training run. What a user's input can cause is a Result instead. PLIMSOLL_DCHECK is
// for inner loops and exists only in debug and sanitizer builds.
#pragma once

#include <string>

#include <fmt/core.h>

namespace plimsoll::base {

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& message);

template <typename... Args>
std::string check_message(fmt::format_string<Args...> format, Args&&... args) {
  return fmt::format(format, std::forward<Args>(args)...);
}
inline std::string check_message() {
  return {};
}

}  // namespace plimsoll::base

#define PLIMSOLL_CHECK(condition, ...)                                              \
  do {                                                                              \
    if (!(condition)) [[unlikely]]                                                  \
      ::plimsoll::base::check_failed(__FILE__, __LINE__, #condition,                \
                                     ::plimsoll::base::check_message(__VA_ARGS__)); \
  } while (false)

#if !defined(NDEBUG) || defined(PLIMSOLL_SANITIZED)
#define PLIMSOLL_DCHECK(condition, ...) PLIMSOLL_CHECK(condition, __VA_ARGS__)
#else
#define PLIMSOLL_DCHECK(condition, ...) \
  do {                                  \
  } while (false)
#endif
