// The words of Init::Kind in the text form, shared by the writer and the parser.
#pragma once

#include <array>
#include <string_view>

namespace plimsoll::ir {

// In the order of the enum.
inline constexpr std::array<std::string_view, 5> kInitNames = {"none", "constant", "normal",
                                                               "uniform", "file"};

}  // namespace plimsoll::ir
