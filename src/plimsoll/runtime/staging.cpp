#include "plimsoll/runtime/staging.h"

#include <algorithm>

namespace plimsoll::runtime {

Result<std::span<std::byte>> Staging::room(std::size_t bytes) {
  const auto wanted = static_cast<std::int64_t>(bytes);
  const std::int64_t held = pinned_ ? pinned_->size().value : 0;
  if (held < wanted || !pinned_) {
    pinned_.reset();
    PLIMSOLL_TRY(pinned_, device_.make_host_arena(Bytes(std::max(wanted, 2 * held))));
  }
  return std::span(pinned_->data(), bytes);
}

Status Staging::write(std::byte* to, std::size_t bytes, const WriteBytes& content) {
  if (device_.computes_on_host()) return content({to, bytes});
  PLIMSOLL_TRY(const std::span<std::byte> memory, room(bytes));
  PLIMSOLL_RETURN_IF_ERROR(content(memory));
  return device_.write(to, memory);
}

Status Staging::read(const std::byte* from, std::size_t bytes, const ReadBytes& use) {
  if (device_.computes_on_host()) return use({from, bytes});
  PLIMSOLL_TRY(const std::span<std::byte> memory, room(bytes));
  PLIMSOLL_RETURN_IF_ERROR(device_.read(memory, from));
  return use(memory);
}

}  // namespace plimsoll::runtime
