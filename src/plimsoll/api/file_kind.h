// What a file is that was given as a MODEL and is none: a folder, a picture, a checkpoint.
//
// By its first bytes, not by its name. Only what people really give by mistake is known.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "plimsoll/base/result.h"

namespace plimsoll::api {

// "a folder", "a PNG picture", "a plan; `plimsoll run`, ... take it", with what to do where that is
// known; nothing for what does not exist or is not known.
std::optional<std::string> kind_of_file(const std::string& path);
// Of a file that kind_of_file does not know: "a text file", "an empty file", "a file of another
// kind". Nothing where there is no file.
std::optional<std::string> kind_of_any(const std::string& path);

// The same for files that our verbs write: a plan, a schedule, a sweep, a profile, a packing.
std::optional<std::string> kind_of_ours(const std::string& path);

// Whether a MODEL is read as a plan, a plan set or a schedule: what is called .json, and what
// begins as ours do, whatever it is called.
bool is_read_as_plan(const std::string& model);

// The error of reading a `wanted` ("trace") from the file; if the file is one that another verb
// takes, which one: "plan.json: no trace but a plan; ...".
Error naming_kind(Error error, const std::string& path, std::string_view wanted);

}  // namespace plimsoll::api
