#include "plimsoll/cli/verb.h"

int main(int argc, char** argv) { return plimsoll::cli::run_command_line(argc, argv); }
