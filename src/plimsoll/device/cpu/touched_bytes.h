// How much of an arena was really used: one past the highest byte that anyone wrote.
//
// A plan says how high it reaches; this asks the memory itself, and knows nothing of plans. It
// watches from the moment the arena is bound, when nothing has been written yet, so first contents,
// batches and steps count alike.
//
//   offset 0                                 touched            size
//   ├── weights ── activations ── gradient ──┤ never written ───┤ guard page
//
// Two ways, held against each other in the tests:
//
//   kPages     the kernel write-protects every page and unprotects those that are written
//              (userfaultfd with asynchronous write protection; Linux 6.7). Exact to the end of a
//              4 KiB page, however a page came to be written: by a kernel, by a system call, with
//              the value that was there before. 1 ms for 256 MiB, one fault for every page that is
//              written.
//   kPattern   every byte is set to a pattern and compared at the end. Exact to the byte, except
//              where the pattern itself was written. A run that does the same twice, once under
//              each of kPatterns, settles that: a byte that it writes differs from one of the two,
//              since they differ in every bit. 7 ms for 64 MiB, and all of the arena becomes
//              resident.
//
// Neither is for timed steps. Residency was rejected: the arena asks for huge pages, and 64 KiB
// touched read as 32 MiB. Soft-dirty bits were rejected: many kernels are built without them.
//
// The memory must outlive the watch. Threads: any may write; one watches.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "plimsoll/base/result.h"
#include "plimsoll/base/units.h"

namespace plimsoll::device {

class TouchedBytes {
 public:
  enum class Method { kPages, kPattern };
  static constexpr std::array<std::byte, 2> kPatterns{std::byte{0x55}, std::byte{0xaa}};

  // Whether this kernel, and this process's rights, let pages be watched.
  static bool can_watch_pages();
  // Fails where they do not, with what the system said.
  static Result<TouchedBytes> watch_pages(std::span<std::byte> memory);
  // Overwrites `memory`.
  static TouchedBytes watch_pattern(std::span<std::byte> memory, std::byte pattern);

  TouchedBytes(TouchedBytes&& other) noexcept;
  TouchedBytes& operator=(TouchedBytes&&) = delete;
  ~TouchedBytes();

  Method method() const { return method_; }
  // One past the highest byte written since, as an offset into the memory; 0: none was.
  Result<Bytes> highest() const;

 private:
  TouchedBytes(std::span<std::byte> memory, Method method) : memory_(memory), method_(method) {}
  Result<Bytes> highest_page() const;

  std::span<std::byte> memory_;
  Method method_;
  std::byte pattern_{};
  int faults_ = -1;  // the userfaultfd; closing it ends the watch
  int pagemap_ = -1;
};

}  // namespace plimsoll::device
