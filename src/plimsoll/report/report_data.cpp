#include "plimsoll/report/report_data.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "plimsoll/base/json.h"
#include "plimsoll/report/columns.h"
#include "plimsoll/report/layer_groups.h"
#include "plimsoll/report/palette.h"
#include "plimsoll/report/series.h"

namespace plimsoll::report {
namespace {

using json = nlohmann::ordered_json;

// The distinct phases of allocations, in order of appearance; past the palette they are "other".
struct PhaseGroups {
  std::vector<std::string> names;
  std::vector<std::uint8_t> of_text;
};

PhaseGroups group_phases(const Timeline& timeline) {
  PhaseGroups out;
  std::vector<int> group(timeline.texts.all().size(), -1);
  for (const Allocation& allocation : timeline.allocations) {
    int& mine = group[allocation.phase.index()];
    if (mine >= 0) continue;
    if (out.names.size() == kGroupColors.size() - 1) out.names.push_back("other");
    const bool room = out.names.size() < kGroupColors.size();
    mine = static_cast<int>(room ? out.names.size() : out.names.size() - 1);
    if (!room) continue;
    const std::string& phase = timeline.texts.text(allocation.phase);
    out.names.push_back(phase.empty() ? "(no phase)" : phase);
  }
  for (const int g : group) out.of_text.push_back(static_cast<std::uint8_t>(std::max(g, 0)));
  return out;
}

template <typename Row, typename Get>
json whole(const std::vector<Row>& rows, Get get, bool delta = false) {
  std::vector<std::int64_t> numbers;
  numbers.reserve(rows.size());
  for (const Row& row : rows) numbers.push_back(static_cast<std::int64_t>(get(row)));
  return column(std::span<const std::int64_t>(numbers), delta);
}

json allocations_json(const std::vector<Allocation>& allocations) {
  json out{{"count", allocations.size()}};
  out["begin"] = whole(
      allocations, [](const Allocation& b) { return b.life.begin.value; }, true);
  out["length"] =
      whole(allocations, [](const Allocation& b) { return b.life.end.value - b.life.begin.value; });
  out["bytes"] = whole(allocations, [](const Allocation& b) { return b.bytes.value; });
  out["place"] = whole(allocations, [](const Allocation& b) { return b.place.value; });
  out["name"] = whole(allocations, [](const Allocation& b) { return b.name.value; });
  out["layer"] = whole(allocations, [](const Allocation& b) { return b.layer.value; });
  out["phase"] = whole(allocations, [](const Allocation& b) { return b.phase.value; });
  out["type"] = whole(allocations, [](const Allocation& b) { return b.type.value; });
  out["origin"] = whole(allocations, [](const Allocation& b) { return b.origin.value; });
  out["kind"] = whole(allocations, [](const Allocation& b) { return b.kind; });
  out["memory"] = whole(allocations, [](const Allocation& b) { return b.memory; });
  out["stream"] = whole(allocations, [](const Allocation& b) { return b.stream; });
  out["producer"] = whole(allocations, [](const Allocation& b) { return b.producer; });
  out["last_reader"] = whole(allocations, [](const Allocation& b) { return b.last_reader; });
  return out;
}

json seconds_of(const std::vector<Operator>& operators) {
  std::vector<double> seconds;
  for (const Operator& op : operators) seconds.push_back(op.seconds);
  return column(std::span<const double>(seconds));
}

json operators_json(const std::vector<Operator>& operators) {
  json out{{"count", operators.size()}};
  out["time_step"] = whole(
      operators, [](const Operator& o) { return o.time_step.value; }, true);
  out["name"] = whole(operators, [](const Operator& o) { return o.name.value; });
  out["layer"] = whole(operators, [](const Operator& o) { return o.layer.value; });
  out["phase"] = whole(operators, [](const Operator& o) { return o.phase.value; });
  out["what"] = whole(operators, [](const Operator& o) { return o.what.value; });
  out["seconds"] = seconds_of(operators);
  out["touched"] = whole(operators, [](const Operator& o) { return o.touched.value; });
  out["alive"] = whole(operators, [](const Operator& o) { return o.alive.value; });
  out["stream"] = whole(operators, [](const Operator& o) { return o.stream; });
  return out;
}

// Nanoseconds between time steps, or a coarser unit where a gap is longer than 2 s.
json seconds_json(const std::vector<double>& seconds) {
  double longest = 0;
  for (std::size_t i = 1; i < seconds.size(); ++i)
    longest = std::max(longest, seconds[i] - seconds[i - 1]);
  double unit = 1e-9;
  while (longest / unit > 2e9) unit *= 10;
  std::vector<std::int64_t> gaps;
  double written = seconds.empty() ? 0 : seconds.front();
  for (const double moment : seconds) {
    const double gap = std::round((moment - written) / unit);
    gaps.push_back(static_cast<std::int64_t>(std::clamp(gap, 0.0, 2e9)));
    written += static_cast<double>(gaps.back()) * unit;
  }
  return {{"unit", unit}, {"gaps", column(std::span<const std::int64_t>(gaps))}};
}

json reserved_json(const std::vector<Reserved>& reserved) {
  json out{{"count", reserved.size()}};
  out["memory"] = whole(reserved, [](const Reserved& r) { return r.memory; });
  out["time_step"] = whole(
      reserved, [](const Reserved& r) { return r.time_step.value; }, true);
  out["bytes"] = whole(reserved, [](const Reserved& r) { return r.bytes.value; });
  return out;
}

json series_json(const Series& series) {
  json out{{"time_steps_per_bucket", series.time_steps_per_bucket},
           {"buckets", series.buckets},
           {"groups", json::array()}};
  for (const auto& group : series.bytes)
    out["groups"].push_back(whole(group, [](double bytes) { return bytes; }));
  return out;
}

json all_series_json(const Timeline& timeline, const LayerGroups& layers,
                     const PhaseGroups& phases) {
  json out = json::array();
  for (std::size_t memory = 0; memory < timeline.memories.size() && memory < 16; ++memory) {
    const int m = static_cast<int>(memory);
    json by;
    by["kind"] = series_json(make_series(timeline, m, kKindCount, [](const Allocation& b) {
      return static_cast<std::size_t>(b.kind);
    }));
    by["layer"] =
        series_json(make_series(timeline, m, layers.names.size(), [&](const Allocation& b) {
          return std::size_t{layers.of_text[b.layer.index()]};
        }));
    by["phase"] =
        series_json(make_series(timeline, m, phases.names.size(), [&](const Allocation& b) {
          return std::size_t{phases.of_text[b.phase.index()]};
        }));
    out.push_back(std::move(by));
  }
  return out;
}

json peak_set_json(const std::vector<AliveRow>& rows) {
  json out = json::array();
  for (std::size_t r = 0; r < rows.size() && r < kMostPeakRows; ++r) {
    json prices = json::array();
    for (const Price& price : rows[r].prices) {
      prices.push_back({{"remedy", price.remedy},
                        {"label", label_of(price)},
                        {"saves", price.saves.value},
                        {"seconds", price.seconds},
                        {"lossless", price.lossless},
                        {"detail", price.detail}});
    }
    out.push_back(
        {{"allocation", rows[r].allocation}, {"why", rows[r].why}, {"prices", std::move(prices)}});
  }
  return out;
}

json layers_json(const Timeline& timeline) {
  json out = json::array();
  for (const LayerRow& row : layer_tree(timeline)) {
    json kinds = json::array();
    for (const Bytes bytes : row.by_kind) kinds.push_back(bytes.value);
    out.push_back({{"path", row.path},
                   {"name", row.name},
                   {"depth", row.depth},
                   {"total", row.total.value},
                   {"at_peak", row.at_peak.value},
                   {"by_kind", std::move(kinds)}});
  }
  return out;
}

json kinds_json(const Timeline& timeline, Step peak) {
  const auto at_peak = bytes_by_kind_at(timeline, peak);
  json out = json::array();
  for (std::size_t k = 0; k < kKindCount; ++k) {
    out.push_back({{"name", name(static_cast<Kind>(k))},
                   {"color", kKindColors[k]},
                   {"at_peak", at_peak[k].value}});
  }
  return out;
}

json diagnosis_json(const Diagnosis& diagnosis) {
  json replayed = json::array();
  for (const AllocatorFigure& figure : diagnosis.replayed)
    replayed.push_back(
        {{"name", figure.name}, {"reserved", figure.reserved.value}, {"model", figure.model}});
  return {{"headline", diagnosis.headline},
          {"advice", diagnosis.advice},
          {"alive", diagnosis.alive.value},
          {"reserved", diagnosis.reserved.value},
          {"replayed", std::move(replayed)}};
}

json graph_json(const GraphView& graph) {
  json nodes{{"count", graph.nodes.size()}};
  nodes["op"] = whole(graph.nodes, [](const GraphNode& n) { return n.op.value; });
  nodes["layer"] = whole(graph.nodes, [](const GraphNode& n) { return n.layer.value; });
  nodes["type"] = whole(graph.nodes, [](const GraphNode& n) { return n.type.value; });
  nodes["phase"] = whole(graph.nodes, [](const GraphNode& n) { return n.phase; });
  json edges{{"count", graph.edges.size()}};
  edges["from"] = whole(graph.edges, [](const GraphEdge& e) { return e.from; });
  edges["to"] = whole(graph.edges, [](const GraphEdge& e) { return e.to; });
  edges["name"] = whole(graph.edges, [](const GraphEdge& e) { return e.name.value; });
  edges["type"] = whole(graph.edges, [](const GraphEdge& e) { return e.type.value; });
  edges["bytes"] = whole(graph.edges, [](const GraphEdge& e) { return e.bytes.value; });
  return {{"nodes", std::move(nodes)},
          {"edges", std::move(edges)},
          {"node_of_allocation",
           whole(graph.node_of_allocation, [](std::int32_t node) { return node; })}};
}

json chapter_json(const Chapter& chapter) {
  const Timeline& timeline = chapter.timeline;
  const LayerGroups layers = group_layers(timeline);
  const PhaseGroups phases = group_phases(timeline);
  const Peak peak = peak_of(timeline);
  json out{{"title", timeline.title},
           {"source", timeline.source},
           {"memories", timeline.memories},
           {"streams", timeline.streams},
           {"time_steps", timeline.time_steps()},
           {"events", timeline.events},
           {"file_layers", timeline.has_stacks}};
  out["diagnosis"] = diagnosis_json(chapter.diagnosis);
  out["peak"] = {{"time_step", peak.time_step.value}, {"bytes", peak.bytes.value}};
  out["arena_bytes"] = timeline.arena.value;
  out["lower_bound_bytes"] = timeline.lower_bound.value;
  out["budget_bytes"] = timeline.budget.value;
  out["capacity_bytes"] = timeline.capacity.value;
  out["predicted_seconds"] = timeline.predicted_seconds;
  out["notes"] = timeline.notes;
  out["kinds"] = kinds_json(timeline, peak.time_step);
  out["layer_groups"] = layers.names;
  out["phase_groups"] = phases.names;
  out["layer_group_of_text"] = whole(layers.of_text, [](std::uint8_t group) { return group; });
  out["phase_group_of_text"] = whole(phases.of_text, [](std::uint8_t group) { return group; });
  out["texts"] = timeline.texts.all();
  out["allocations"] = allocations_json(timeline.allocations);
  out["operators"] = operators_json(timeline.operators);
  out["seconds"] = seconds_json(timeline.seconds);
  out["reserved"] = reserved_json(timeline.reserved);
  if (timeline.time_steps() > kExactTimeSteps)
    out["series"] = all_series_json(timeline, layers, phases);
  out["peak_set"] = peak_set_json(chapter.peak_set);
  out["peak_set_count"] = chapter.peak_set.size();
  out["layers"] = layers_json(timeline);
  if (chapter.graph) out["graph"] = graph_json(*chapter.graph);
  return out;
}

json rows_json(const std::vector<ComparedBytes>& rows) {
  constexpr std::size_t kMostRows = 2000;
  json out = json::array();
  for (std::size_t r = 0; r < rows.size() && r < kMostRows; ++r) {
    out.push_back(
        {{"name", rows[r].name}, {"before", rows[r].before.value}, {"after", rows[r].after.value}});
  }
  return out;
}

json comparison_json(const Comparison& comparison) {
  json parts = json::array();
  for (const Part& part : comparison.parts)
    parts.push_back({{"name", part.name}, {"bytes", part.bytes.value}, {"detail", part.detail}});
  return {{"before", comparison.before},
          {"after", comparison.after},
          {"total_before", comparison.total_before.value},
          {"total_after", comparison.total_after.value},
          {"parts", std::move(parts)},
          {"by_kind", rows_json(comparison.by_kind)},
          {"by_layer", rows_json(comparison.by_layer)},
          {"by_tensor", rows_json(comparison.by_tensor)}};
}

json ranks_json(const std::vector<RankView>& ranks) {
  json out = json::array();
  for (const RankView& view : ranks) {
    out.push_back({{"rank", view.rank},
                   {"offset_seconds", view.offset_seconds},
                   {"collectives", view.collectives},
                   {"computing_seconds", view.computing_seconds},
                   {"communication_seconds", view.communication_seconds},
                   {"exposed_seconds", view.exposed_seconds}});
  }
  return out;
}

json curve_json(const Curve& curve) {
  json points = json::array();
  for (const CurvePoint& point : curve.points) {
    points.push_back({{"budget", point.budget.value},
                      {"peak", point.peak.value},
                      {"seconds", point.seconds},
                      {"overhead", point.overhead},
                      {"lower_bound_overhead", point.lower_bound_overhead},
                      {"recomputed", point.recomputed},
                      {"swapped", point.swapped.value},
                      {"encoded", point.encoded.value}});
  }
  return {{"title", curve.title},
          {"keep_all_seconds", curve.keep_all_seconds},
          {"points", std::move(points)}};
}

std::string without_markup(const std::string& text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

Chapter chapter_of(Timeline timeline, Diagnosis diagnosis) {
  std::vector<AliveRow> peak_set = alive_at(timeline, peak_of(timeline).time_step);
  return {std::move(timeline), std::move(peak_set), std::move(diagnosis), {}};
}

Chapter chapter_of(Timeline timeline, const plan::Plan& plan,
                   const schedule::DeviceProfile& profile) {
  std::vector<AliveRow> peak_set = alive_at(timeline, peak_of(timeline).time_step, plan, profile);
  Diagnosis diagnosis = diagnose(timeline);
  GraphView graph = graph_view_of(plan, timeline);
  return {std::move(timeline), std::move(peak_set), std::move(diagnosis), std::move(graph)};
}

std::string to_json(const Report& report) {
  json out{{"schema", kReportSchema},
           {"title", report.title},
           {"group_colors", kGroupColors},
           {"timelines", json::array()}};
  for (const Chapter& chapter : report.chapters) out["timelines"].push_back(chapter_json(chapter));
  if (!report.ranks.empty()) out["ranks"] = ranks_json(report.ranks);
  if (report.curve) out["curve"] = curve_json(*report.curve);
  if (report.comparison) out["comparison"] = comparison_json(*report.comparison);
  return without_markup(json_text(out));
}

}  // namespace plimsoll::report
