#include "plimsoll/report/layer_groups.h"

#include <algorithm>
#include <map>

namespace plimsoll::report {
namespace {

constexpr const char* kNoLayer = "(no layer)";
constexpr int kDeepest = 32;

struct TreeNode {
  std::map<std::string, std::size_t> children;  // by the last part of their name
  std::string path;
  int depth = -1;
  LayerRow sums;
  Bytes own;  // not of a child
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Numbers inside names count: layer 10 comes after layer 9, line 12 after line 9.
bool natural_less(const std::string& a, const std::string& b) {
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (!is_digit(a[i]) || !is_digit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
      continue;
    }
    const auto run = [](const std::string& text, std::size_t& at) {
      while (at + 1 < text.size() && text[at] == '0' && is_digit(text[at + 1])) ++at;
      const std::size_t first = at;
      while (at < text.size() && is_digit(text[at])) ++at;
      return std::string_view(text).substr(first, at - first);
    };
    const std::string_view one = run(a, i);
    const std::string_view other = run(b, j);
    if (one != other) return one.size() != other.size() ? one.size() < other.size() : one < other;
  }
  return a.size() - i < b.size() - j;
}

class Tree {
 public:
  explicit Tree(const Timeline& timeline) : leaf_of_text_(timeline.texts.all().size(), 0) {
    nodes_.emplace_back();
    const Step peak = peak_of(timeline).time_step;
    for (const Allocation& allocation : timeline.allocations) {
      if (allocation.memory != 0) continue;
      std::size_t& leaf = leaf_of_text_[allocation.layer.index()];
      if (leaf == 0)
        leaf = insert(timeline.texts.text(allocation.layer),
                      timeline.texts.text(timeline.site_file(allocation.layer)));
      LayerRow& sums = nodes_[leaf].sums;
      nodes_[leaf].own += allocation.bytes;
      sums.total += allocation.bytes;
      sums.by_kind[static_cast<std::size_t>(allocation.kind)] += allocation.bytes;
      if (allocation.life.contains(peak)) sums.at_peak += allocation.bytes;
    }
    for (std::size_t n = nodes_.size(); n-- > 1;) add(nodes_[parents_[n]].sums, nodes_[n].sums);
  }

  const std::vector<TreeNode>& nodes() const { return nodes_; }
  std::size_t leaf(std::size_t text) const { return leaf_of_text_[text]; }
  std::size_t parent(std::size_t node) const { return parents_[node]; }

  std::vector<std::size_t> children(std::size_t node) const {
    std::vector<std::pair<std::string, std::size_t>> sorted(nodes_[node].children.begin(),
                                                            nodes_[node].children.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const auto& a, const auto& b) { return natural_less(a.first, b.first); });
    std::vector<std::size_t> out;
    for (const auto& [part, child] : sorted) out.push_back(child);
    return out;
  }

 private:
  static void add(LayerRow& to, const LayerRow& from) {
    to.total += from.total;
    to.at_peak += from.at_peak;
    for (std::size_t k = 0; k < from.by_kind.size(); ++k) to.by_kind[k] += from.by_kind[k];
  }

  // `file`: of a place in sources; empty for a path with dots.
  std::size_t insert(const std::string& path, const std::string& file) {
    if (!file.empty() && path.starts_with(file))
      return child_of(child_of(0, file, file), path.substr(file.size()), path);
    const std::string full = path.empty() ? kNoLayer : path;
    std::size_t node = 0;
    std::size_t begin = 0;
    while (begin <= full.size()) {
      std::size_t end = nodes_[node].depth + 2 >= kDeepest ? full.size() : full.find('.', begin);
      if (end == std::string::npos) end = full.size();
      node = child_of(node, full.substr(begin, end - begin), full.substr(0, end));
      begin = end + 1;
    }
    return node;
  }

  std::size_t child_of(std::size_t parent, const std::string& part, std::string path) {
    if (const auto found = nodes_[parent].children.find(part);
        found != nodes_[parent].children.end())
      return found->second;
    const std::size_t child = nodes_.size();
    nodes_[parent].children.emplace(part, child);
    TreeNode& node = nodes_.emplace_back();
    node.path = std::move(path);
    node.sums.name = part;
    node.depth = nodes_[parent].depth + 1;
    parents_.resize(nodes_.size());
    parents_[child] = parent;
    return child;
  }

  std::vector<TreeNode> nodes_;
  std::vector<std::size_t> parents_{0};
  std::vector<std::size_t> leaf_of_text_;
};

void append_rows(const Tree& tree, std::size_t node, std::vector<LayerRow>& rows,
                 std::size_t most) {
  for (const std::size_t child : tree.children(node)) {
    if (rows.size() >= most) return;
    LayerRow row = tree.nodes()[child].sums;
    row.path = tree.nodes()[child].path;
    row.depth = tree.nodes()[child].depth;
    rows.push_back(std::move(row));
    append_rows(tree, child, rows, most);
  }
}

// A layer with everything below it, or only what belongs to it alone.
struct Group {
  std::size_t node = 0;
  bool alone = false;
  Bytes total;
};

std::vector<Group> parts_of(const Tree& tree, std::size_t node) {
  std::vector<Group> out;
  for (const std::size_t child : tree.children(node))
    out.push_back({child, false, tree.nodes()[child].sums.total});
  if (tree.nodes()[node].own.value > 0) out.push_back({node, true, tree.nodes()[node].own});
  return out;
}

// Opens the largest group while the limit allows.
std::vector<Group> cut(const Tree& tree, std::size_t most) {
  std::vector<Group> groups = parts_of(tree, 0);
  std::vector<bool> closed(tree.nodes().size());
  for (;;) {
    std::size_t best = groups.size();
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const bool can = !groups[g].alone && !closed[groups[g].node] &&
                       !tree.nodes()[groups[g].node].children.empty();
      if (can && (best == groups.size() || groups[g].total > groups[best].total)) best = g;
    }
    if (best == groups.size()) return groups;
    const std::vector<Group> opened = parts_of(tree, groups[best].node);
    if (groups.size() + opened.size() - 1 > most) {
      closed[groups[best].node] = true;
      continue;
    }
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(best));
    groups.insert(groups.begin() + static_cast<std::ptrdiff_t>(best), opened.begin(), opened.end());
  }
}

// The smallest that still has a colour; ties keep the earlier ones.
Bytes smallest_shown(const std::vector<Group>& groups, std::size_t most) {
  if (groups.size() <= most) return 0_bytes;
  std::vector<Bytes> sizes;
  for (const Group& group : groups) sizes.push_back(group.total);
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  return sizes[most - 1];
}

}  // namespace

LayerGroups group_layers(const Timeline& timeline, std::size_t most) {
  const Tree tree(timeline);
  const std::vector<Group> groups = cut(tree, most);
  const Bytes smallest = smallest_shown(groups, most);
  std::vector<int> whole(tree.nodes().size(), -1);
  std::vector<int> alone(tree.nodes().size(), -1);
  LayerGroups out;
  for (const Group& group : groups) {
    if (group.total < smallest || out.names.size() == most) continue;
    (group.alone ? alone : whole)[group.node] = static_cast<int>(out.names.size());
    out.names.push_back(tree.nodes()[group.node].path + (group.alone ? " itself" : ""));
  }
  const auto other = static_cast<std::uint8_t>(out.names.size());
  out.of_text.assign(timeline.texts.all().size(), other);
  bool any_other = false;
  for (std::size_t text = 0; text < out.of_text.size(); ++text) {
    std::size_t node = tree.leaf(text);
    if (node == 0) continue;
    int found = alone[node];
    for (; found < 0 && node != 0; node = tree.parent(node)) found = whole[node];
    if (found >= 0) out.of_text[text] = static_cast<std::uint8_t>(found);
    any_other = any_other || found < 0;
  }
  if (any_other || out.names.empty()) out.names.push_back("other");
  return out;
}

std::vector<LayerRow> layer_tree(const Timeline& timeline, std::size_t most_rows) {
  std::vector<LayerRow> rows;
  append_rows(Tree(timeline), 0, rows, most_rows);
  return rows;
}

}  // namespace plimsoll::report
