#include "plimsoll/base/units.h"

#include <fmt/format.h>

auto fmt::formatter<plimsoll::Bytes>::format(plimsoll::Bytes bytes,
                                             fmt::format_context& context) const
    -> fmt::format_context::iterator {
  return fmt::formatter<std::int64_t>::format(bytes.value, context);
}
