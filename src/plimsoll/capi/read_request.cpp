#include "plimsoll/capi/read_request.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

#include "plimsoll/capi/read_graph.h"
#include "plimsoll/schedule/workload/cost_unit.h"

namespace plimsoll::capi {
namespace {

constexpr std::int64_t kLargestAlignment = std::int64_t{1} << 40;
constexpr int kMostThreads = 1024;

constexpr std::uint32_t kTechniques =
    PLIMSOLL_RECOMPUTE | PLIMSOLL_SWAP | PLIMSOLL_ENCODE | PLIMSOLL_LOSSY;

template <typename... Args>
tl::unexpected<Error> bad_option(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::kUsage, format, std::forward<Args>(args)...);
}

Status read_techniques(const plimsoll_plan_request& in, schedule::FitOptions& fit) {
  if ((in.techniques & PLIMSOLL_SPLIT) != 0)
    return bad_option("techniques: splitting is not offered yet; clear the bit");
  if ((in.techniques & ~kTechniques) != 0)
    return bad_option("techniques: unknown bits in {:#x}", in.techniques);
  fit.remedies.recompute = (in.techniques & PLIMSOLL_RECOMPUTE) != 0;
  fit.remedies.swap = (in.techniques & PLIMSOLL_SWAP) != 0;
  fit.remedies.encode = (in.techniques & PLIMSOLL_ENCODE) != 0;
  fit.remedies.lossy = (in.techniques & PLIMSOLL_LOSSY) != 0;
  if (!fit.remedies.swap) return {};
  const auto is_rate = [](double rate) { return std::isfinite(rate) && rate > 0; };
  if (!is_rate(in.to_host_bytes_per_second) || !is_rate(in.from_host_bytes_per_second))
    return bad_option("copy rates: {} and {} bytes a second; swapping needs both above 0",
                      in.to_host_bytes_per_second, in.from_host_bytes_per_second);
  if (!std::isfinite(in.copy_latency_seconds) || in.copy_latency_seconds < 0)
    return bad_option("copy_latency_seconds: {} is neither 0 nor more", in.copy_latency_seconds);
  fit.copies = {in.to_host_bytes_per_second, in.from_host_bytes_per_second,
                in.copy_latency_seconds};
  return {};
}

Status read_bytes(const plimsoll_plan_request& in, Request& out) {
  if (in.budget_bytes < -1)
    return bad_option("budget_bytes: {} is neither a size nor -1", in.budget_bytes);
  if (in.memory_count < 0 || in.memory_count > 1)
    return bad_option("memory_count: {}; one memory, the device's, is all that is planned for now",
                      in.memory_count);
  out.budgeted = in.budget_bytes >= 0;
  if (out.budgeted) out.fit.budget = Bytes(in.budget_bytes);
  if (in.memory_count == 1) {
    if (in.memories == nullptr) return bad_option("memories: is NULL");
    if (in.memories[0].bytes < 0)
      return bad_option("memories[0]: {} bytes are fewer than none", in.memories[0].bytes);
    out.budgeted = true;
    out.fit.budget = std::min(out.fit.budget, Bytes(in.memories[0].bytes));
  }
  if (in.arena_alignment < 0 || in.arena_alignment > kLargestAlignment)
    return bad_option("arena_alignment: {} is not between 0 and {}", in.arena_alignment,
                      kLargestAlignment);
  out.alignment = in.arena_alignment;
  return {};
}

Status read_goal(const plimsoll_plan_request& in, Request& out) {
  if (in.goal > PLIMSOLL_GOAL_SMALLEST) return bad_option("goal: {} is unknown", in.goal);
  if (in.reserved2 != 0) return bad_option("reserved2: is {}, not 0", in.reserved2);
  if (!std::isfinite(in.slowdown) || in.slowdown < 0)
    return bad_option("slowdown: {} is neither 0 nor more", in.slowdown);
  if (in.goal == PLIMSOLL_GOAL_FASTEST) {
    if (in.slowdown != 0)
      return bad_option("slowdown: {}; it is for PLIMSOLL_GOAL_SMALLEST", in.slowdown);
    return {};
  }
  if (out.budgeted)
    return bad_option("goal: the smallest plan is asked for, so the budget must be -1, not {}",
                      in.budget_bytes);
  out.slowdown = in.slowdown;
  return {};
}

Status read_search(const plimsoll_plan_request& in, schedule::FitOptions& fit) {
  if (in.order > PLIMSOLL_ORDER_GIVEN) return bad_option("order: {} is unknown", in.order);
  constexpr schedule::OrderChoice kOrders[] = {
      schedule::OrderChoice::kSearch, schedule::OrderChoice::kList, schedule::OrderChoice::kGiven};
  fit.order = kOrders[in.order];
  if (!std::isfinite(in.deadline_seconds) || in.deadline_seconds < 0)
    return bad_option("deadline_seconds: {} is neither 0 nor more", in.deadline_seconds);
  if (in.deadline_seconds > 0) fit.deadline_seconds = in.deadline_seconds;
  if (in.work < 0 || in.work > 1000)
    return bad_option("work: {} is not between 0 and 1000", in.work);
  fit.deterministic = in.work > 0;
  fit.work = std::max<std::int64_t>(1, in.work);
  fit.seed = in.seed;
  if (in.threads < 0 || in.threads > kMostThreads)
    return bad_option("threads: {} is not between 0 and {}", in.threads, kMostThreads);
  fit.threads = in.threads > 0 ? in.threads
                               : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (in.reserved != 0) return bad_option("reserved: is {}, not 0", in.reserved);
  return {};
}

}  // namespace

Result<plimsoll_plan_request> copy_of(const plimsoll_plan_request* request) {
  const std::size_t theirs = request->struct_size;
  constexpr std::size_t kFirst =
      offsetof(plimsoll_plan_request, progress_user) + sizeof(void*);  // of version 1
  constexpr std::size_t kMost = 4096;
  if (theirs < kFirst || theirs > kMost)
    return bad_option(
        "struct_size: {} bytes, a request has {} to {}; set it to the size of the struct", theirs,
        kFirst, kMost);
  if (request->version != PLIMSOLL_PLAN_VERSION)
    return bad_option("version: {}, this library knows {}", request->version,
                      PLIMSOLL_PLAN_VERSION);
  plimsoll_plan_request copy = {};
  std::memcpy(&copy, request, std::min(theirs, sizeof copy));
  const auto* bytes = reinterpret_cast<const unsigned char*>(request);
  for (std::size_t i = sizeof copy; i < theirs; ++i) {
    if (bytes[i] != 0)
      return bad_option(
          "struct_size: the request has {} bytes and uses more than the {} that this library "
          "knows; install a newer one",
          theirs, sizeof copy);
  }
  return copy;
}

Result<Request> read_request(const plimsoll_plan_request& request) {
  Request out;
  PLIMSOLL_RETURN_IF_ERROR(read_techniques(request, out.fit));
  PLIMSOLL_RETURN_IF_ERROR(read_bytes(request, out));
  PLIMSOLL_RETURN_IF_ERROR(read_goal(request, out));
  PLIMSOLL_RETURN_IF_ERROR(read_search(request, out.fit));
  PLIMSOLL_RETURN_IF_ERROR(read_graph(request, out));
  out.unit = schedule::take_out_unit(out.workload, out.fit.copies);
  return out;
}

}  // namespace plimsoll::capi
