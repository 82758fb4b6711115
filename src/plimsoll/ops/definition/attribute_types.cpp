#include "plimsoll/ops/definition/attribute_types.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/nearest_name.h"

namespace plimsoll::ops {
namespace {

enum class Kind { kInteger, kReal, kText, kIntegers };  // an integer serves as a real

struct Typed {
  std::string_view name;
  Kind kind;
};

// Sorted by name.
constexpr auto kTyped = std::to_array<Typed>({
    {"activation", Kind::kText},
    {"alpha", Kind::kReal},
    {"approximate", Kind::kText},
    {"axes", Kind::kIntegers},
    {"axis", Kind::kInteger},
    {"batch_dims", Kind::kInteger},
    {"beta", Kind::kReal},
    {"bias", Kind::kReal},
    {"block", Kind::kInteger},
    {"by", Kind::kInteger},
    {"causal", Kind::kInteger},
    {"ceil_mode", Kind::kInteger},
    {"coordinates", Kind::kText},
    {"count", Kind::kInteger},
    {"count_include_pad", Kind::kInteger},
    {"depth", Kind::kInteger},
    {"diagonal", Kind::kInteger},
    {"dilations", Kind::kIntegers},
    {"direction", Kind::kText},
    {"dtype", Kind::kText},
    {"ends", Kind::kIntegers},
    {"epsilon", Kind::kReal},
    {"exclusive", Kind::kInteger},
    {"fmod", Kind::kInteger},
    {"gamma", Kind::kReal},
    {"group", Kind::kInteger},
    {"groups", Kind::kInteger},
    {"heads", Kind::kInteger},
    {"ignore_index", Kind::kInteger},
    {"k", Kind::kReal},
    {"keepdims", Kind::kInteger},
    {"kernel", Kind::kIntegers},
    {"kv_heads", Kind::kInteger},
    {"lambd", Kind::kReal},
    {"largest", Kind::kInteger},
    {"last", Kind::kInteger},
    {"layout", Kind::kText},
    {"lr", Kind::kReal},
    {"max", Kind::kReal},
    {"min", Kind::kReal},
    {"mode", Kind::kText},
    {"momentum", Kind::kReal},
    {"off", Kind::kReal},
    {"on", Kind::kReal},
    {"output_padding", Kind::kIntegers},
    {"pads", Kind::kIntegers},
    {"perm", Kind::kIntegers},
    {"ratio", Kind::kReal},
    {"reduction", Kind::kText},
    {"repeats", Kind::kIntegers},
    {"reverse", Kind::kInteger},
    {"rounding", Kind::kText},
    {"scale", Kind::kReal},
    {"seed", Kind::kInteger},
    {"shape", Kind::kIntegers},
    {"size", Kind::kInteger},
    {"sizes", Kind::kIntegers},
    {"start", Kind::kReal},
    {"starts", Kind::kIntegers},
    {"step", Kind::kReal},
    {"steps", Kind::kIntegers},
    {"strides", Kind::kIntegers},
    {"to", Kind::kText},
    {"trans_a", Kind::kInteger},
    {"trans_b", Kind::kInteger},
    {"trans_w", Kind::kInteger},
    {"upper", Kind::kInteger},
    {"value", Kind::kReal},
    {"weight_decay", Kind::kReal},
});
static_assert(std::ranges::is_sorted(kTyped, {}, &Typed::name));

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::kInteger:
      return "an integer";
    case Kind::kReal:
      return "a number";
    case Kind::kText:
      return "a text";
    case Kind::kIntegers:
      return "a list of integers";
  }
  return "";
}

std::string_view type_name(const ir::Attribute& value) {
  constexpr std::array kNames{"an integer", "a real", "a text", "a list of integers",
                              "a list of reals"};
  return kNames[value.index()];
}

bool is_a(const ir::Attribute& value, Kind kind) {
  switch (kind) {
    case Kind::kInteger:
      return std::holds_alternative<std::int64_t>(value);
    case Kind::kReal:
      return std::holds_alternative<double>(value) || std::holds_alternative<std::int64_t>(value);
    case Kind::kText:
      return std::holds_alternative<std::string>(value);
    case Kind::kIntegers:
      return std::holds_alternative<ir::Ints>(value);
  }
  return false;
}

tl::unexpected<Error> unknown(const std::string& name) {
  std::vector<std::string> names;
  for (const Typed& typed : kTyped) names.emplace_back(typed.name);
  const std::string nearest = nearest_name(name, names);
  return bad_input("no operator has an attribute {}{}", ir::quoted(name),
                   nearest.empty() ? "" : "; the nearest is " + nearest);
}

}  // namespace

Status check_attributes(const ir::Attributes& attributes) {
  for (const auto& [name, value] : attributes.entries()) {
    const auto* typed = std::ranges::lower_bound(kTyped, name, {}, &Typed::name);
    if (typed == kTyped.end() || typed->name != name) return unknown(name);
    if (!is_a(value, typed->kind)) {
      return bad_input("{}: is {}, must be {}", name, type_name(value), kind_name(typed->kind));
    }
  }
  return {};
}

}  // namespace plimsoll::ops
