#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "plimsoll/report/palette.h"
#include "plimsoll/report/web_assets.h"

namespace plimsoll::report {
namespace {

double luminance(const std::string& color) {
  double out = 0;
  for (const auto& [at, weight] :
       {std::pair(1, 0.2126), std::pair(3, 0.7152), std::pair(5, 0.0722)}) {
    const double part =
        std::stoi(color.substr(static_cast<std::size_t>(at), 2), nullptr, 16) / 255.0;
    out += weight * (part <= 0.04045 ? part / 12.92 : std::pow((part + 0.055) / 1.055, 2.4));
  }
  return out;
}

double contrast(const std::string& a, const std::string& b) {
  const auto [dark, light] = std::minmax({luminance(a), luminance(b)});
  return (light + 0.05) / (dark + 0.05);
}

// "--ink" of the block that begins at the mark.
std::string theme_color(std::string_view mark, const std::string& variable) {
  const std::string_view block = kReportStyle.substr(kReportStyle.find(mark));
  const auto at = block.find(variable + ": #");
  EXPECT_NE(at, std::string_view::npos) << variable;
  return std::string(block.substr(at + variable.size() + 2, 7));
}

// WCAG AA: 4.5 for text, 3 for what only has to be seen.
TEST(Style, TextReadsInBothThemes) {
  for (const char* theme :
       {":root {", ":root:not([data-theme=\"light\"])", ":root[data-theme=\"dark\"]"}) {
    for (const char* ground : {"--ground", "--card", "--soft"}) {
      for (const char* text : {"--ink", "--quiet", "--accent", "--warn", "--grow", "--shrink"})
        EXPECT_GE(contrast(theme_color(theme, text), theme_color(theme, ground)), 4.5)
            << theme << " " << text << " on " << ground;
    }
    EXPECT_GE(contrast(theme_color(theme, "--card"), theme_color(theme, "--accent")), 4.5) << theme;
  }
}

TEST(Style, EveryColourOfThePaletteCarriesBlackOrWhiteText) {
  std::vector<std::string> colors(kKindColors.begin(), kKindColors.end());
  colors.insert(colors.end(), kGroupColors.begin(), kGroupColors.end());
  for (const std::string& color : colors)
    EXPECT_GE(std::max(contrast(color, "#000000"), contrast(color, "#ffffff")), 4.5) << color;
}

}  // namespace
}  // namespace plimsoll::report
