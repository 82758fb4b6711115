// The name of a file that must not outlive us: removed when the value goes, and when a signal ends
// the process.
//
// A handler for SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGPIPE is installed with the first name and
// taken back with the last, each only where the signal had its default action: a program with
// handlers of its own, or one under nohup, keeps them. The handler removes the files and lets the
// signal end the process as if it had not been there.
//
// What a handler may touch is little: no lock, no allocation. So names stand in slots that are
// linked once and never freed, and a slot changes hands by one atomic word:
//
//   free ──register──▶ filling ──▶ held ──forget──▶ free
//                                   └──handler──▶ taken   (stays so: the process is ending)
//
// Threads: any. SIGKILL and a power failure leave the file; its name says whose it was
// (".plan.json.1f3c….part").
#pragma once

#include <string>

namespace plimsoll {

class TemporaryName {
 public:
  TemporaryName() = default;
  // Registered before the file is made, so that no signal falls between the two.
  explicit TemporaryName(std::string path);
  TemporaryName(TemporaryName&& other) noexcept;
  TemporaryName& operator=(TemporaryName&& other) noexcept;
  ~TemporaryName();

  const std::string& path() const { return path_; }
  bool empty() const { return path_.empty(); }
  // The file has another name now, or was never made.
  void forget();

 private:
  std::string path_;
  void* slot_ = nullptr;
};

// While one lives a signal waits, so that several renames happen together or not at all.
class SignalsWait {
 public:
  SignalsWait();
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;
  ~SignalsWait();
};

}  // namespace plimsoll
