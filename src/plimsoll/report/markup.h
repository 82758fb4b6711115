// Text as XML and HTML take it: no name from a file is ever markup.
#pragma once

#include <string>
#include <string_view>

namespace plimsoll::report {

// With < > & " written as entities. What may not stand there, control characters and bytes that are
// no UTF-8, becomes '?'.
std::string escaped(std::string_view text);

}  // namespace plimsoll::report
