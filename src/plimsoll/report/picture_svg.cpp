#include <algorithm>

#include <fmt/format.h>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/report/palette.h"
#include "plimsoll/report/picture.h"
#include "plimsoll/report/series.h"
#include "plimsoll/report/svg.h"

namespace plimsoll::report {
namespace {

constexpr double kLeft = 84;
constexpr double kRight = 20;
constexpr double kTop = 72;
constexpr double kBottom = 40;

class Drawing {
 public:
  Drawing(const Timeline& timeline, const PictureOptions& options)
      : timeline_(timeline),
        options_(options),
        peak_(peak_of(timeline)),
        svg_(options.width, options.height) {}

  std::string draw() {
    const double inner = options_.height - kTop - kBottom;
    const double above = options_.address_map ? inner * 0.6 : inner;
    const Frame stack{kLeft, kTop, options_.width - kLeft - kRight, above};
    heading();
    draw_stack(stack);
    if (options_.address_map) draw_map({kLeft, kTop + above + 28, stack.width, inner - above - 28});
    time_axis(options_.height - kBottom);
    return svg_.text();
  }

 private:
  void heading() {
    svg_.label(kLeft, 26, timeline_.title,
               "font-size=\"17\" font-weight=\"bold\" fill=\"#1b2733\"");
    std::string line =
        fmt::format("peak {} at {} {}", human(peak_.bytes),
                    timeline_.source == "plan" ? "step" : "event", peak_.time_step.value);
    if (timeline_.arena.value > 0) line += fmt::format("   arena {}", human(timeline_.arena));
    if (timeline_.budget.value > 0) line += fmt::format("   budget {}", human(timeline_.budget));
    svg_.label(options_.width - kRight, 26, line, "text-anchor=\"end\" fill=\"#475666\"");
    double x = kLeft;
    const auto kinds = bytes_by_kind_at(timeline_, peak_.time_step);
    for (std::size_t k = 0; k < kKindCount; ++k) {
      if (kinds[k].value == 0) continue;
      svg_.rectangle({x, 44, 11, 11}, kKindColors[k]);
      const std::string entry = fmt::format("{} {}", name(static_cast<Kind>(k)), human(kinds[k]));
      svg_.label(x + 16, 54, entry, "fill=\"#475666\"");
      x += 34 + 6.9 * static_cast<double>(entry.size());
    }
  }

  void draw_stack(const Frame& frame) {
    const auto buckets = static_cast<std::int64_t>(frame.width);
    const Series series = make_series(
        timeline_, 0, kKindCount,
        [](const Allocation& b) { return static_cast<std::size_t>(b.kind); }, buckets);
    const double top = std::max({1.0, static_cast<double>(peak_.bytes.value),
                                 static_cast<double>(timeline_.budget.value),
                                 static_cast<double>(timeline_.capacity.value)}) *
                       1.06;
    svg_.bytes_axis(frame, top);
    std::vector<double> ground(static_cast<std::size_t>(series.buckets));
    const auto x_of = [&](std::int64_t bucket) {
      return frame.left + frame.width *
                              static_cast<double>(
                                  std::min(bucket * series.time_steps_per_bucket, time_steps())) /
                              static_cast<double>(time_steps());
    };
    const auto y_of = [&](double bytes) { return frame.top + frame.height * (1 - bytes / top); };
    for (std::size_t k = 0; k < kKindCount; ++k) {
      // The upper edge to the right, then the lower one back.
      std::string lower;
      for (std::int64_t b = series.buckets - 1; b >= 0; --b) {
        const double low = y_of(ground[static_cast<std::size_t>(b)]);
        lower += fmt::format("{:.1f},{:.1f} {:.1f},{:.1f} ", x_of(b + 1), low, x_of(b), low);
      }
      std::string upper;
      for (std::int64_t b = 0; b < series.buckets; ++b) {
        const auto i = static_cast<std::size_t>(b);
        ground[i] += series.bytes[k][i];
        const double high = y_of(ground[i]);
        upper += fmt::format("{:.1f},{:.1f} {:.1f},{:.1f} ", x_of(b), high, x_of(b + 1), high);
      }
      const bool any = std::any_of(series.bytes[k].begin(), series.bytes[k].end(),
                                   [](double bytes) { return bytes > 0; });
      if (any)
        svg_.add(
            fmt::format("<polygon fill=\"{}\" points=\"{}{}\"/>\n", kKindColors[k], upper, lower));
    }
    if (timeline_.budget.value > 0)
      level(frame, y_of(static_cast<double>(timeline_.budget.value)), "budget", "#b3261e");
    if (timeline_.capacity.value > 0)
      level(frame, y_of(static_cast<double>(timeline_.capacity.value)), "capacity", "#b3261e");
    const double x = frame.left + frame.width * (peak_.time_step.value + 0.5) /
                                      static_cast<double>(time_steps());
    const double y = y_of(static_cast<double>(peak_.bytes.value));
    svg_.circle(x, y, 4, "#ffffff");
  }

  void level(const Frame& frame, double y, std::string_view what, const char* color) {
    svg_.line(frame.left, y, frame.left + frame.width, y,
              fmt::format("stroke=\"{}\" stroke-width=\"1.5\" stroke-dasharray=\"6 4\"", color));
    svg_.label(frame.left + frame.width - 4, y - 5, what,
               fmt::format("text-anchor=\"end\" fill=\"{}\"", color));
  }

  void draw_map(const Frame& frame) {
    constexpr std::size_t kMostRectangles = 6000;
    double height = 1;
    std::vector<const Allocation*> shown;
    for (const Allocation& allocation : timeline_.allocations) {
      if (allocation.memory != 0) continue;
      height = std::max(height, static_cast<double>((allocation.place + allocation.bytes).value));
      shown.push_back(&allocation);
    }
    const auto area = [](const Allocation* b) {
      return static_cast<double>(b->bytes.value) * (b->life.end.value - b->life.begin.value);
    };
    std::stable_sort(shown.begin(), shown.end(),
                     [&](const Allocation* a, const Allocation* b) { return area(a) > area(b); });
    if (shown.size() > kMostRectangles) shown.resize(kMostRectangles);
    svg_.rectangle(frame, "#f1f4f7");
    svg_.label(frame.left - 8, frame.top + 10, "address", "text-anchor=\"end\" fill=\"#6b7a89\"");
    for (const Allocation* allocation : shown) {
      const double x = frame.left + frame.width * allocation->life.begin.value /
                                        static_cast<double>(time_steps());
      const double w = frame.width * (allocation->life.end.value - allocation->life.begin.value) /
                       static_cast<double>(time_steps());
      const double h = frame.height * static_cast<double>(allocation->bytes.value) / height;
      const double y =
          frame.top +
          frame.height *
              (1 - static_cast<double>((allocation->place + allocation->bytes).value) / height);
      if (h < 0.15) continue;
      svg_.rectangle({x, y, std::max(w, 0.4), h},
                     kKindColors[static_cast<std::size_t>(allocation->kind)],
                     h > 3 && w > 3 ? "stroke=\"#ffffff\" stroke-width=\"0.5\"" : "");
    }
  }

  void time_axis(double y) {
    const double width = options_.width - kLeft - kRight;
    for (int i = 0; i <= 4; ++i) {
      const auto time_step = static_cast<std::int64_t>(static_cast<double>(time_steps()) * i / 4);
      const char* anchor = i == 0 ? "start" : i == 4 ? "end" : "middle";
      svg_.label(kLeft + width * i / 4, y + 18, grouped(time_step),
                 fmt::format("text-anchor=\"{}\" fill=\"#6b7a89\"", anchor));
    }
    svg_.label(kLeft + width / 2, y + 34, timeline_.source == "plan" ? "step" : "event",
               "text-anchor=\"middle\" fill=\"#6b7a89\"");
  }

  std::int64_t time_steps() const { return std::max<std::int64_t>(timeline_.time_steps(), 1); }

  const Timeline& timeline_;
  const PictureOptions& options_;
  Peak peak_;
  Svg svg_;
};

}  // namespace

std::string to_svg(const Timeline& timeline, const PictureOptions& options) {
  return Drawing(timeline, options).draw();
}

}  // namespace plimsoll::report
