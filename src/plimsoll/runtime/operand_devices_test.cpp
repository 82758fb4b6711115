#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plimsoll/ops/builder.h"
#include "plimsoll/ops/functions.h"
#include "plimsoll/runtime/executor.h"

namespace plimsoll::runtime {
namespace {

using testing::HasSubstr;

struct NoKernel final : kernels::Kernel {
  void run(const kernels::Arguments&) override {}
};

TEST(OperandDevices, AreNamedWhenATensorLiesElsewhere) {
  ops::Builder b("two");
  const ir::TensorType type{ir::DType::kF32, {16}, {}};
  const auto x = b.input("x", type);
  b.set_layer("head");
  const ir::Graph graph = *b.finish({x * b.weight("scale", type, {})});
  const ir::Node& node = graph.nodes.front();

  const auto backend = kernels::make_fake_backend({});
  device::Device& device = backend->device();
  const auto arena = *device.make_arena(Bytes(1024));
  std::vector<std::byte> host(64);
  NoKernel kernel;
  BoundKernel call;
  call.kernel = &kernel;
  call.inputs = {arena->data(), arena->data() + 256};
  call.outputs = {arena->data() + 512};
  EXPECT_TRUE(call.check_addresses(device, graph, node).has_value());

  call.inputs[1] = host.data();
  const Status wrong = call.check_addresses(device, graph, node);
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().code, ErrorCode::kDevice);
  EXPECT_EQ(wrong.error().message, "head/mul: input 1 'head.scale' lies on host, fake is wanted");

  // The same memory is not the CPU's, either.
  call.inputs[1] = arena->data() + 256;
  const auto cpu = kernels::make_cpu_backend(1);
  const Status other = call.check_addresses(cpu->device(), graph, node);
  ASSERT_FALSE(other.has_value());
  EXPECT_THAT(other.error().message, HasSubstr("input 0 'x' lies on fake, host is wanted"));
  call.inputs = {host.data(), host.data()};
  call.outputs = {host.data()};
  call.scratch = arena->data();
  EXPECT_THAT(call.check_addresses(cpu->device(), graph, node).error().message,
              HasSubstr("its scratch lies on fake"));
}

}  // namespace
}  // namespace plimsoll::runtime
