// Packing problems and packings as JSON: everything a Problem can say (docs/formats/packing.md).
//
// The reader trusts nothing: unknown keys, wrong types, numbers out of range and unknown ids are
// errors that name the place (`line 4, column 17: buffers[3].size: ...`). Ids that are not UTF-8 (a
// CSV may have them) are not written: what JSON can hold of them could not be read back.
#pragma once

#include <string>
#include <string_view>

#include "plimsoll/base/result.h"
#include "plimsoll/pack/model/packing.h"

namespace plimsoll::pack {

Result<Problem> read_json(std::string_view text);
Status check_json_names(const Problem& problem);  // the error that the writers would give
Result<std::string> write_json(const Problem& problem);

// The answer: {"schema", "offsets": {id: offset}, "memories": {id: name}, ...} with the keys of the
// verb.
Result<std::string> write_packing_json(const Problem& problem, const Packing& packing,
                                       bool with_offsets);
Result<Packing> read_packing_json(const Problem& problem, std::string_view text);

// The offsets of an older packing as hints, by id; see take_hints_csv().
Status take_hints_json(Problem& problem, std::string_view text);

}  // namespace plimsoll::pack
