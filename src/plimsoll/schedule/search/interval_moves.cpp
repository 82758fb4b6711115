#include "plimsoll/schedule/search/interval_moves.h"

#include <algorithm>

namespace plimsoll::schedule {

IntervalMoves::IntervalMoves(Retention retention, const Problem& problem, std::uint64_t seed,
                             const IntervalSearchOptions& options)
    : retention_(std::move(retention)), p_(problem), random_(seed), how_(options) {
  for (Index v = 0; v < p_.values; ++v) {
    if (p_.encoding[at(v)] == kSettledSwap) continue;
    const bool encodes = p_.encoding[at(v)] != kNoIndex && p_.producer[at(v)] != kNoIndex;
    if (p_.bytes[at(v)] > 0 && (p_.recomputable(v) || encodes)) movable_.push_back(v);
  }
}

// A value that some stage recomputes or decodes, at random: (stage, value).
std::pair<Index, Index> IntervalMoves::recomputed() {
  for (int tries = 0; tries < how_.recomputed_tries; ++tries) {
    const Index stage = random_index(at(p_.tasks));
    const auto& actions = retention_.actions(stage);
    if (actions.size() < 2) continue;
    const ListedAction action = actions[at(random_index(actions.size()))];
    if (action.kind == ActionKind::kEncode) continue;
    if (action.kind == ActionKind::kDecode) return {stage, action.id};
    if (action.id == retention_.order()[at(stage)]) continue;
    const auto outputs = p_.outputs[action.id];
    return {stage, outputs[at(random_index(outputs.size()))]};
  }
  return {kNoIndex, kNoIndex};
}

IntervalMoves::Keepable IntervalMoves::keepable() {
  const auto [stage, value] = recomputed();
  if (stage == kNoIndex || retention_.held(value, stage)) return {};
  const Index from = retention_.last_available(value, stage);
  if (from == kNoIndex || from >= stage) return {};
  return {value, {from + 1, stage + 1}, retention_.extra_seconds(stage)};
}

void IntervalMoves::hold_plain(Index value, Retention::Gap gap) {
  if (!retention_.may_hold(value, gap.end - 1)) return;
  for (Index b = gap.begin; b < gap.end; ++b) {
    if (retention_.held_encoded(value, b)) {
      Index end = b;
      while (end < gap.end && retention_.held_encoded(value, end)) ++end;
      retention_.hold(value, {b, end}, Form::kEncoded, false);
      b = end;
    }
  }
  retention_.hold(value, gap, Form::kDevice, true);
}

bool IntervalMoves::recompute_earlier() {
  const auto [stage, value] = recomputed();
  if (stage == kNoIndex || retention_.held(value, stage) || retention_.held_encoded(value, stage))
    return false;
  const Index from = retention_.last_available(value, stage);
  if (from == kNoIndex || from + 1 >= stage) return false;
  const Index span = std::min<Index>(
      stage - from - 1, 1 + random_index(std::min<std::size_t>(at(p_.tasks), how_.earliest)));
  const Index when = stage - 1 - random_index(at(span));
  if (when <= from) return false;
  for (Index b = when + 1; b <= stage; ++b) {
    if (retention_.held_encoded(value, b)) return false;
  }
  retention_.hold(value, {when + 1, stage + 1}, Form::kDevice, true);
  return retention_.possible();
}

bool IntervalMoves::rerun_from_held_inputs(std::optional<double> slack) {
  for (int tries = 0; tries < how_.drop_tries; ++tries) {
    const Index value = random_movable();
    const auto gap =
        retention_.gap_at(value, retention_.some_held(value, random_index(at(p_.tasks))));
    if (gap.begin >= gap.end || !p_.recomputable(value)) continue;
    const Index when = gap.begin + random_index(at(gap.end - gap.begin));
    if (when >= p_.tasks) continue;
    const Retention::Gap empty{gap.begin, when + 1};
    if (slack && rerun_costs(value, when) > *slack + retention_.relief(empty, p_.bytes[at(value)]))
      return false;
    for (Index u : p_.inputs[p_.producer[at(value)]]) {
      const auto wait = wait_of(u, when);
      if (wait.begin < wait.end) hold_plain(u, wait);
    }
    retention_.hold(value, empty, Form::kDevice, false);
    return true;
  }
  return false;
}

// Where an input would have to be held on for a run at a stage.
Retention::Gap IntervalMoves::wait_of(Index input, Index stage) const {
  if (retention_.held(input, stage) || retention_.held_encoded(input, stage)) return {};
  const Index from = retention_.last_available(input, stage);
  if (from == kNoIndex || from >= stage) return {};
  return {from + 1, stage + 1};
}

// At least.
double IntervalMoves::rerun_costs(Index value, Index stage) const {
  const Index task = p_.producer[at(value)];
  double costs = p_.seconds[at(task)];
  for (Index u : p_.inputs[task]) costs += retention_.burden(wait_of(u, stage), p_.bytes[at(u)]);
  return costs;
}

bool IntervalMoves::move_operator() {
  const Index stage = random_index(at(p_.tasks));
  const bool later = random_.chance(how_.later_chance);
  std::int64_t far = 1;
  if (!random_.chance(how_.single_step_chance))
    far += random_.below(random_.chance(how_.long_move_chance) ? how_.long_move : how_.short_move);
  bool moved = false;
  Index where = later ? stage : stage - 1;
  for (std::int64_t i = 0; i < far; ++i, where += later ? 1 : -1) {
    if (!retention_.transpose(where)) break;
    moved = true;
  }
  return moved && retention_.possible();
}

std::optional<bool> IntervalMoves::encode_or_drop(Index value, Retention::Gap gap) {
  const bool encode =
      can_encode(value, gap) && (!p_.recomputable(value) || random_.chance(how_.encode_chance));
  if (!encode && !p_.recomputable(value)) return std::nullopt;
  return encode;
}

void IntervalMoves::let_go(Index value, Retention::Gap gap, bool encode) {
  retention_.hold(value, gap, Form::kDevice, false);
  if (encode) retention_.hold(value, gap, Form::kEncoded, true);
}

bool IntervalMoves::can_encode(Index value, Retention::Gap gap) const {
  if (!retention_.encodable(value)) return false;
  for (Index b = gap.begin; b < gap.end; ++b) {
    if (retention_.held_encoded(value, b)) return false;
  }
  return true;
}

}  // namespace plimsoll::schedule
