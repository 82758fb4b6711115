// The timeline and the curve as static pictures, for papers and READMEs: SVG text, and PNG made
// from it by librsvg.
//
// Timeline. Above: bytes by kind over steps, stacked, with the peak marked and the budget as a
// line. Below: the address map, every allocation a rectangle at its place, as wide as its life;
// only the largest that still show at this size are drawn. Curve: more time against peak memory, a
// point for every plan of a sweep, and the proven bound under it. No browser is involved and no
// font is embedded.
#pragma once

#include <string>

#include "plimsoll/base/result.h"
#include "plimsoll/report/curve.h"
#include "plimsoll/report/timeline.h"

namespace plimsoll::report {

struct PictureOptions {
  int width = 1200;
  int height = 640;
  bool address_map = true;
};

std::string to_svg(const Timeline& timeline, const PictureOptions& options = {});

std::string to_svg(const Curve& curve, const PictureOptions& options = {});

// Renders an SVG at `scale` device pixels per unit. An error when librsvg refuses it.
Result<std::string> to_png(const std::string& svg, double scale = 2);

}  // namespace plimsoll::report
