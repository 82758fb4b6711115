// Names, each stored once: a trace of a million events has a few hundred of them.
//
// Id 0 is always the empty string, so a default-made event has no name. Ids stay valid for the life
// of the table; the texts do not move.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "plimsoll/base/units.h"

namespace plimsoll::trace {

using StringId = Id<struct StringTag>;

class StringTable {
 public:
  StringTable() { intern(""); }
  StringTable(const StringTable& other) : StringTable() { *this = other; }
  StringTable& operator=(const StringTable& other) {
    if (this == &other) return *this;
    texts_.clear();
    ids_.clear();
    for (const std::string& text : other.texts_) intern(text);
    return *this;
  }
  StringTable(StringTable&&) = default;
  StringTable& operator=(StringTable&&) = default;

  StringId intern(std::string_view text) {
    const auto found = ids_.find(text);
    if (found != ids_.end()) return found->second;
    const StringId id(texts_.size());
    ids_.emplace(texts_.emplace_back(text), id);
    return id;
  }
  std::string_view text(StringId id) const {
    return id.index() < texts_.size() ? std::string_view(texts_[id.index()]) : std::string_view();
  }
  std::size_t size() const { return texts_.size(); }
  bool operator==(const StringTable& other) const { return texts_ == other.texts_; }

 private:
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, StringId> ids_;
};

}  // namespace plimsoll::trace
