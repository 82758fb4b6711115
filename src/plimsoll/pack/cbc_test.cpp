// Against an integer program: the textbook model with one binary per pair, solved by CBC.
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "plimsoll/base/file.h"
#include "plimsoll/base/random.h"
#include "plimsoll/base/testing/test_paths.h"
#include "plimsoll/pack/pack.h"

namespace plimsoll::pack {
namespace {

Problem random_problem(Random& random) {
  Problem problem;
  const std::int64_t n = random.between(10, 25);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t begin = random.below(30);
    problem.buffers.push_back(
        {.lifetime = {begin, begin + random.between(1, 10)}, .size = Bytes(random.between(1, 20))});
  }
  return problem;
}

std::string integer_program(const Problem& problem, std::int64_t big) {
  std::string rules, binaries;
  for (std::size_t i = 0; i < problem.size(); ++i) {
    const std::int64_t size = problem.buffers[i].size.value;
    rules += fmt::format(" h - x{} >= {}\n", i, size);
    for (std::size_t j = i + 1; j < problem.size(); ++j) {
      if (!meet(problem, BufferId(i), BufferId(j))) continue;
      const std::int64_t other = problem.buffers[j].size.value;
      rules += fmt::format(" x{} - x{} + {} b{}_{} >= {}\n", j, i, big, i, j, size);
      rules += fmt::format(" x{} - x{} - {} b{}_{} >= {}\n", i, j, big, i, j, other - big);
      binaries += fmt::format(" b{}_{}\n", i, j);
    }
  }
  // What is alive at one moment lies side by side: implied, but CBC takes minutes to see it by
  // itself.
  for (const Buffer& moment : problem.buffers) {
    std::int64_t load = 0;
    for (const Buffer& other : problem.buffers) {
      if (other.lifetime.contains(moment.lifetime.begin)) load += other.size.value;
    }
    rules += fmt::format(" h >= {}\n", load);
  }
  return "Minimize\n h\nSubject To\n" + rules + "Binaries\n" + binaries + "End\n";
}

// CBC's optimum, or -1 when it gave up after ten seconds.
std::int64_t solve_with_cbc(const Problem& problem, std::int64_t bound, std::uint64_t seed) {
  const auto folder = test_binary_dir() / "cbc";
  std::filesystem::create_directories(folder);
  const std::string model = (folder / (std::to_string(seed) + ".lp")).string();
  const std::string answer = model + ".out";
  EXPECT_TRUE(write_file(model, integer_program(problem, bound)));
  const std::string command = "cbc " + model + " sec 10 solve solu " + answer + " > /dev/null 2>&1";
  if (std::system(command.c_str()) != 0) return -1;
  const auto text = read_file(answer);
  std::filesystem::remove(model);
  std::filesystem::remove(answer);
  if (!text || !text->starts_with("Optimal")) return -1;
  return static_cast<std::int64_t>(std::stod(text->substr(text->rfind("value") + 5)) + 0.5);
}

void compare(std::uint64_t first, std::uint64_t count) {
  ASSERT_EQ(std::system("cbc quit > /dev/null 2>&1"), 0)
      << "coinor-cbc is not installed (tools/packages.txt)";
  std::uint64_t decided = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    Random random(seed);
    const Problem problem = random_problem(random);
    const auto packing = pack(problem, {.deadline_seconds = 30, .deterministic = true});
    ASSERT_EQ(packing->status, PackStatus::kOptimal) << "seed " << seed;
    const std::int64_t optimum = solve_with_cbc(problem, packing->height().value, seed);
    if (optimum < 0) continue;
    ++decided;
    ASSERT_EQ(packing->height().value, optimum) << "seed " << seed;
  }
  EXPECT_GE(decided * 2, count) << "CBC gave up too often to be a referee";
}

TEST(SlowCbc, AgreesOnTwoHundredProblems) {
  compare(1001, 200);
}

}  // namespace
}  // namespace plimsoll::pack
