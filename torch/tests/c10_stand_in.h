// PyTorch's classes of errors, as far as an exception of them is made by out_of_memory.cpp.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

namespace c10 {

struct SourceLocation {
  const char* function;
  const char* file;
  std::uint32_t line;
};

class __attribute__((visibility("default"))) Error : public std::exception {
 public:
  Error(SourceLocation where, std::string message);
  ~Error() override;
  const char* what() const noexcept override;

 private:
  std::string message_;
  std::string where_;
};

class __attribute__((visibility("default"))) OutOfMemoryError : public Error {
 public:
  OutOfMemoryError(SourceLocation where, std::string message);
  ~OutOfMemoryError() override;
  const char* what() const noexcept override;
};

}  // namespace c10

extern "C" {
int c10_errors_alive();  // made and not destroyed
// What a call throws: 1 an OutOfMemoryError with this message, 0 anything else.
int c10_catches(void (*call)(), const char* message);
}
