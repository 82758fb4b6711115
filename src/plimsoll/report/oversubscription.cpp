#include "plimsoll/report/oversubscription.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/report/markup.h"
#include "plimsoll/report/svg.h"

namespace plimsoll::report {
namespace {

// Far apart on white; of the colours of palette.h.
constexpr std::array<const char*, 7> kPolicyColors = {"#ee6677", "#44aa99", "#6655aa", "#ee8866",
                                                      "#4477aa", "#cc6699", "#99ddff"};

std::string heading_of(const Oversubscription& curves) {
  return fmt::format(
      "{} on {}: {} in the default plan ({} a step; {} without a plan); copies {:.1f} GB/s out, "
      "{:.1f} in, {:.1f} both",
      curves.title, curves.device, human(curves.arena), human_seconds(curves.plan_seconds),
      human_seconds(curves.free_seconds), 1e-9 * curves.out_rate, 1e-9 * curves.in_rate,
      1e-9 * curves.both_rate);
}

class OversubscriptionDrawing {
 public:
  OversubscriptionDrawing(const Oversubscription& curves, int width, int height)
      : curves_(curves),
        svg_(width, height),
        frame_{64, 64, width - 64.0 - 190, height - 64.0 - 56} {
    for (const OversubscriptionPoint& point : curves.points) {
      most_ = std::max(most_, point.factor);
      if (point.refused.empty()) slowest_ = std::max(slowest_, 1.08 * point.slowdown);
    }
  }

  std::string draw() {
    svg_.label(frame_.left, 26, curves_.title,
               "font-size=\"17\" font-weight=\"bold\" fill=\"#1b2733\"");
    svg_.label(frame_.left, 48,
               fmt::format("slowdown of a step against memory, {}; factor 1 is {}", curves_.device,
                           human(curves_.arena)),
               "fill=\"#475666\"");
    axes();
    const std::vector<std::string> policies = curves_.policies();
    for (std::size_t p = 0; p < policies.size(); ++p) draw_policy(policies[p], p);
    svg_.label(frame_.left + frame_.width + 16,
               frame_.top + 22 + 20.0 * static_cast<double>(policies.size()), "dashed: bound",
               "fill=\"#6b7a89\"");
    return svg_.text();
  }

 private:
  double x(double factor) const {
    return frame_.left + frame_.width * (factor - 1) / std::max(most_ - 1, 1e-9);
  }
  double y(double slowdown) const {
    const double share = std::log(std::max(slowdown, 0.9) / 0.9) / std::log(slowest_ / 0.9);
    return frame_.top + frame_.height * (1 - share);
  }

  void axes() {
    for (const double at : {1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 40.0, 80.0}) {
      if (at > slowest_) break;
      svg_.line(frame_.left, y(at), frame_.left + frame_.width, y(at), "stroke=\"#e2e7ec\"");
      svg_.label(frame_.left - 8, y(at) + 4, fmt::format("{:.3g}x", at),
                 "text-anchor=\"end\" fill=\"#6b7a89\"");
    }
    std::vector<double> factors;
    for (const OversubscriptionPoint& point : curves_.points) factors.push_back(point.factor);
    std::sort(factors.begin(), factors.end());
    factors.erase(std::unique(factors.begin(), factors.end()), factors.end());
    double last = -100;
    for (const double factor : factors) {
      svg_.line(x(factor), frame_.top, x(factor), frame_.top + frame_.height, "stroke=\"#f0f3f6\"");
      if (x(factor) - last < 28) continue;
      last = x(factor);
      svg_.label(last, frame_.top + frame_.height + 20, fmt::format("{:.3g}", factor),
                 "text-anchor=\"middle\" fill=\"#6b7a89\"");
    }
    svg_.label(frame_.left + frame_.width / 2, frame_.top + frame_.height + 42,
               "factor: arena of the default plan / capacity",
               "text-anchor=\"middle\" fill=\"#475666\"");
  }

  void draw_policy(const std::string& policy, std::size_t number) {
    const char* const color = kPolicyColors[number % kPolicyColors.size()];
    std::string line;
    std::string bound;
    bool model = false;
    for (const OversubscriptionPoint& point : curves_.points) {
      if (point.policy != policy || !point.refused.empty()) continue;
      line += fmt::format("{:.1f},{:.1f} ", x(point.factor), y(point.slowdown));
      bound += fmt::format("{:.1f},{:.1f} ", x(point.factor), y(point.bound));
      svg_.circle(x(point.factor), y(point.slowdown), 3.5, color);
      model |= point.model;
    }
    const auto polyline = [&](const std::string& points, std::string_view style) {
      svg_.add(fmt::format("<polyline fill=\"none\" stroke=\"{}\" {} points=\"{}\"/>\n", color,
                           style, points));
    };
    polyline(line, model ? "stroke-width=\"2\" stroke-dasharray=\"1 4\"" : "stroke-width=\"2\"");
    if (!model)
      polyline(bound, "stroke-width=\"1\" stroke-dasharray=\"5 4\" stroke-opacity=\"0.6\"");
    const double at = frame_.top + 12 + 20.0 * static_cast<double>(number);
    svg_.rectangle({frame_.left + frame_.width + 16, at - 9, 14, 10}, color);
    svg_.label(frame_.left + frame_.width + 36, at, model ? policy + " (a model)" : policy,
               "fill=\"#1b2733\"");
  }

  const Oversubscription& curves_;
  Svg svg_;
  Frame frame_;
  double most_ = 1;
  double slowest_ = 1.3;
};

}  // namespace

std::vector<std::string> Oversubscription::policies() const {
  std::vector<std::string> out;
  for (const OversubscriptionPoint& point : points) {
    if (std::find(out.begin(), out.end(), point.policy) == out.end()) out.push_back(point.policy);
  }
  return out;
}

std::string to_text(const Oversubscription& curves) {
  std::string out = heading_of(curves) + "\n";
  out += fmt::format("{:<15}{:>7}{:>12}{:>11}{:>10}{:>8}{:>12}{:>12}{:>8}{:>8}{:>7}\n", "policy",
                     "factor", "capacity", "step", "slowdown", "bound", "in", "out", "faults",
                     "stalls", "dead");
  for (const OversubscriptionPoint& point : curves.points) {
    out +=
        fmt::format("{:<15}{:>7.4g}{:>12}", point.model ? point.policy + " (model)" : point.policy,
                    point.factor, human(point.capacity));
    if (!point.refused.empty()) {
      out += fmt::format("  {}\n", point.refused);
      continue;
    }
    out += fmt::format("{:>11}{:>9.2f}x{:>7.2f}x{:>12}{:>12}{:>8}{:>8}{:>7}\n",
                       human_seconds(point.seconds), point.slowdown, point.bound, human(point.in),
                       human(point.out), point.faults, point.stalls, point.dead_evictions);
  }
  return out;
}

std::string to_svg(const Oversubscription& curves, int width, int height) {
  return OversubscriptionDrawing(curves, width, height).draw();
}

std::string to_html(const Oversubscription& curves) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{} "
      "oversubscribed</title>\n<style>body{{font:15px/1.45 system-ui,sans-serif;margin:2em "
      "auto;max-width:70em;padding:0 1em;color:#1b2733;background:#fff}}table{{border-collapse:"
      "collapse}}td,th{{padding:.25em .8em;text-align:right;border-bottom:1px solid "
      "#e2e7ec}}td:first-child,th:first-child{{text-align:left}}svg{{max-width:100%;height:auto}}"
      "</style></head><body>\n<p>{}</p>\n",
      escaped(curves.title), escaped(heading_of(curves)));
  out += to_svg(curves);
  out +=
      "<table><thead><tr><th>policy</th><th>factor</th><th>capacity</th><th>step</th>"
      "<th>slowdown</th><th>bound</th><th>in</th><th>out</th><th>faults</th><th>stalls</th>"
      "<th>dead written back</th></tr></thead><tbody>\n";
  for (const OversubscriptionPoint& point : curves.points) {
    out += fmt::format("<tr><td>{}</td><td>{:.4g}</td><td>{}</td>",
                       escaped(point.model ? point.policy + " (a model)" : point.policy),
                       point.factor, human(point.capacity));
    if (!point.refused.empty()) {
      out += fmt::format("<td colspan=\"8\">{}</td></tr>\n", escaped(point.refused));
      continue;
    }
    out += fmt::format(
        "<td>{}</td><td>{:.2f}x</td><td>{:.2f}x</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
        "<td>{}</td></tr>\n",
        human_seconds(point.seconds), point.slowdown, point.bound, human(point.in),
        human(point.out), point.faults, point.stalls, point.dead_evictions);
  }
  out +=
      "</tbody></table>\n<p>Slowdown: against the same program with all the memory it wants. "
      "Bound: "
      "the larger of its computing and of what the bus needs for these bytes, as slowdown. Lines "
      "with dots are a model of managed memory; everything else was run.</p>\n</body></html>\n";
  return out;
}

}  // namespace plimsoll::report
