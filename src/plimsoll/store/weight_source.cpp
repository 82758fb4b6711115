#include "plimsoll/store/weight_source.h"

#include "plimsoll/base/check.h"

namespace plimsoll::store {

const WeightSource::Entry* WeightSource::find(std::string_view name) const {
  const auto place = entries_.find(std::string(name));
  return place == entries_.end() ? nullptr : &place->second;
}

void WeightSource::release(std::span<const std::byte> bytes) const {
  for (const auto& file : files_) file->second.release(bytes);
  for (const auto& folder : folders_) folder->release(bytes);
}

std::vector<WeightSource::SourceFile> WeightSource::files() const {
  std::vector<SourceFile> out;
  for (const auto& file : files_) out.push_back({file->first, &file->second, false});
  for (const auto& folder : folders_) {
    for (const auto& [name, file] : folder->files()) out.push_back({name, &file, true});
  }
  return out;
}

void WeightSource::add(std::string name, const ir::TensorType& type,
                       std::span<const std::byte> bytes) {
  PLIMSOLL_CHECK(static_cast<std::int64_t>(bytes.size()) == ir::bytes_of(type).value, "weight '{}'",
                 name);
  entries_.insert_or_assign(std::move(name), Entry{type, bytes});
}

void WeightSource::add_owned(std::string name, const ir::TensorType& type,
                             std::vector<std::byte> bytes) {
  buffers_.push_back(std::make_unique<std::vector<std::byte>>(std::move(bytes)));
  add(std::move(name), type, *buffers_.back());
}

}  // namespace plimsoll::store
