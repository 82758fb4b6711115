#include "c10_stand_in.h"

#include <utility>

namespace c10 {
namespace {

int alive = 0;

}  // namespace

Error::Error(SourceLocation where, std::string message)
    : message_(std::move(message)), where_(where.function) {
  ++alive;
}
Error::~Error() {
  --alive;
}
const char* Error::what() const noexcept {
  return message_.c_str();
}

OutOfMemoryError::OutOfMemoryError(SourceLocation where, std::string message)
    : Error(where, std::move(message)) {}
OutOfMemoryError::~OutOfMemoryError() = default;
const char* OutOfMemoryError::what() const noexcept {
  return Error::what();
}

}  // namespace c10

int c10_errors_alive() {
  return c10::alive;
}

int c10_catches(void (*call)(), const char* message) {
  try {
    call();
  } catch (const c10::OutOfMemoryError& error) {
    return std::string(error.what()).find(message) != std::string::npos ? 1 : 0;
  } catch (...) {
  }
  return 0;
}
