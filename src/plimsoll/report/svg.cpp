#include "plimsoll/report/svg.h"

#include <cmath>

#include <fmt/format.h>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/report/markup.h"

namespace plimsoll::report {

Svg::Svg(int width, int height)
    : text_(fmt::format(
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 "
          "{0} {1}\" "
          "font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\" font-size=\"12\">\n"
          "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
          width, height)) {}

void Svg::label(double x, double y, std::string_view what, std::string_view style) {
  text_ +=
      fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, style, escaped(what));
}

void Svg::rectangle(const Frame& frame, std::string_view color, std::string_view style) {
  text_ += fmt::format(
      "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\" {}/>\n",
      frame.left, frame.top, frame.width, frame.height, color, style);
}

void Svg::line(double x0, double y0, double x1, double y1, std::string_view style) {
  text_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x0,
                       y0, x1, y1, style);
}

void Svg::circle(double x, double y, double radius, std::string_view color) {
  text_ += fmt::format(
      "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\" stroke=\"#1b2733\" "
      "stroke-width=\"1.6\"/>\n",
      x, y, radius, color);
}

void Svg::bytes_axis(const Frame& frame, double top) {
  const double unit = std::exp2(std::floor(std::log2(top / 3)));
  for (double at = 0; at <= top; at += unit) {
    const double y = frame.top + frame.height * (1 - at / top);
    line(frame.left, y, frame.left + frame.width, y, "stroke=\"#e2e7ec\"");
    label(frame.left - 8, y + 4, human(Bytes(static_cast<std::int64_t>(at))),
          "text-anchor=\"end\" fill=\"#6b7a89\"");
  }
}

}  // namespace plimsoll::report
