#include "plimsoll/plan/check_plan.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "plimsoll/codec/codec.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/plan/check_claims.h"

namespace plimsoll::plan {
namespace {

constexpr int kMaxStreams = 8;
constexpr std::int64_t kAlignment = 64;
constexpr std::size_t kMaxProblems = 100;
constexpr std::int32_t kBeforeStart = -1;
// of all contents together: a hostile graph could ask for any number
constexpr std::size_t kMaxPieces = 1 << 22;

// A run of bytes in an arena. `value`/`from` say which bytes of which value; an invalid value is
// rubbish. `encoded` marks the compact form a codec made.
struct Segment {
  std::int64_t end = 0;
  ValueId value;
  std::int64_t from = 0;
  bool encoded = false;
  std::int32_t writer = kBeforeStart;
  std::array<std::int32_t, kMaxStreams> readers{};  // last reader on each stream, -1 for none
};

struct Range {
  int arena = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool empty() const { return begin >= end; }
  bool overlaps(const Range& other) const {
    return arena == other.arena && begin < other.end && other.begin < end;
  }
};

// From byte `begin` on, a value consists of the bytes of `value` from `from` on. A value that a
// step makes is one piece, itself; a view is a part of another's pieces; a concat that nobody runs,
// the pieces of its inputs.
struct ContentPiece {
  std::int64_t begin = 0;
  ValueId value;
  std::int64_t from = 0;
};
using Content = std::vector<ContentPiece>;

class Checker {
 public:
  explicit Checker(const Plan& plan) : plan_(plan), memory_(plan.arenas.size()) {}

  PlanCheck run() {
    if (!check_structure()) return std::move(out_);
    find_contents();
    if (!out_.ok()) return std::move(out_);
    load_sources();
    runs_.assign(plan_.graph.nodes.size(), 0);
    for (std::size_t s = 0; s < plan_.steps.size() && out_.problems.size() < kMaxProblems; ++s)
      check_step(s);
    check_end();
    if (out_.ok()) out_.problems = check_claims(plan_, held_at_end_);
    return std::move(out_);
  }

 private:
  template <typename... Args>
  void complain(fmt::format_string<Args...> format, Args&&... args) {
    if (out_.problems.size() < kMaxProblems)
      out_.problems.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  // Everything that must hold before anything can be replayed.
  bool check_structure() {
    if (const Status status = ops::verify(plan_.graph); !status) {
      complain("the graph is wrong: {}", status.error().message);
      return false;
    }
    if (plan_.arenas.empty()) complain("there is no arena");
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      const PlanBuffer& buffer = plan_.buffers[b];
      if (buffer.arena >= plan_.arenas.size() || buffer.bytes.value < 0 ||
          buffer.offset.value < 0 ||
          buffer.offset.value > plan_.arenas[buffer.arena].bytes.value - buffer.bytes.value) {
        complain("buffer {} '{}': [{}, +{}) is outside its arena", b, buffer.name,
                 buffer.offset.value, buffer.bytes);
      } else if (buffer.offset.value % kAlignment != 0) {
        complain("buffer {} '{}': offset {} is not aligned to {}", b, buffer.name,
                 buffer.offset.value, kAlignment);
      }
    }
    for (const std::vector<BufferId>& group : plan_.contiguous) check_group(group);
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) check_step_structure(s);
    if (plan_.budget.value > 0 && plan_.arena_bytes() > plan_.budget) {
      complain("the arena has {} bytes, the budget is {}", plan_.arena_bytes(), plan_.budget);
    }
    return out_.problems.empty();
  }

  // Members follow each other with no more than the alignment's padding in between.
  void check_group(const std::vector<BufferId>& group) {
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (group[i].index() >= plan_.buffers.size())
        return complain("a contiguous group names a buffer that does not exist");
      if (i == 0) continue;
      const PlanBuffer& before = plan_.buffer(group[i - 1]);
      const PlanBuffer& after = plan_.buffer(group[i]);
      const std::int64_t end = before.offset.value + before.bytes.value;
      const std::int64_t gap = after.offset.value - end;
      if (before.arena != after.arena || gap < 0 || gap >= kAlignment)
        complain("'{}' does not lie right behind '{}'", after.name, before.name);
    }
  }

  void check_step_structure(std::size_t s) {
    const PlanStep& step = plan_.steps[s];
    const bool computes = step.kind == StepKind::kCompute || step.kind == StepKind::kRecompute;
    if (step.stream >= kMaxStreams)
      complain("step {}: stream {} is above {}", s, step.stream, kMaxStreams - 1);
    if (computes) {
      if (step.node.index() >= plan_.graph.nodes.size())
        return complain("step {}: no such node", s);
      const ir::Node& node = plan_.graph.node(step.node);
      if (step.inputs.size() != node.inputs.size() || step.outputs.size() != node.outputs.size()) {
        return complain("step {} ({}): has {} inputs and {} outputs, the node {} and {}", s,
                        node.op, step.inputs.size(), step.outputs.size(), node.inputs.size(),
                        node.outputs.size());
      }
    } else if (step.value.index() >= plan_.graph.values.size() || step.inputs.empty() ||
               (step.kind != StepKind::kDrop && step.outputs.size() != 1)) {
      return complain("step {}: a {} without a value, a source or a destination", s,
                      name(step.kind));
    }
    for (const auto* slots : {&step.inputs, &step.outputs}) {
      for (const Slot& slot : *slots) {
        if (slot.buffer.valid() && slot.buffer.index() >= plan_.buffers.size())
          complain("step {}: no such buffer", s);
      }
    }
    if (step.scratch.buffer.valid() && step.scratch.buffer.index() >= plan_.buffers.size())
      complain("step {}: no such scratch", s);
    for (const std::uint32_t wait : step.waits) {
      if (wait >= s) complain("step {}: waits for step {}, which does not come before it", s, wait);
    }
  }

  void find_contents() {
    for (std::size_t v = 0; v < plan_.graph.values.size(); ++v)
      content_.push_back({{0, ValueId(v), 0}});
    computed_.assign(plan_.graph.nodes.size(), false);
    for (const PlanStep& step : plan_.steps) {
      if (step.node.valid()) computed_[step.node.index()] = true;
    }
    for (std::size_t n = 0; n < plan_.graph.nodes.size() && out_.problems.size() < kMaxProblems;
         ++n) {
      if (!computed_[n]) find_content_of_views(n);
    }
  }

  void find_content_of_views(std::size_t n) {
    const ir::Node& node = plan_.graph.nodes[n];
    const ops::OpDefinition& definition = ops::definition_of(node);
    std::vector<ops::View> views;
    if (definition.views != nullptr)
      views =
          definition.views(ops::call_of(plan_.graph, node), ops::output_types(plan_.graph, node));
    std::sort(views.begin(), views.end(),
              [](const ops::View& a, const ops::View& b) { return a.offset < b.offset; });
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const std::int64_t bytes = bytes_of(node.outputs[i]);
      Content content;
      std::int64_t end = 0;
      for (const ops::View& view : views) {
        if (view.output != static_cast<int>(i)) continue;
        const ValueId input = node.inputs[static_cast<std::size_t>(view.input)];
        if (!view.input_inside) {
          append(content, input, view.offset.value, bytes, 0);
          end = bytes;
          break;
        }
        if (view.offset.value != end) break;
        append(content, input, 0, bytes_of(input), end);
        end += bytes_of(input);
      }
      if (end != bytes || bytes == 0) {
        complain("node {} ({}, {}) is never computed", n, node.op, node.layer);
        continue;
      }
      pieces_ += content.size();
      if (pieces_ > kMaxPieces)
        return complain("node {} ({}): is put together from too many pieces", n, node.op);
      content_[node.outputs[i].index()] = std::move(content);
    }
  }

  // Bytes [from, from + bytes) of `value`, at `at` of the content.
  void append(Content& content, ValueId value, std::int64_t from, std::int64_t bytes,
              std::int64_t at) const {
    const Content& source = content_[value.index()];
    for (std::size_t k = 0; k < source.size(); ++k) {
      const std::int64_t begin = std::max(from, source[k].begin);
      const std::int64_t end =
          std::min(from + bytes, k + 1 < source.size() ? source[k + 1].begin : bytes_of(value));
      if (begin >= end) continue;
      const ContentPiece piece{at + begin - from, source[k].value,
                               source[k].from + begin - source[k].begin};
      const bool goes_on = !content.empty() && content.back().value == piece.value &&
                           content.back().from - content.back().begin == piece.from - piece.begin;
      if (!goes_on) content.push_back(piece);
    }
  }

  std::int64_t bytes_of(ValueId value) const {
    return ir::bytes_of(plan_.graph.value(value).type).value;
  }

  std::optional<Range> range_of(const Slot& slot, std::int64_t bytes, std::size_t step,
                                std::string_view what) {
    if (!slot.buffer.valid()) {
      complain("step {}: {} has no place", step, what);
      return std::nullopt;
    }
    const PlanBuffer& buffer = plan_.buffer(slot.buffer);
    if (slot.offset.value < 0 || slot.offset.value > buffer.bytes.value - bytes) {
      complain("step {}: {} ({} bytes at +{}) does not fit buffer '{}' of {}", step, what, bytes,
               slot.offset, buffer.name, buffer.bytes);
      return std::nullopt;
    }
    const std::int64_t begin = buffer.offset.value + slot.offset.value;
    if (begin % kAlignment != 0)
      complain("step {}: {} begins at {}, not aligned to {}", step, what, begin, kAlignment);
    const Range range{buffer.arena, begin, begin + bytes};
    if (range.arena == 0) out_.peak_bytes = std::max(out_.peak_bytes, Bytes(range.end));
    return range;
  }

  void load_sources() {
    std::vector<bool> loaded(plan_.graph.values.size(), false);
    for (const ValueSlot& source : plan_.sources) {
      if (source.value.index() >= plan_.graph.values.size() ||
          source.slot.buffer.index() >= plan_.buffers.size()) {
        complain("a source names a value or buffer that does not exist");
        continue;
      }
      const auto range =
          range_of(source.slot, bytes_of(source.value), 0, plan_.graph.value(source.value).name);
      if (!range || range->empty()) {
        loaded[source.value.index()] = true;
        continue;
      }
      for_segments(*range, [&](std::int64_t, const Segment& segment) {
        if (segment.value.valid())
          complain("source '{}' lies over another source", plan_.graph.value(source.value).name);
      });
      store(*range, source.value, 0, false, kBeforeStart);
      loaded[source.value.index()] = true;
    }
    for (std::size_t v = 0; v < plan_.graph.values.size(); ++v) {
      if (ir::is_source(plan_.graph.values[v].kind) && !loaded[v])
        complain("source '{}' has no place", plan_.graph.values[v].name);
    }
  }

  // Cuts segments so that none crosses `at`.
  void cut(std::map<std::int64_t, Segment>& arena, std::int64_t at) {
    auto place = arena.upper_bound(at);
    if (place == arena.begin()) return;
    --place;
    if (place->first == at || place->second.end <= at) return;
    Segment tail = place->second;
    tail.from += at - place->first;
    place->second.end = at;
    arena.emplace(at, tail);
  }

  template <typename Body>
  void for_segments(const Range& range, Body body) {
    auto& arena = memory_[static_cast<std::size_t>(range.arena)];
    cut(arena, range.begin);
    cut(arena, range.end);
    for (auto place = arena.lower_bound(range.begin);
         place != arena.end() && place->first < range.end; ++place) {
      body(place->first, place->second);
    }
  }

  void store(const Range& range, ValueId value, std::int64_t from, bool encoded,
             std::int32_t writer) {
    if (range.empty()) return;
    auto& arena = memory_[static_cast<std::size_t>(range.arena)];
    cut(arena, range.begin);
    cut(arena, range.end);
    arena.erase(arena.lower_bound(range.begin), arena.lower_bound(range.end));
    Segment segment{range.end, value, from, encoded, writer, {}};
    segment.readers.fill(kBeforeStart);
    arena.emplace(range.begin, segment);
  }

  // Does the range hold exactly the bytes of `value`?
  bool holds(const Range& range, ValueId value) {
    const Content& content = content_[value.index()];
    std::size_t piece = 0;
    std::int64_t at = range.begin;
    bool right = true;
    for_segments(range, [&](std::int64_t begin, const Segment& segment) {
      right = right && begin == at && !segment.encoded;
      for (at = begin; right && at < segment.end;) {
        while (piece + 1 < content.size() && content[piece + 1].begin <= at - range.begin) ++piece;
        const ContentPiece& wanted = content[piece];
        right = segment.value == wanted.value &&
                segment.from + (at - begin) == wanted.from + (at - range.begin - wanted.begin);
        at = piece + 1 < content.size()
                 ? std::min(segment.end, range.begin + content[piece + 1].begin)
                 : segment.end;
      }
    });
    return right && at >= range.end;
  }

  // Does the range hold the compact form of `value`?
  bool holds_encoded(const Range& range, ValueId value) {
    std::int64_t at = range.begin;
    bool right = true;
    for_segments(range, [&](std::int64_t begin, const Segment& segment) {
      right = right && begin == at && segment.value == value && segment.encoded;
      at = segment.end;
    });
    return right && at >= range.end;
  }

  // Vector clocks: what each step knows to be done. A step knows what its predecessor on the stream
  // and everything it waits for knew, and those steps themselves.
  void advance_clock(std::size_t s) {
    const PlanStep& step = plan_.steps[s];
    std::array<std::int32_t, kMaxStreams> clock;
    clock.fill(kBeforeStart);
    const auto join = [&](std::int32_t other) {
      if (other < 0) return;
      for (int i = 0; i < kMaxStreams; ++i)
        clock[i] = std::max(clock[i], clocks_[static_cast<std::size_t>(other)][i]);
    };
    join(latest_[step.stream]);
    for (const std::uint32_t wait : step.waits) join(static_cast<std::int32_t>(wait));
    clock[step.stream] = static_cast<std::int32_t>(s);
    latest_[step.stream] = static_cast<std::int32_t>(s);
    clocks_.push_back(clock);
  }

  bool happened_before(std::int32_t earlier, std::size_t s) const {
    return earlier < 0 ||
           clocks_[s][plan_.steps[static_cast<std::size_t>(earlier)].stream] >= earlier;
  }

  void read(std::size_t s, const Range& range) {
    for_segments(range, [&](std::int64_t, Segment& segment) {
      if (!happened_before(segment.writer, s))
        complain("step {}: reads what step {} writes on another stream without waiting", s,
                 segment.writer);
      segment.readers[plan_.steps[s].stream] = static_cast<std::int32_t>(s);
    });
  }

  void write(std::size_t s, const Range& range) {
    for_segments(range, [&](std::int64_t, Segment& segment) {
      if (!happened_before(segment.writer, s))
        complain("step {}: overwrites what step {} writes without waiting", s, segment.writer);
      for (const std::int32_t reader : segment.readers) {
        if (!happened_before(reader, s))
          complain("step {}: overwrites what step {} still reads", s, reader);
      }
    });
  }

  void check_step(std::size_t s) {
    advance_clock(s);
    const PlanStep& step = plan_.steps[s];
    if (step.kind == StepKind::kCompute || step.kind == StepKind::kRecompute) {
      check_compute(s);
    } else if (step.kind != StepKind::kDrop) {
      check_move(s);
    }
  }

  void check_compute(std::size_t s) {
    const PlanStep& step = plan_.steps[s];
    const ir::Node& node = plan_.graph.node(step.node);
    const ops::OpDefinition& definition = ops::definition_of(node);
    const int earlier_runs = runs_[step.node.index()]++;
    if ((earlier_runs > 0) != (step.kind == StepKind::kRecompute)) {
      complain("step {} ({}, {}): is called {}, it runs for the {} time", s, node.op, node.layer,
               name(step.kind), earlier_runs > 0 ? "second" : "first");
    }
    if (earlier_runs > 0 &&
        (node.phase == ir::Phase::kUpdate || definition.recompute == ops::Recompute::kNever)) {
      complain("step {} ({}, {}): must run once only", s, node.op, node.layer);
    }
    std::vector<Range> inputs(node.inputs.size());
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.inputs[i].valid()) continue;
      const ir::Value& value = plan_.graph.value(node.inputs[i]);
      const auto range = range_of(step.inputs[i], bytes_of(node.inputs[i]), s, value.name);
      if (!range) continue;
      inputs[i] = *range;
      if (!range->empty() && !holds(*range, node.inputs[i])) {
        complain("step {} ({}, {}): input {} should be '{}', other bytes lie there", s, node.op,
                 node.layer, i, value.name);
      }
      read(s, *range);
    }
    std::vector<Range> written;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const auto range = range_of(step.outputs[i], bytes_of(node.outputs[i]), s,
                                  plan_.graph.value(node.outputs[i]).name);
      if (!range) return;
      check_overlaps(s, node, definition, static_cast<int>(i), *range, inputs);
      written.push_back(*range);
    }
    if (step.scratch.buffer.valid()) {
      const auto range =
          range_of(step.scratch, plan_.buffer(step.scratch.buffer).bytes.value, s, "scratch");
      if (range) written.push_back(*range);
      for (const Range& input : inputs) {
        if (range && !input.empty() && input.overlaps(*range))
          complain("step {} ({}): scratch lies over an input", s, node.op);
      }
    }
    for (std::size_t a = 0; a < written.size(); ++a) {
      for (std::size_t b = a + 1; b < written.size(); ++b) {
        if (!written[a].empty() && !written[b].empty() && written[a].overlaps(written[b]))
          complain("step {} ({}): its results overlap", s, node.op);
      }
      write(s, written[a]);
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      store(written[i], node.outputs[i], 0, false, static_cast<std::int32_t>(s));
    if (written.size() > node.outputs.size())
      store(written.back(), {}, 0, false, static_cast<std::int32_t>(s));
  }

  void check_overlaps(std::size_t s, const ir::Node& node, const ops::OpDefinition& definition,
                      int output, const Range& range, const std::vector<Range>& inputs) {
    const auto allowed = [&](std::size_t input) {
      return std::any_of(definition.in_place.pairs().begin(), definition.in_place.pairs().end(),
                         [&](const ops::InPlace::Pair& pair) {
                           return pair.output == output && pair.input == static_cast<int>(input);
                         });
    };
    bool in_place = false;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].empty() || range.empty() || !inputs[i].overlaps(range)) continue;
      const bool same = inputs[i].begin == range.begin && inputs[i].end == range.end;
      if (same && allowed(i)) {
        in_place = true;
      } else if (!(same && std::any_of(inputs.begin(), inputs.end(), [&](const Range& other) {
                     const auto place = static_cast<std::size_t>(&other - inputs.data());
                     return node.inputs[place] == node.inputs[i] && allowed(place);
                   }))) {
        complain(
            "step {} ({}, {}): result {} lies over input {}, which the operator does not allow", s,
            node.op, node.layer, output, i);
      }
    }
    if (definition.in_place.must() && !in_place && !range.empty()) {
      const bool demanded =
          std::any_of(definition.in_place.pairs().begin(), definition.in_place.pairs().end(),
                      [&](const ops::InPlace::Pair& pair) { return pair.output == output; });
      if (demanded)
        complain("step {} ({}, {}): result {} must lie over its old version", s, node.op,
                 node.layer, output);
    }
  }

  void check_move(std::size_t s) {
    const PlanStep& step = plan_.steps[s];
    const std::string& value_name = plan_.graph.value(step.value).name;
    const bool encodes = step.kind == StepKind::kEncode;
    const bool decodes = step.kind == StepKind::kDecode;
    const Slot& from_slot = step.inputs.front();
    const Slot& to_slot = step.outputs.front();
    if (!from_slot.buffer.valid() || !to_slot.buffer.valid())
      return complain("step {}: a {} without places", s, name(step.kind));
    const std::int64_t bytes = bytes_of(step.value);
    const auto from = range_of(
        from_slot, decodes ? plan_.buffer(from_slot.buffer).bytes.value : bytes, s, value_name);
    const auto to = range_of(to_slot, encodes ? plan_.buffer(to_slot.buffer).bytes.value : bytes, s,
                             value_name);
    if (!from || !to) return;
    if (!from->empty() && !(decodes ? holds_encoded(*from, step.value) : holds(*from, step.value)))
      complain("step {}: {} of '{}' finds other bytes", s, name(step.kind), value_name);
    if (encodes || decodes) check_codec(s);
    if (decodes && !from->empty()) check_same_codec(s, *from);
    if (from->overlaps(*to))
      complain("step {}: {} of '{}' onto itself", s, name(step.kind), value_name);
    read(s, *from);
    write(s, *to);
    store(*to, step.value, 0, encodes, static_cast<std::int32_t>(s));
  }

  // The codec is one there is, and for what it stores: floats, or the bytes of indices.
  void check_codec(std::size_t s) {
    const PlanStep& step = plan_.steps[s];
    const codec::Codec* codec = codec::find_codec(step.codec);
    if (codec == nullptr)
      return complain("step {}: {} by '{}', which is no codec", s, name(step.kind), step.codec);
    const ir::DType stored = codec->element_bytes == 1 ? ir::DType::kU8 : ir::DType::kF32;
    const ir::DType dtype = plan_.graph.value(step.value).type.dtype;
    if (dtype != stored)
      complain("step {}: codec '{}' stores {}, '{}' is {}", s, step.codec, ir::name(stored),
               plan_.graph.value(step.value).name, ir::name(dtype));
  }

  // What one codec wrote no other can read.
  void check_same_codec(std::size_t s, const Range& range) {
    std::string wrote = plan_.steps[s].codec;
    for_segments(range, [&](std::int64_t, const Segment& segment) {
      if (segment.encoded && segment.writer >= 0)
        wrote = plan_.steps[static_cast<std::size_t>(segment.writer)].codec;
    });
    if (wrote != plan_.steps[s].codec)
      complain("step {}: decode by '{}' of what '{}' encoded", s, plan_.steps[s].codec, wrote);
  }

  void check_end() {
    held_at_end_.assign(plan_.buffers.size(), false);
    std::map<ValueId, Range> ends;
    for (const ValueSlot& result : plan_.results) {
      if (result.value.index() >= plan_.graph.values.size() ||
          result.slot.buffer.index() >= plan_.buffers.size()) {
        complain("a result names a value or buffer that does not exist");
        continue;
      }
      const std::string& value_name = plan_.graph.value(result.value).name;
      const auto range =
          range_of(result.slot, bytes_of(result.value), plan_.steps.size(), value_name);
      if (!range) continue;
      if (!range->empty() && !holds(*range, result.value))
        complain("at the end '{}' is not where the plan says", value_name);
      ends[result.value] = *range;
      held_at_end_[result.slot.buffer.index()] = true;
    }
    for (const ValueId output : plan_.graph.outputs) {
      if (!ends.contains(output))
        complain("output '{}' has no place", plan_.graph.value(output).name);
    }
    check_states(ends);
  }

  // Every state must lie, at the end, where the next step will look for it.
  void check_states(const std::map<ValueId, Range>& ends) {
    std::vector<ValueId> next(plan_.graph.values.size());
    for (const ir::Update& update : plan_.graph.updates) next[update.source.index()] = update.next;
    for (const ValueSlot& source : plan_.sources) {
      if (source.value.index() >= plan_.graph.values.size()) continue;
      const ir::Value& value = plan_.graph.value(source.value);
      if (value.kind == ir::ValueKind::kInput || source.slot.buffer.index() >= plan_.buffers.size())
        continue;
      const auto range =
          range_of(source.slot, bytes_of(source.value), plan_.steps.size(), value.name);
      if (!range || range->empty()) continue;
      const ValueId now =
          next[source.value.index()].valid() ? next[source.value.index()] : source.value;
      if (!holds(*range, now))
        complain("after the step '{}' is not where the next step reads it", value.name);
      hold_writers(*range, source.slot.buffer);
      const auto place = ends.find(now);
      if (place != ends.end() && place->second.begin != range->begin)
        complain("the next version of '{}' lies elsewhere", value.name);
    }
  }

  // Bytes that are there at the end are held by the buffer of the step that wrote them; those that
  // nobody wrote, by the one they began in.
  void hold_writers(const Range& range, BufferId began_in) {
    std::int32_t seen = kBeforeStart;
    for_segments(range, [&](std::int64_t, const Segment& segment) {
      if (segment.writer == kBeforeStart) held_at_end_[began_in.index()] = true;
      if (segment.writer == kBeforeStart || segment.writer == seen) return;
      seen = segment.writer;
      for (const Slot& slot : plan_.steps[static_cast<std::size_t>(seen)].outputs) {
        if (!slot.buffer.valid()) continue;
        const PlanBuffer& buffer = plan_.buffer(slot.buffer);
        const Range whole{buffer.arena, buffer.offset.value,
                          buffer.offset.value + buffer.bytes.value};
        if (whole.overlaps(range)) held_at_end_[slot.buffer.index()] = true;
      }
    });
  }

  const Plan& plan_;
  PlanCheck out_;
  std::vector<std::map<std::int64_t, Segment>> memory_;
  std::vector<Content> content_;  // by value
  std::size_t pieces_ = 0;
  std::vector<bool> computed_;
  std::vector<bool> held_at_end_;  // by buffer
  std::vector<int> runs_;
  std::vector<std::array<std::int32_t, kMaxStreams>> clocks_;
  std::array<std::int32_t, kMaxStreams> latest_ = [] {
    std::array<std::int32_t, kMaxStreams> none;
    none.fill(kBeforeStart);
    return none;
  }();
};

}  // namespace

PlanCheck check_plan(const Plan& plan) {
  return Checker(plan).run();
}

}  // namespace plimsoll::plan
