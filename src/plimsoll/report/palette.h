// One palette for the page and the pictures: Paul Tol's bright scheme and neighbours, which readers
// with any common colour blindness can tell apart, at lightnesses that hold on white and on
// near-black.
#pragma once

#include <array>

#include "plimsoll/report/timeline.h"

namespace plimsoll::report {

inline constexpr std::array<const char*, kKindCount> kKindColors = {
    "#8c8c8c", "#b9b9b9", "#4477aa", "#66ccee", "#ee6677", "#228833",
    "#ccbb44", "#aa3377", "#ee8866", "#44bb99", "#6f93bf"};

// For layers and phases; the last is for "other".
inline constexpr std::array<const char*, 20> kGroupColors = {
    "#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#44aa99",
    "#ddaa77", "#6655aa", "#99bb55", "#ee8866", "#88aadd", "#55887a", "#eedd88",
    "#cc6699", "#776644", "#99ddff", "#bb5544", "#77aacc", "#a9a9a9"};

}  // namespace plimsoll::report
