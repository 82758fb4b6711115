#include "plimsoll/report/rank_views.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "plimsoll/ops/collective/collective.h"

namespace plimsoll::report {
namespace {

struct NameParts {
  std::string_view stem;
  std::string_view number;
  std::string_view end;
};

// "out/run.3.jsonl" is "out/run", "3", ".jsonl"; "run.3" has no end.
std::optional<NameParts> parts_of_name(std::string_view path) {
  const auto digits = [](std::string_view text) {
    return !text.empty() && text.size() <= 6 &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  const std::size_t last = path.rfind('.');
  if (last == std::string_view::npos) return std::nullopt;
  if (digits(path.substr(last + 1)))
    return NameParts{path.substr(0, last), path.substr(last + 1), ""};
  const std::size_t before = last == 0 ? last : path.rfind('.', last - 1);
  if (before == std::string_view::npos || before == last) return std::nullopt;
  const std::string_view number = path.substr(before + 1, last - before - 1);
  if (!digits(number)) return std::nullopt;
  return NameParts{path.substr(0, before), number, path.substr(last)};
}

Interval<double> span_of(const Timeline& timeline, const Operator& op) {
  const double begin = timeline.seconds[static_cast<std::size_t>(op.time_step.value)];
  return {begin, begin + op.seconds};
}

bool is_collective(const Timeline& timeline, const Operator& op) {
  const std::string& name = timeline.texts.text(op.name);
  return ops::is_collective(std::string_view(name).substr(name.rfind('/') + 1));
}

// Stretches without the overlaps between them, in order.
std::vector<Interval<double>> joined(std::vector<Interval<double>> spans) {
  std::sort(spans.begin(), spans.end());
  std::vector<Interval<double>> out;
  for (const Interval<double>& span : spans) {
    if (!out.empty() && span.begin <= out.back().end) {
      out.back().end = std::max(out.back().end, span.end);
    } else {
      out.push_back(span);
    }
  }
  return out;
}

double length(const std::vector<Interval<double>>& spans) {
  double out = 0;
  for (const Interval<double>& span : spans) out += span.end - span.begin;
  return out;
}

}  // namespace

std::optional<int> rank_of_name(std::string_view path) {
  const auto parts = parts_of_name(path);
  if (!parts) return std::nullopt;
  int rank = 0;
  std::from_chars(parts->number.data(), parts->number.data() + parts->number.size(), rank);
  return rank;
}

std::vector<int> ranks_of_names(const std::vector<std::string>& paths) {
  std::vector<int> out;
  std::set<int> known;
  if (paths.size() < 2) return out;
  const auto first = parts_of_name(paths[0]);
  for (const std::string& path : paths) {
    const auto parts = parts_of_name(path);
    const auto rank = rank_of_name(path);
    if (!first || !parts || parts->stem != first->stem || parts->end != first->end ||
        !known.insert(*rank).second)
      return {};
    out.push_back(*rank);
  }
  return out;
}

bool has_collectives(const Timeline& timeline) {
  return std::any_of(timeline.operators.begin(), timeline.operators.end(),
                     [&](const Operator& op) { return is_collective(timeline, op); });
}

std::vector<RankView> rank_views(const std::vector<const Timeline*>& timelines,
                                 const std::vector<int>& ranks) {
  std::vector<RankView> out;
  std::vector<double> first_end;
  for (std::size_t t = 0; t < timelines.size(); ++t) {
    const Timeline& timeline = *timelines[t];
    RankView view;
    view.rank = ranks[t];
    std::vector<Interval<double>> computing, all;
    double end = 0;
    for (std::size_t o = 0; o < timeline.operators.size(); ++o) {
      const Interval<double> span = span_of(timeline, timeline.operators[o]);
      all.push_back(span);
      if (!is_collective(timeline, timeline.operators[o])) {
        computing.push_back(span);
        continue;
      }
      if (view.collectives.empty()) end = span.end;
      view.collectives.push_back(static_cast<std::int64_t>(o));
      view.communication_seconds += span.end - span.begin;
    }
    view.computing_seconds = length(joined(std::move(computing)));
    view.exposed_seconds = std::max(0.0, length(joined(std::move(all))) - view.computing_seconds);
    first_end.push_back(end);
    out.push_back(std::move(view));
  }
  const double last = *std::max_element(first_end.begin(), first_end.end());
  for (std::size_t t = 0; t < out.size(); ++t) out[t].offset_seconds = last - first_end[t];
  return out;
}

}  // namespace plimsoll::report
