#include <cstring>

#include "probe.h"

int main(int argc, char** argv) {
  const std::span<const probe::Experiment> groups[] = {
      probe::contract_experiments(), probe::fault_experiments(), probe::process_experiments(),
      probe::shadow_experiments()};
  const char* wanted = argc > 1 ? argv[1] : "--list";
  for (const auto& group : groups) {
    for (const probe::Experiment& experiment : group) {
      if (std::strcmp(wanted, "--list") == 0) {
        std::puts(experiment.name);
      } else if (std::strcmp(wanted, experiment.name) == 0) {
        experiment.run({argv + 2, static_cast<std::size_t>(argc - 2)});
        return 0;
      }
    }
  }
  return std::strcmp(wanted, "--list") == 0 ? 0 : 2;
}
