// A picture as SVG text, element by element: what the timeline and the curve are drawn with.
//
// Text is escaped (markup.h).
#pragma once

#include <string>
#include <string_view>

namespace plimsoll::report {

struct Frame {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;
};

class Svg {
 public:
  Svg(int width, int height);

  void label(double x, double y, std::string_view what, std::string_view style);
  void rectangle(const Frame& frame, std::string_view color, std::string_view style = {});
  void line(double x0, double y0, double x1, double y1, std::string_view style);
  void circle(double x, double y, double radius, std::string_view color);
  // Lines at round amounts of bytes from 0 up to `top`, which is at the frame's upper border.
  void bytes_axis(const Frame& frame, double top);
  void add(std::string_view element) { text_ += element; }

  std::string text() const { return text_ + "</svg>\n"; }

 private:
  std::string text_;
};

}  // namespace plimsoll::report
