// A plan with its windows written out as buffers and steps. Internal to place_in_memories.cpp.
#pragma once

#include "plimsoll/pack/model/problem.h"
#include "plimsoll/plan/memories/placement.h"

namespace plimsoll::plan {

// Arena 0 is device memory, 1 the host's; then the profile's memories.
inline constexpr std::size_t kFirstLevelArena = 2;

class MovedPlan {
 public:
  // All must outlive it.
  MovedPlan(const Plan& plan, const PlacementModel& model, const Placement& placement,
            const std::vector<Window>& windows);

  std::vector<std::size_t> windows_on(std::uint8_t level) const;
  const Window& window(std::size_t w) const { return windows_[w]; }
  pack::Buffer pack_buffer(std::size_t w) const;
  void set_offset(std::size_t w, Offset offset);
  Bytes height_of(std::uint8_t level) const;

  // Lifetimes, sizes, arenas, waits and seconds follow from the steps.
  Plan finish();

 private:
  struct Uses;

  void make_windows(const Placement& placement);
  void make_steps(const Placement& placement);
  void add_copy(std::size_t w, bool in);
  Slot redirected(const Slot& slot, std::int32_t step) const;
  void place_results(const Placement& placement);
  std::vector<Uses> uses() const;
  void drop_unused();
  void set_lifetimes();
  void name_buffers();
  void set_arenas();
  void add_waits();
  void set_seconds();
  void prove();

  const Plan& before_;
  const PlacementModel& model_;
  const std::vector<Window>& windows_;
  Plan out_;
  std::vector<std::size_t> buffer_of_;                // by window: its buffer in out_
  std::vector<std::int32_t> first_of_;                // by step before: its place now; and the end
  std::vector<std::vector<std::int32_t>> window_of_;  // by buffer and touch; -1: device memory
};

}  // namespace plimsoll::plan
