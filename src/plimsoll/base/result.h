// Result<T>: a value, or an Error that says what went wrong and what to do about it.
//
// Every failure a user can cause travels as a Result: a bad file, a budget that cannot be met, a
// missing device. Our own bugs do not (see check.h). On hot paths, where failing is normal (a pool
// is exhausted, a search state is dead), functions return an enum or an optional instead.
//
//   Result<Graph> graph = read_graph(path);
//   if (!graph) return forward(graph);            // pass the error on
//   PLIMSOLL_TRY(Graph graph, read_graph(path));  // the same in one line
//
// Messages put the subject first, give both values, then the remedy:
//   conv 'layer3.0': input has 64 channels, weight expects 128
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <tl/expected.hpp>

namespace plimsoll {

// Few and meaningful; the value is the program's exit code.
enum class ErrorCode {
  kInternal = 1,    // internal error
  kUsage = 2,       // the caller asked for something that makes no sense
  kBadInput = 3,    // a file or a model is wrong
  kDoesNotFit = 4,  // proven: the budget or capacity is too small
  kNoAnswer = 5,    // the time given was too short to find or refute an answer
  kDevice = 6,      // a device is missing or failed
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;

  bool operator==(const Error&) const = default;
};

// A class of its own, no alias, so that nobody can overlook one: dropping a Result is a warning.
template <typename T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
};
using Status = Result<void>;

template <typename... Args>
[[nodiscard]] tl::unexpected<Error> fail(ErrorCode code, fmt::format_string<Args...> format,
                                         Args&&... args) {
  return tl::unexpected<Error>(Error{code, fmt::format(format, std::forward<Args>(args)...)});
}

template <typename... Args>
[[nodiscard]] tl::unexpected<Error> bad_input(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::kBadInput, format, std::forward<Args>(args)...);
}

// Passes the error of one Result on as the error of another.
template <typename T>
[[nodiscard]] tl::unexpected<Error> forward(const Result<T>& failed) {
  return tl::unexpected<Error>(failed.error());
}

// Passes it on with the place it happened in front: "model.onnx: node 'conv1': ...".
template <typename T>
[[nodiscard]] tl::unexpected<Error> forward(const Result<T>& failed, std::string_view where) {
  return tl::unexpected<Error>(
      Error{failed.error().code, fmt::format("{}: {}", where, failed.error().message)});
}

}  // namespace plimsoll

#define PLIMSOLL_CONCAT_INNER(a, b) a##b
#define PLIMSOLL_CONCAT(a, b) PLIMSOLL_CONCAT_INNER(a, b)
#define PLIMSOLL_TRY_INTO(temporary, declaration, expression) \
  auto temporary = (expression);                              \
  if (!temporary) return ::plimsoll::forward(temporary);      \
  declaration = std::move(*temporary)

// PLIMSOLL_TRY(Graph graph, read_graph(path)); declares graph, or returns the error.
#define PLIMSOLL_TRY(declaration, expression) \
  PLIMSOLL_TRY_INTO(PLIMSOLL_CONCAT(result_of_line_, __LINE__), declaration, expression)

// PLIMSOLL_RETURN_IF_ERROR(verify(graph)); for a Status.
#define PLIMSOLL_RETURN_IF_ERROR(expression)                           \
  if (auto status_of_expression = (expression); !status_of_expression) \
  return ::plimsoll::forward(status_of_expression)
