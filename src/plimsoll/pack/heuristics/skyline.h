// The constructive engine for any n: a skyline that is filled where it is lowest.
//
// The skyline is the floor over all sections, kept as segments of equal height. Take a segment
// whose neighbours are both higher; among the unplaced bodies that fit into its width pick the best
// by priority and lay it on the floor; if none fits, raise the segment to its lower neighbour, the
// only step that wastes space. No hole is made that would have to be found again, and no conflict
// graph is needed.
//
// Which valley is served first does not matter: serving one reads and changes nothing outside it,
// so any order gives the same packing. The pass stays where it is and walks downhill to the nearest
// valley, which keeps it in the cache (the lowest valley of all, from a heap, took twice as long on
// a million bodies).
//
// Slack guidance. Within a segment the tightest section is served first (least of target - load -
// waste so far, slack_tree.h): the pick is the best body that covers it. On random lifetimes this
// halves the waste. Snug fit. Among those, bodies that leave little free beside them
// (item_index.h).
//
// Levelling. Bodies of at most 1/3000 of the peak load are left aside at first, and a step of that
// size is filled up at once, before anything is put into it: small bodies on a wide floor would cut
// it into segments too narrow for the wide bodies to come. What is filled up or given up is a hole,
// and the small bodies go into the holes at the end (holes.h); those that fit into none are laid on
// top. On a million random buffers (seeds 202 to 204, size x lifetime^2) a pass ends 1.1 to 1.2 %
// above the bound, against 2.4 % with the small ones last and no holes (seed 201). Two thirds of
// the bodies take no part in the expensive picks.
//
//   sections     0 1 2 3      harbour of problem.h, widest first: the 8-byte body covers [0,2) and
//   floor        0 0 . .      goes to 0; then the segment [0,2) at 8 takes b0 at [0,1), b1 at [1,2)
//
// Fixed bodies are obstacles that hang over the floor. A pick must fit below them (the best of up
// to forty is taken), a segment rises no further than the lowest one above it, and one that the
// floor has reached becomes part of the skyline. Floors over an obstacle never pass it. Plain
// models only.
//
// Cost O(n log n) per pass in practice, 80 bytes per body. A Skyline belongs to one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plimsoll/pack/budget.h"
#include "plimsoll/pack/heuristics/holes.h"
#include "plimsoll/pack/heuristics/item_index.h"
#include "plimsoll/pack/heuristics/slack_tree.h"
#include "plimsoll/pack/model/bodies.h"

namespace plimsoll::pack {

struct PassRules {
  bool guided = true;  // slack guidance
  bool snug = true;    // snug fit
  bool level = true;   // levelling, and holes filled with small bodies
};

class Skyline {
 public:
  explicit Skyline(const BodyModel& model);

  // Places every body. With a budget it pays for its own work and returns false, places unfinished,
  // when that ends first.
  bool pass(std::span<const float> priority, PassRules rules, std::vector<std::int64_t>& places,
            Budget* budget = nullptr);

  // Elementary steps of the last pass, for budgets.
  std::int64_t work() const { return work_ + items_.work() + slack_.work(); }

 private:
  std::int32_t pick(std::int32_t x, std::int32_t y);
  std::int32_t pick_clear(std::int32_t x, std::int32_t y, std::int64_t height);
  void index_obstacles();
  std::int64_t lowest_obstacle(std::int32_t first, std::int32_t last, std::int64_t above,
                               std::int64_t below);
  bool land(std::int32_t& x, std::int32_t y, std::int64_t height);

  // Segments go by their first section; those that change the skyline return where to go on.
  void start_segments();
  void set_segment(std::int32_t begin, std::int32_t end, std::int64_t height);
  std::int32_t lower_neighbour(std::int32_t x) const;  // -1: x is a valley
  std::int64_t lowest_neighbour_height(std::int32_t x) const;
  std::int32_t raise(std::int32_t x);
  std::int32_t cover(std::int32_t x, std::int32_t first, std::int32_t last, std::int64_t top);
  // One step in valley x; true when it placed a body.
  bool serve(std::int32_t& x, std::vector<std::int64_t>& places);

  bool place_all(std::span<const std::uint32_t> bodies, std::span<const float> priority,
                 std::vector<std::int64_t>& places, Budget* budget);
  std::vector<std::uint32_t> fill(std::span<const float> priority,
                                  std::vector<std::int64_t>& places);

  const BodyModel& model_;
  std::vector<std::int64_t> load_;     // per section, units
  std::vector<std::uint32_t> free_;    // bodies by first section
  std::vector<std::uint32_t> coarse_;  // of those, higher than level_
  std::vector<std::uint32_t> fine_;    // and the others
  std::int64_t peak_ = 0;              // units
  std::int64_t level_ = 0;
  ItemIndex items_;
  SlackTree slack_;
  std::vector<Hole> holes_;
  bool guided_ = false;
  bool snug_ = false;
  bool levelling_ = false;
  std::vector<std::uint32_t> fixed_;          // bodies, by place
  std::vector<char> landed_;                  // per fixed body: it is part of the skyline
  std::vector<std::uint32_t> obstacles_;      // indices of fixed_, by block of sections
  std::vector<std::uint32_t> obstacles_of_;   // per block: where its obstacles begin
  std::vector<std::uint32_t> next_obstacle_;  // per block: all before have landed

  std::vector<std::int64_t> height_;  // per segment start; -1: no segment starts here
  std::vector<std::int32_t> segment_end_;
  std::vector<std::int32_t> segment_begin_;  // per segment end

  std::int64_t work_ = 0;
  std::int64_t paid_ = 0;  // of the work of this pass
};

}  // namespace plimsoll::pack
