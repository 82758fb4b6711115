// What a file is that was given as a MODEL and is none: a folder, a picture, a checkpoint.
//
// By its first bytes, not by its name. Only what people really give by mistake is known.
#pragma once

#include <optional>
#include <string>

namespace plimsoll::api {

// "a folder", "a PNG picture", "a plan; `plimsoll run`, ... take it", with what to do where that is
// known; nothing for what does not exist or is not known.
std::optional<std::string> kind_of_file(const std::string& path);

}  // namespace plimsoll::api
