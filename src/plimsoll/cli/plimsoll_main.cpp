#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include "plimsoll/cli/bounded_spinning.h"
#include "plimsoll/cli/short_slices.h"
#include "plimsoll/cli/verb.h"

namespace {

// A shell may start us with 0, 1 or 2 closed; the first file we open must not become standard
// output. What is opened in its place refuses to be used, so that writing to a closed output stays
// an error.
void hold_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) < 0)
      ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace

int main(int argc, char** argv) {
  plimsoll::cli::bound_spinning(argv);
  plimsoll::cli::ask_for_short_slices();
  hold_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond `ulimit -f` is an error with a name, not a core
  return plimsoll::cli::finish_stdout(plimsoll::cli::run_command_line(argc, argv));
}
