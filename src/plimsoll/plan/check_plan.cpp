#include "plimsoll/plan/check_plan.h"

#include <algorithm>
#include <map>
#include <optional>

#include "plimsoll/codec/codec.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/plan/arena_contents.h"
#include "plimsoll/plan/check_claims.h"
#include "plimsoll/plan/check_streams.h"
#include "plimsoll/plan/check_views.h"

namespace plimsoll::plan {
namespace {

// of all contents together: a hostile graph could ask for any number
constexpr std::size_t kMaxPieces = 1 << 22;

class Checker {
 public:
  explicit Checker(const Plan& plan)
      : plan_(plan), graph_(plan.graph), memory_(plan.arenas.size()) {}

  PlanCheck run() {
    check_structure(plan_, problems_);
    if (problems_.none()) find_contents();
    if (problems_.none()) replay();
    if (problems_.none()) check_claims(plan_, held_at_end_, problems_);
    return {problems_.take(), Bytes(peak_)};
  }

 private:
  void replay() {
    load_sources();
    runs_.assign(graph_.nodes.size(), 0);
    clocks_ = clocks_of(plan_);
    for (std::size_t s = 0; s < plan_.steps.size() && !problems_.full(); ++s) {
      if (is_compute(plan_.steps[s])) {
        check_compute(s);
      } else if (plan_.steps[s].kind != StepKind::kDrop) {
        check_move(s);
      }
    }
    check_results();
    check_states();
  }

  std::int64_t bytes_of(ValueId value) const {
    return ir::bytes_of(graph_.value(value).type).value;
  }
  const std::string& name_of(ValueId value) const { return graph_.value(value).name; }

  // What a value's bytes are, in terms of values that steps make: itself, or for a node that nobody
  // runs the pieces of others.
  void find_contents() {
    std::vector<bool> computed(graph_.nodes.size(), false);
    for (const PlanStep& step : plan_.steps) {
      if (step.node.valid()) computed[step.node.index()] = true;
    }
    for (std::size_t v = 0; v < graph_.values.size(); ++v)
      content_.push_back({{0, ValueId(v), 0, bytes_of(ValueId(v))}});
    std::size_t pieces = 0;
    for (std::size_t n = 0; n < graph_.nodes.size() && !problems_.full(); ++n) {
      const ir::Node& node = graph_.nodes[n];
      for (std::size_t i = 0; !computed[n] && i < node.outputs.size(); ++i) {
        std::vector<ViewPiece> content;
        for (const ViewPiece& piece : pieces_of_view(graph_, node, i)) append(content, piece);
        if (content.empty())
          problems_.add("node {} ({}, {}) is never computed", n, node.op, node.layer);
        pieces += content.size();
        if (pieces > kMaxPieces)
          return problems_.add("node {} ({}): is put together from too many pieces", n, node.op);
        content_[node.outputs[i].index()] = std::move(content);
      }
    }
  }

  // The piece, in terms of what its value consists of.
  void append(std::vector<ViewPiece>& content, const ViewPiece& piece) const {
    for (const ViewPiece& source : content_[piece.value.index()]) {
      const std::int64_t begin = std::max(piece.from, source.begin);
      const std::int64_t end = std::min(piece.from + piece.bytes, source.begin + source.bytes);
      if (begin < end)
        content.push_back({piece.begin + begin - piece.from, source.value,
                           source.from + begin - source.begin, end - begin});
    }
  }

  std::optional<Range> range_of(const Slot& slot, std::int64_t bytes, std::size_t step,
                                std::string_view what) {
    if (!slot.buffer.valid()) {
      problems_.add("step {}: {} has no place", step, what);
      return std::nullopt;
    }
    const PlanBuffer& buffer = plan_.buffer(slot.buffer);
    if (slot.offset.value < 0 || slot.offset.value > buffer.bytes.value - bytes) {
      problems_.add("step {}: {} ({} bytes at +{}) does not fit buffer '{}' of {}", step, what,
                    bytes, slot.offset, buffer.name, buffer.bytes);
      return std::nullopt;
    }
    const std::int64_t begin = buffer.offset.value + slot.offset.value;
    if (begin % plan_.alignment.value != 0)
      problems_.add("step {}: {} begins at {}, not aligned to {}", step, what, begin,
                    plan_.alignment);
    if (buffer.arena == 0) peak_ = std::max(peak_, begin + bytes);
    return Range{buffer.arena, begin, begin + bytes};
  }
  std::optional<Range> range_of(const Slot& slot, ValueId value, std::size_t step) {
    return range_of(slot, bytes_of(value), step, name_of(value));
  }
  Range whole(BufferId id) const {
    const PlanBuffer& buffer = plan_.buffer(id);
    return {buffer.arena, buffer.offset.value, buffer.offset.value + buffer.bytes.value};
  }

  void load_sources() {
    std::vector<bool> loaded(graph_.values.size(), false);
    for (const ValueSlot& source : plan_.sources) {
      loaded[source.value.index()] = true;
      const auto range = range_of(source.slot, source.value, 0);
      if (!range) continue;
      memory_.for_segments(*range, [&](std::int64_t, const Segment& segment) {
        if (segment.value.valid())
          problems_.add("source '{}' lies over another source", name_of(source.value));
      });
      memory_.store(*range, source.value, {}, kBeforeStart);
    }
    for (std::size_t v = 0; v < graph_.values.size(); ++v) {
      if (ir::is_source(graph_.values[v].kind) && !loaded[v])
        problems_.add("source '{}' has no place", graph_.values[v].name);
    }
  }

  bool holds(const Range& range, ValueId value) {
    return memory_.holds(range, content_[value.index()]);
  }

  bool happened_before(std::int32_t earlier, std::size_t s) const {
    if (earlier == kBeforeStart || earlier == static_cast<std::int32_t>(s)) return true;
    const auto e = static_cast<std::size_t>(earlier);
    return clocks_.done[s][plan_.steps[e].stream] >= clocks_.number[e];
  }

  void read(std::size_t s, const Range& range) {
    memory_.for_segments(range, [&](std::int64_t, Segment& segment) {
      if (!happened_before(segment.writer, s))
        problems_.add("step {}: reads what step {} writes on another stream without waiting", s,
                      segment.writer);
      segment.readers[plan_.steps[s].stream] = static_cast<std::int32_t>(s);
    });
  }

  void write(std::size_t s, const Range& range) {
    memory_.for_segments(range, [&](std::int64_t, Segment& segment) {
      if (!happened_before(segment.writer, s))
        problems_.add("step {}: overwrites what step {} writes without waiting", s, segment.writer);
      for (const std::int32_t reader : segment.readers) {
        if (!happened_before(reader, s))
          problems_.add("step {}: overwrites what step {} still reads", s, reader);
      }
    });
  }

  void check_compute(std::size_t s) {
    const PlanStep& step = plan_.steps[s];
    const ir::Node& node = graph_.node(step.node);
    const bool again = runs_[step.node.index()]++ > 0;
    if (again != (step.kind == StepKind::kRecompute))
      problems_.add("step {} ({}, {}): is called {}, it runs for the {} time", s, node.op,
                    node.layer, name(step.kind), again ? "second" : "first");
    if (again && (node.phase == ir::Phase::kUpdate ||
                  ops::definition_of(node).recompute == ops::Recompute::kNever))
      problems_.add("step {} ({}, {}): must run once only", s, node.op, node.layer);
    std::vector<Range> inputs(node.inputs.size());
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.inputs[i].valid()) continue;
      const auto range = range_of(step.inputs[i], node.inputs[i], s);
      if (!range) continue;
      inputs[i] = *range;
      if (!holds(*range, node.inputs[i]))
        problems_.add("step {} ({}, {}): input {} should be '{}', other bytes lie there", s,
                      node.op, node.layer, i, name_of(node.inputs[i]));
      read(s, *range);
    }
    std::vector<Range> written;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const auto range = range_of(step.outputs[i], node.outputs[i], s);
      if (!range) return;
      check_in_place(s, static_cast<int>(i), *range, inputs);
      written.push_back(*range);
    }
    if (step.scratch.buffer.valid()) {
      const std::int64_t bytes = plan_.buffer(step.scratch.buffer).bytes.value;
      if (const auto range = range_of(step.scratch, bytes, s, "scratch")) {
        written.push_back(*range);
        if (std::ranges::any_of(inputs, [&](const Range& in) { return in.overlaps(*range); }))
          problems_.add("step {} ({}): scratch lies over an input", s, node.op);
      }
    }
    for (std::size_t a = 0; a < written.size(); ++a) {
      for (std::size_t b = a + 1; b < written.size(); ++b) {
        if (written[a].overlaps(written[b]))
          problems_.add("step {} ({}): its results overlap", s, node.op);
      }
      write(s, written[a]);
    }
    for (std::size_t i = 0; i < written.size(); ++i)
      memory_.store(written[i], i < node.outputs.size() ? node.outputs[i] : ValueId(), {},
                    static_cast<std::int32_t>(s));
  }

  // A result lies over an input only as the operator's definition allows, or demands.
  void check_in_place(std::size_t s, int output, const Range& range,
                      const std::vector<Range>& inputs) {
    const ir::Node& node = graph_.node(plan_.steps[s].node);
    const ops::InPlace& rule = ops::definition_of(node).in_place;
    std::vector<ValueId> allowed;  // a value that is read twice, by either input
    bool demanded = false, in_place = false;
    for (const ops::InPlace::Pair& pair : rule.pairs()) {
      const auto input = static_cast<std::size_t>(pair.input);
      if (pair.output != output) continue;
      demanded = rule.must();
      if (input >= inputs.size()) continue;
      allowed.push_back(node.inputs[input]);
      in_place = in_place || inputs[input] == range;
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].overlaps(range)) continue;
      if (inputs[i] != range || std::ranges::find(allowed, node.inputs[i]) == allowed.end())
        problems_.add(
            "step {} ({}, {}): result {} lies over input {}, which the operator does not allow", s,
            node.op, node.layer, output, i);
    }
    if (demanded && !in_place && !range.empty())
      problems_.add("step {} ({}, {}): result {} must lie over its old version", s, node.op,
                    node.layer, output);
  }

  void check_move(std::size_t s) {
    const PlanStep& step = plan_.steps[s];
    const bool encodes = step.kind == StepKind::kEncode;
    const bool decodes = step.kind == StepKind::kDecode;
    const Slot& from_slot = step.inputs.front();
    const Slot& to_slot = step.outputs.front();
    if (!from_slot.buffer.valid() || !to_slot.buffer.valid())
      return problems_.add("step {}: a {} without places", s, name(step.kind));
    // A codec's form takes the whole of its buffer.
    const std::int64_t bytes = bytes_of(step.value);
    const auto size = [&](const Slot& slot, bool encoded) {
      return encoded ? plan_.buffer(slot.buffer).bytes.value : bytes;
    };
    const auto from = range_of(from_slot, size(from_slot, decodes), s, name_of(step.value));
    const auto to = range_of(to_slot, size(to_slot, encodes), s, name_of(step.value));
    if (!from || !to) return;
    if (!(decodes ? memory_.holds(*from, {{0, step.value, 0, from->end - from->begin}}, true)
                  : holds(*from, step.value)))
      problems_.add("step {}: {} of '{}' finds other bytes", s, name(step.kind),
                    name_of(step.value));
    if (encodes || decodes) check_codec(s, *from);
    if (from->overlaps(*to))
      problems_.add("step {}: {} of '{}' onto itself", s, name(step.kind), name_of(step.value));
    read(s, *from);
    write(s, *to);
    memory_.store(*to, step.value, encodes ? std::string_view(step.codec) : std::string_view(),
                  static_cast<std::int32_t>(s));
  }

  // The codec is one there is, for what it stores, and what one wrote no other can read.
  void check_codec(std::size_t s, const Range& from) {
    const PlanStep& step = plan_.steps[s];
    const codec::Codec* codec = codec::find_codec(step.codec);
    if (codec == nullptr)
      return problems_.add("step {}: {} by '{}', which is no codec", s, name(step.kind),
                           step.codec);
    const ir::DType stored = codec->element_bytes == 1 ? ir::DType::kU8 : ir::DType::kF32;
    const ir::DType dtype = graph_.value(step.value).type.dtype;
    if (dtype != stored)
      problems_.add("step {}: codec '{}' stores {}, '{}' is {}", s, step.codec, ir::name(stored),
                    name_of(step.value), ir::name(dtype));
    memory_.for_segments(from, [&](std::int64_t, const Segment& segment) {
      if (!segment.codec.empty() && segment.codec != step.codec)
        problems_.add("step {}: {} by '{}' of what '{}' encoded", s, name(step.kind), step.codec,
                      segment.codec);
    });
  }

  void check_results() {
    held_at_end_.assign(plan_.buffers.size(), false);
    for (const ValueSlot& result : plan_.results) {
      const auto range = range_of(result.slot, result.value, plan_.steps.size());
      if (!range) continue;
      if (!holds(*range, result.value))
        problems_.add("at the end '{}' is not where the plan says", name_of(result.value));
      ends_[result.value] = *range;
      held_at_end_[result.slot.buffer.index()] = true;
    }
    for (const ValueId output : graph_.outputs) {
      if (!ends_.contains(output)) problems_.add("output '{}' has no place", name_of(output));
    }
  }

  // Every state must lie, at the end, where the next step will look for it.
  void check_states() {
    std::vector<ValueId> next(graph_.values.size());
    for (const ir::Update& update : graph_.updates) next[update.source.index()] = update.next;
    for (const ValueSlot& source : plan_.sources) {
      if (graph_.value(source.value).kind == ir::ValueKind::kInput) continue;
      const auto range = range_of(source.slot, source.value, plan_.steps.size());
      if (!range || range->empty()) continue;
      const ValueId updated = next[source.value.index()];
      const ValueId now = updated.valid() ? updated : source.value;
      if (!holds(*range, now))
        problems_.add("after the step '{}' is not where the next step reads it",
                      name_of(source.value));
      hold_writers(*range, source.slot.buffer);
      if (ends_.contains(now) && ends_[now].begin != range->begin)
        problems_.add("the next version of '{}' lies elsewhere", name_of(source.value));
    }
  }

  // Bytes that are there at the end are held by the buffer of the step that wrote them; those that
  // nobody wrote, by the one they began in.
  void hold_writers(const Range& range, BufferId began_in) {
    std::int32_t seen = kBeforeStart;
    memory_.for_segments(range, [&](std::int64_t, const Segment& segment) {
      if (segment.writer == kBeforeStart) held_at_end_[began_in.index()] = true;
      if (segment.writer == kBeforeStart || segment.writer == seen) return;
      seen = segment.writer;
      for (const Slot& slot : plan_.steps[static_cast<std::size_t>(seen)].outputs) {
        if (slot.buffer.valid() && whole(slot.buffer).overlaps(range))
          held_at_end_[slot.buffer.index()] = true;
      }
    });
  }

  const Plan& plan_;
  const ir::Graph& graph_;
  Problems problems_;
  std::int64_t peak_ = 0;  // highest byte of device memory that is touched
  ArenaContents memory_;
  std::vector<std::vector<ViewPiece>> content_;  // by value
  std::vector<int> runs_;                        // by node
  StepClocks clocks_;
  std::map<ValueId, Range> ends_;  // of results
  std::vector<bool> held_at_end_;  // by buffer
};

}  // namespace

PlanCheck check_plan(const Plan& plan) {
  return Checker(plan).run();
}

}  // namespace plimsoll::plan
