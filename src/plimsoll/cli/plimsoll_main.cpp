#include "plimsoll/cli/bounded_spinning.h"
#include "plimsoll/cli/verb.h"

int main(int argc, char** argv) {
  plimsoll::cli::bound_spinning(argv);
  return plimsoll::cli::run_command_line(argc, argv);
}
