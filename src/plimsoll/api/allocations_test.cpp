// Counts every allocation of 4 KiB or more in this process while planned steps run: there must be none.
// The C library's functions are replaced for the whole test program; sanitizers bring their own.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <optional>

#include "plimsoll/api/pipeline.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

constexpr std::size_t kLarge = 4096;
std::atomic<bool> counting = false;
std::atomic<long> large_allocations = 0;

void note(std::size_t bytes) {
  if (bytes >= kLarge && counting.load(std::memory_order_relaxed)) large_allocations.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) {
  note(bytes);
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  note(bytes != 0 && count > static_cast<std::size_t>(-1) / bytes ? kLarge : count * bytes);
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  note(bytes);
  return __libc_realloc(memory, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  note(bytes);
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  note(bytes);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  note(bytes);
  *out = __libc_memalign(alignment, bytes);
  return *out == nullptr ? ENOMEM : 0;
}
}

namespace plimsoll::api {
namespace {

long large_allocations_in_steps(const char* model, const model::ModelOptions& sizes) {
  ModelRequest request;
  request.model = model;
  request.sizes = sizes;
  request.threads = 1;
  const auto prepared = prepare_model(request, "cpu");
  EXPECT_TRUE(prepared) << prepared.error().message;
  auto planned = plan_model(*prepared, request, {});
  EXPECT_TRUE(planned) << planned.error().message;
  long found = 0;
  RunOptions how;
  how.steps = 3;
  how.threads = 1;
  how.feed = [](runtime::Executor&, int) -> Status {
    counting = true;
    return {};
  };
  how.on_step = [&](int, std::optional<double>, double) {
    counting = false;
    found += large_allocations.exchange(0);
  };
  const auto report = run_plan(std::move(planned->plan), how);
  EXPECT_TRUE(report) << report.error().message;
  return found;
}

TEST(Allocations, TheCounterSeesALargeOne) {
  counting = true;
  const std::vector<char> large(kLarge);
  counting = false;
  EXPECT_EQ(large_allocations.exchange(0), 1) << large.size();
}

std::size_t heap_bytes() {
  const struct mallinfo2 now = mallinfo2();
  return now.uordblks + now.hblkhd;
}

TEST(Allocations, ATrainingGraphTakesLessThan2KiBANode) {
  for (const auto& [model, sizes] :
       {std::pair<const char*, model::ModelOptions>{"resnet", {.batch = 32, .depth = 1000}},
        {"gpt2", {.batch = 1, .seq = 256, .layers = 96}}}) {
    ModelRequest request;
    request.model = model;
    request.sizes = sizes;
    const std::size_t before = heap_bytes();
    const auto loaded = load_model(request);
    ASSERT_TRUE(loaded) << loaded.error().message;
    const std::size_t bytes = heap_bytes() - before;
    EXPECT_LT(bytes, 2000 * loaded->graph.nodes.size()) << model;
    RecordProperty(model, std::to_string(bytes / loaded->graph.nodes.size()));
  }
}

TEST(Allocations, PlannedStepsMakeNoLargeOne) {
  const model::ModelOptions image{.batch = 2, .image = 64};
  const model::ModelOptions text{.batch = 2, .seq = 64, .width = 128, .layers = 1, .vocab = 1000};
  EXPECT_EQ(large_allocations_in_steps("mlp", {}), 0);
  EXPECT_EQ(large_allocations_in_steps("alexnet", image), 0);
  EXPECT_EQ(large_allocations_in_steps("resnet18", image), 0);
  EXPECT_EQ(large_allocations_in_steps("mobilenet", image), 0);
  EXPECT_EQ(large_allocations_in_steps("lstm", {.batch = 2, .seq = 4, .width = 64}), 0);
  EXPECT_EQ(large_allocations_in_steps("bert", text), 0);
  EXPECT_EQ(large_allocations_in_steps("gpt2", text), 0);
  // Not unet: oneDNN runs its four transposed convolutions (stride 2) through a matrix product that
  // allocates its packing buffers in every call.
}

}  // namespace
}  // namespace plimsoll::api

#endif
