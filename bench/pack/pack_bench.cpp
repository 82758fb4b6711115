// The bars of the packer, printed as a table: `build/release/bin/pack_bench [part...] [seed]`.
//
// Parts: hard, minimize, graphs, tilings, million, curve; none: all of them. A number is the first
// seed of generated problems, for measuring on problems nobody has tuned on. One thread. The corpus
// is the folder PLIMSOLL_CORPUS/packing when that is set, else tests/corpus/packing. Seconds are
// CPU seconds of this process, so that other work on the machine does not count; deadlines are wall
// time.
#include <sys/resource.h>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/file.h"
#include "plimsoll/pack/formats/csv.h"
#include "plimsoll/pack/model/generate.h"
#include "plimsoll/pack/pack.h"

namespace {

using namespace plimsoll;
using namespace plimsoll::pack;

std::uint64_t first_seed = 0;  // 0: the usual ones
std::uint64_t seed_or(std::uint64_t usual) {
  return first_seed ? first_seed : usual;
}

double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

Problem corpus(const std::string& name) {
  const char* folder = std::getenv("PLIMSOLL_CORPUS");
  const std::string path = (folder ? std::string(folder) : "tests/corpus") + "/packing/" + name;
  const auto text = read_file(path);
  auto problem = text ? read_csv(*text) : Result<Problem>(forward(text));
  if (!problem) {
    std::fprintf(stderr, "%s: %s\n", path.c_str(), problem.error().message.c_str());
    std::exit(3);
  }
  return *problem;
}

struct Measured {
  double seconds = 0;
  bool solved = false;  // optimal, or within the capacity
};

Measured report(const std::string& what, const Problem& problem, const PackOptions& options) {
  const double start = cpu_seconds();
  const auto packing = pack::pack(problem, options);
  const double seconds = cpu_seconds() - start;
  if (!packing) std::exit(1);
  std::printf("%-28s %8zu buffers  height %14lld  +%8.4f %%  %-10s %-26s %8.3f s\n", what.c_str(),
              problem.size(), static_cast<long long>(packing->height().value), 100 * packing->gap(),
              name(packing->status), packing->method.c_str(), seconds);
  std::fflush(stdout);
  return {seconds, packing->status <= PackStatus::kFeasible};
}

void hard() {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    double total = 0;
    for (const char* name : {"A", "B", "C", "D", "E", "F"}) {
      Problem problem = corpus(std::string(name) + ".1048576.csv");
      problem.set_capacity(1_MiB);
      total += report(std::string(name) + " at 1 MiB, seed " + std::to_string(seed), problem,
                      {.deadline_seconds = 60, .seed = seed})
                   .seconds;
    }
    std::printf("seed %llu: %.3f s in all\n", static_cast<unsigned long long>(seed), total);
  }
}

void minimize() {
  for (const char* name : {"A", "B", "C", "D", "E", "F"})
    report(std::string(name) + " minimize", corpus(std::string(name) + ".1048576.csv"),
           {.goal = Goal::kMinimize, .deadline_seconds = 10});
  for (const char* name : {"G_1", "resnet50"})
    report(std::string(name) + " minimize", corpus(std::string(name) + ".csv"), {});
}

void graphs() {
  for (const std::size_t n : {18'000, 28'000, 62'000})
    report("training " + std::to_string(n), generate(Family::kTraining, n, seed_or(31)),
           {.deadline_seconds = 5});
}

void tilings() {
  int solved = 0;
  for (std::uint64_t k = 0; k < 16; ++k) {
    const std::size_t n = 150 + k * 250 / 15;
    const std::uint64_t seed = seed_or(9001) + k;
    solved += report("tiling, seed " + std::to_string(seed),
                     generate(Family::kTiling, n, seed, 0.03 * static_cast<double>(k % 4)),
                     {.deadline_seconds = 30})
                  .solved;
  }
  std::printf("%d of 16 tilings solved\n", solved);
}

void million() {
  report("training, a million", generate(Family::kTraining, 1'000'000, seed_or(7)),
         {.deadline_seconds = 10});
  report("random, a million", generate(Family::kRandom, 1'000'000, seed_or(7)),
         {.deadline_seconds = 10});
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("peak resident memory %.2f GB\n", static_cast<double>(usage.ru_maxrss) / 1e6);
}

void curve() {
  for (const std::size_t n : {1'000, 10'000, 100'000, 1'000'000}) {
    for (const auto& [title, family] :
         {std::pair("training", Family::kTraining), std::pair("random", Family::kRandom)})
      report(std::string("one pass, ") + title, generate(family, n, 7),
             {.method = Method::kSkyline, .deadline_seconds = 0});
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::pair<std::string_view, void (*)()> parts[] = {
      {"hard", hard},       {"minimize", minimize}, {"graphs", graphs},
      {"tilings", tilings}, {"million", million},   {"curve", curve}};
  for (const auto& [part, run] : parts) {
    bool all = true;
    bool wanted = false;
    for (int k = 1; k < argc; ++k) {
      const std::uint64_t seed = std::strtoull(argv[k], nullptr, 10);
      if (seed) first_seed = seed;
      all = all && seed != 0;
      wanted = wanted || part == argv[k];
    }
    if (wanted || all) run();
  }
}
