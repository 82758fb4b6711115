#include "plimsoll/codec/weights/form_work.h"

#include <utility>

namespace plimsoll::codec {

FormWork work_of_form(std::string_view form) {
  static constexpr std::pair<std::string_view, FormWork> kAll[] = {
      {"raw", {3, 3, 3}},         {"fp16", {8, 3, 3}},
      {"bf16", {8, 3, 3}},        {"fp8", {56, 7, 7}},
      {"int8", {8, 4, 4}},        {"q8_0", {8, 4, 12}},
      {"q4_0", {8, 4, 8}},        {"q4_k", {46, 8, 8}},
      {"nf4", {27, 4, 7}},        {"coo", {21, 7, 9}},
      {"csr", {26, 12, 14}},      {"bitmask", {10, 18, 23}},
      {"2:4", {115, 9, 14}},      {"bf16-lossless", {15, 17, 17}},  // decoded, then multiplied
      {"ternary", {164, 12, 12}},
  };
  for (const auto& [name, work] : kAll)
    if (name == form) return work;
  return {};
}

}  // namespace plimsoll::codec
