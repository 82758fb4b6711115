// The values that a pickle of torch.save describes, as a table of plain values: no code is run.
//
// Values are numbered and refer to each other by number, so that a pickle that refers to itself, or
// to one value a million times, costs no more than its bytes. See torch_file.h for what is allowed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"

namespace plimsoll::store {

struct PickleValue {
  enum class Kind : std::uint8_t {
    kNothing,  // None, and whatever has no meaning here
    kInteger,
    kText,
    kGlobal,      // text: "torch FloatStorage"
    kSequence,    // list or tuple
    kDictionary,  // items: key, value, key, value
    kPersistent,  // items[0]: its id
    kCall,        // items[0]: what is called, items[1]: the tuple of arguments, items[2]: its state
  };
  Kind kind = Kind::kNothing;
  std::int64_t integer = 0;
  std::string_view text;  // in the pickle
  std::vector<std::uint32_t> items;
};

struct Pickle {
  std::vector<PickleValue> values;
  std::uint32_t root = 0;
};

Result<Pickle> read_pickle(std::span<const std::byte> bytes);

}  // namespace plimsoll::store
