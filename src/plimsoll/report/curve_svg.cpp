#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/report/picture.h"
#include "plimsoll/report/svg.h"

namespace plimsoll::report {
namespace {

// 1, 2 or 5 times a power of ten, so that about four of them make `span`.
double round_unit(double span) {
  const double power = std::pow(10.0, std::floor(std::log10(span / 4)));
  for (const double times : {1.0, 2.0, 5.0}) {
    if (span / (power * times) <= 6) return power * times;
  }
  return power * 10;
}

class CurveDrawing {
 public:
  CurveDrawing(const Curve& curve, const PictureOptions& options)
      : curve_(curve),
        svg_(options.width, options.height),
        frame_{84, 72, options.width - 84.0 - 36, options.height - 72.0 - 60} {
    low_ = static_cast<double>(curve.points.front().peak.value);
    high_ = static_cast<double>(curve.points.back().peak.value);
    const double margin = std::max((high_ - low_) * 0.06, 1.0);
    low_ -= margin;
    high_ += margin;
    for (const CurvePoint& point : curve.points) slowest_ = std::max(slowest_, point.overhead);
    slowest_ *= 1.12;
  }

  std::string draw() {
    const CurvePoint& smallest = curve_.points.front();
    const CurvePoint& largest = curve_.points.back();
    svg_.label(frame_.left, 26, curve_.title,
               "font-size=\"17\" font-weight=\"bold\" fill=\"#1b2733\"");
    svg_.label(frame_.left, 50,
               fmt::format("{} at full speed; {} ({:.0f} % of it) at {:.2f} % more time",
                           human(largest.peak), human(smallest.peak),
                           100.0 * static_cast<double>(smallest.peak.value) /
                               std::max(1.0, static_cast<double>(largest.peak.value)),
                           100 * smallest.overhead),
               "fill=\"#475666\"");
    axes();
    bound();
    stairs();
    for (const CurvePoint& point : curve_.points)
      svg_.circle(x(point), y(point.overhead), 4, "#4477aa");
    return svg_.text();
  }

 private:
  double x(const CurvePoint& point) const {
    return frame_.left +
           frame_.width * (static_cast<double>(point.peak.value) - low_) / (high_ - low_);
  }
  double y(double overhead) const { return frame_.top + frame_.height * (1 - overhead / slowest_); }

  void axes() {
    const double unit = round_unit(slowest_);
    for (double at = 0; at <= slowest_; at += unit) {
      svg_.line(frame_.left, y(at), frame_.left + frame_.width, y(at), "stroke=\"#e2e7ec\"");
      svg_.label(frame_.left - 8, y(at) + 4, fmt::format("+{:.3g} %", 100 * at),
                 "text-anchor=\"end\" fill=\"#6b7a89\"");
    }
    for (int i = 0; i <= 4; ++i) {
      const double bytes = low_ + (high_ - low_) * i / 4;
      const double at = frame_.left + frame_.width * i / 4;
      const char* anchor = i == 0 ? "start" : i == 4 ? "end" : "middle";
      svg_.label(at, frame_.top + frame_.height + 20,
                 human(Bytes(static_cast<std::int64_t>(std::max(bytes, 0.0)))),
                 fmt::format("text-anchor=\"{}\" fill=\"#6b7a89\"", anchor));
    }
    svg_.label(frame_.left + frame_.width / 2, frame_.top + frame_.height + 42, "peak memory",
               "text-anchor=\"middle\" fill=\"#475666\"");
    svg_.label(frame_.left - 8, frame_.top - 6, "more time",
               "text-anchor=\"end\" fill=\"#475666\"");
  }

  // Below the dashed line no plan can be: what is proven for a point holds for every smaller
  // budget.
  void bound() {
    std::string points;
    for (std::size_t i = 0; i < curve_.points.size(); ++i) {
      const double at = y(std::min(curve_.points[i].lower_bound_overhead, slowest_));
      if (i > 0) points += fmt::format("{:.1f},{:.1f} ", x(curve_.points[i - 1]), at);
      points += fmt::format("{:.1f},{:.1f} ", x(curve_.points[i]), at);
    }
    const bool any = std::any_of(curve_.points.begin(), curve_.points.end(),
                                 [](const CurvePoint& p) { return p.lower_bound_overhead > 0; });
    if (any)
      svg_.add(
          fmt::format("<polyline fill=\"none\" stroke=\"#228833\" stroke-width=\"1.5\" "
                      "stroke-dasharray=\"5 4\" points=\"{}\"/>\n",
                      points));
    if (any)
      svg_.label(frame_.left + frame_.width, frame_.top - 6, "dashed: proven lower bound",
                 "text-anchor=\"end\" fill=\"#228833\"");
  }

  void stairs() {
    std::string points;
    for (std::size_t i = 0; i < curve_.points.size(); ++i) {
      const CurvePoint& point = curve_.points[i];
      if (i > 0)
        points += fmt::format("{:.1f},{:.1f} ", x(point), y(curve_.points[i - 1].overhead));
      points += fmt::format("{:.1f},{:.1f} ", x(point), y(point.overhead));
    }
    svg_.add(fmt::format(
        "<polyline fill=\"none\" stroke=\"#4477aa\" stroke-width=\"2\" points=\"{}\"/>\n", points));
  }

  const Curve& curve_;
  Svg svg_;
  Frame frame_;
  double low_ = 0;
  double high_ = 0;
  double slowest_ = 1e-4;
};

}  // namespace

std::string to_svg(const Curve& curve, const PictureOptions& options) {
  return CurveDrawing(curve, options).draw();
}

}  // namespace plimsoll::report
