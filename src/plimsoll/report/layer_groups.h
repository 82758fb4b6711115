// Layers as a tree, and a cut through it that a chart can show.
//
// Layer names have dots between levels ("encoder.3.attention"). Places in sources are no such
// paths: "model.py:12 forward" stands below "model.py", and its dots mean nothing. A chart has room
// for twenty colours, a model has hundreds of layers; the cut starts at the roots and opens the
// group with most bytes, again and again, while the number of groups stays within the limit. So a
// transformer shows its blocks and a ResNet its stages, without anybody saying so. What belongs to
// an opened layer itself, not to a part of it, keeps a group of its own.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/report/timeline.h"

namespace plimsoll::report {

inline constexpr std::size_t kMostGroups = 19;

struct LayerGroups {
  std::vector<std::string> names;     // the last one is "other" where not all fit
  std::vector<std::uint8_t> of_text;  // by TextId of a layer
};

LayerGroups group_layers(const Timeline& timeline, std::size_t most = kMostGroups);

// One row of the tree, depth first; a parent's bytes include its children's.
struct LayerRow {
  std::string path;
  std::string name;  // the last part of the path
  int depth = 0;
  Bytes total;  // every allocation of the layer, each once
  Bytes at_peak;
  std::array<Bytes, kKindCount> by_kind{};  // of total
};

std::vector<LayerRow> layer_tree(const Timeline& timeline, std::size_t most_rows = 5000);

}  // namespace plimsoll::report
