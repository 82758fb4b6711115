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

// The distinct phases of bands, in order of appearance; past the palette they are "other".
struct PhaseGroups {
  std::vector<std::string> names;
  std::vector<std::uint8_t> of_text;
};

PhaseGroups group_phases(const Account& account) {
  PhaseGroups out;
  std::vector<int> group(account.texts.all().size(), -1);
  for (const Band& band : account.bands) {
    int& mine = group[band.phase.index()];
    if (mine >= 0) continue;
    if (out.names.size() == kGroupColors.size() - 1) out.names.push_back("other");
    const bool room = out.names.size() < kGroupColors.size();
    mine = static_cast<int>(room ? out.names.size() : out.names.size() - 1);
    if (!room) continue;
    const std::string& phase = account.texts.text(band.phase);
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

json bands_json(const std::vector<Band>& bands) {
  json out{{"count", bands.size()}};
  out["begin"] = whole(
      bands, [](const Band& b) { return b.life.begin.value; }, true);
  out["length"] = whole(bands, [](const Band& b) { return b.life.end.value - b.life.begin.value; });
  out["bytes"] = whole(bands, [](const Band& b) { return b.bytes.value; });
  out["place"] = whole(bands, [](const Band& b) { return b.place.value; });
  out["name"] = whole(bands, [](const Band& b) { return b.name.value; });
  out["layer"] = whole(bands, [](const Band& b) { return b.layer.value; });
  out["phase"] = whole(bands, [](const Band& b) { return b.phase.value; });
  out["type"] = whole(bands, [](const Band& b) { return b.type.value; });
  out["origin"] = whole(bands, [](const Band& b) { return b.origin.value; });
  out["kind"] = whole(bands, [](const Band& b) { return b.kind; });
  out["memory"] = whole(bands, [](const Band& b) { return b.memory; });
  out["stream"] = whole(bands, [](const Band& b) { return b.stream; });
  out["producer"] = whole(bands, [](const Band& b) { return b.producer; });
  out["last_reader"] = whole(bands, [](const Band& b) { return b.last_reader; });
  return out;
}

json seconds_of(const std::vector<Operator>& operators) {
  std::vector<double> seconds;
  for (const Operator& op : operators) seconds.push_back(op.seconds);
  return column(std::span<const double>(seconds));
}

json operators_json(const std::vector<Operator>& operators) {
  json out{{"count", operators.size()}};
  out["tick"] = whole(
      operators, [](const Operator& o) { return o.tick.value; }, true);
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

// Nanoseconds between ticks, or a coarser unit where a gap is longer than 2 s.
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
  out["tick"] = whole(
      reserved, [](const Reserved& r) { return r.tick.value; }, true);
  out["bytes"] = whole(reserved, [](const Reserved& r) { return r.bytes.value; });
  return out;
}

json series_json(const Series& series) {
  json out{{"ticks_per_bucket", series.ticks_per_bucket},
           {"buckets", series.buckets},
           {"groups", json::array()}};
  for (const auto& group : series.bytes)
    out["groups"].push_back(whole(group, [](double bytes) { return bytes; }));
  return out;
}

json all_series_json(const Account& account, const LayerGroups& layers, const PhaseGroups& phases) {
  json out = json::array();
  for (std::size_t memory = 0; memory < account.memories.size() && memory < 16; ++memory) {
    const int m = static_cast<int>(memory);
    json by;
    by["kind"] = series_json(make_series(
        account, m, kKindCount, [](const Band& b) { return static_cast<std::size_t>(b.kind); }));
    by["layer"] = series_json(make_series(account, m, layers.names.size(), [&](const Band& b) {
      return std::size_t{layers.of_text[b.layer.index()]};
    }));
    by["phase"] = series_json(make_series(account, m, phases.names.size(), [&](const Band& b) {
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
                        {"saves", price.saves.value},
                        {"seconds", price.seconds},
                        {"detail", price.detail}});
    }
    out.push_back({{"band", rows[r].band}, {"why", rows[r].why}, {"prices", std::move(prices)}});
  }
  return out;
}

json layers_json(const Account& account) {
  json out = json::array();
  for (const LayerRow& row : layer_tree(account)) {
    json kinds = json::array();
    for (const Bytes bytes : row.by_kind) kinds.push_back(bytes.value);
    out.push_back({{"path", row.path},
                   {"depth", row.depth},
                   {"total", row.total.value},
                   {"at_peak", row.at_peak.value},
                   {"by_kind", std::move(kinds)}});
  }
  return out;
}

json kinds_json(const Account& account, Step peak) {
  const auto at_peak = bytes_by_kind_at(account, peak);
  json out = json::array();
  for (std::size_t k = 0; k < kKindCount; ++k) {
    out.push_back({{"name", name(static_cast<Kind>(k))},
                   {"color", kKindColors[k]},
                   {"at_peak", at_peak[k].value}});
  }
  return out;
}

json chapter_json(const Chapter& chapter) {
  const Account& account = chapter.account;
  const LayerGroups layers = group_layers(account);
  const PhaseGroups phases = group_phases(account);
  const Peak peak = peak_of(account);
  json out{{"title", account.title},
           {"source", account.source},
           {"memories", account.memories},
           {"streams", account.streams},
           {"ticks", account.ticks()}};
  out["peak"] = {{"tick", peak.tick.value}, {"bytes", peak.bytes.value}};
  out["arena_bytes"] = account.arena.value;
  out["lower_bound_bytes"] = account.lower_bound.value;
  out["budget_bytes"] = account.budget.value;
  out["capacity_bytes"] = account.capacity.value;
  out["notes"] = account.notes;
  out["kinds"] = kinds_json(account, peak.tick);
  out["layer_groups"] = layers.names;
  out["phase_groups"] = phases.names;
  out["layer_group_of_text"] = whole(layers.of_text, [](std::uint8_t group) { return group; });
  out["phase_group_of_text"] = whole(phases.of_text, [](std::uint8_t group) { return group; });
  out["texts"] = account.texts.all();
  out["bands"] = bands_json(account.bands);
  out["operators"] = operators_json(account.operators);
  out["seconds"] = seconds_json(account.seconds);
  out["reserved"] = reserved_json(account.reserved);
  if (account.ticks() > kExactTicks) out["series"] = all_series_json(account, layers, phases);
  out["peak_set"] = peak_set_json(chapter.peak_set);
  out["peak_set_count"] = chapter.peak_set.size();
  out["layers"] = layers_json(account);
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

Chapter chapter_of(Account account) {
  std::vector<AliveRow> peak_set = alive_at(account, peak_of(account).tick);
  return {std::move(account), std::move(peak_set)};
}

Chapter chapter_of(Account account, const plan::Plan& plan,
                   const schedule::DeviceProfile& profile) {
  std::vector<AliveRow> peak_set = alive_at(account, peak_of(account).tick, plan, profile);
  return {std::move(account), std::move(peak_set)};
}

std::string to_json(const Report& report) {
  json out{{"schema", kReportSchema},
           {"title", report.title},
           {"group_colors", kGroupColors},
           {"accounts", json::array()}};
  for (const Chapter& chapter : report.chapters) out["accounts"].push_back(chapter_json(chapter));
  if (report.curve) out["curve"] = curve_json(*report.curve);
  if (report.comparison) out["comparison"] = comparison_json(*report.comparison);
  return without_markup(json_text(out));
}

}  // namespace plimsoll::report
