#include "plimsoll/dist/communicator.h"

#include <gtest/gtest.h>

#include <mutex>

#include "plimsoll/dist/testing/communicator_contract.h"
#include "plimsoll/dist/testing/thread_ranks.h"

namespace plimsoll::dist {
namespace {

TEST(SelfCommunicator, KeepsTheContract) {
  const auto comm = make_self_communicator();
  for (const ContractCase& one : communicator_contract()) EXPECT_EQ(one.run(*comm), "") << one.name;
}

class ThreadRanks : public testing::TestWithParam<int> {};

TEST_P(ThreadRanks, KeepTheContract) {
  std::mutex lock;
  run_thread_ranks(GetParam(), [&](const std::shared_ptr<Communicator>& comm) {
    for (const ContractCase& one : communicator_contract()) {
      const std::string wrong = one.run(*comm);
      const std::scoped_lock held(lock);
      EXPECT_EQ(wrong, "") << one.name << ", rank " << comm->rank();
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, ThreadRanks, testing::Values(1, 2, 3, 4, 7));

TEST(Reduction, IsReadByName) {
  EXPECT_EQ(*parse_reduction("fixed"), Reduction::kFixed);
  EXPECT_EQ(*parse_reduction(name(Reduction::kAny)), Reduction::kAny);
  EXPECT_EQ(parse_reduction("ring").error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace plimsoll::dist
