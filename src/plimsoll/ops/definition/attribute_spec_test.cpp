#include "plimsoll/ops/definition/attribute_spec.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plimsoll/ops/evaluation/evaluate_call.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::ops {
namespace {

using testing::HasSubstr;

std::string answer(std::string_view op, const ir::Attributes& attributes) {
  const auto types = infer_call(op, {{ir::DType::kF32, {2, 3}, {}}}, attributes);
  return types ? std::string("accepted") : types.error().message;
}

TEST(Attributes, OfAWrongTypeAreRefusedByName) {
  EXPECT_EQ(answer("softmax", {{"axis", std::int64_t{1}}}), "accepted");
  EXPECT_EQ(answer("softmax", {{"axis", std::string("1")}}),
            "softmax: axis: is a text, must be an integer");
}

TEST(Attributes, OfAnotherOperatorAreRefusedWithThoseItHas) {
  EXPECT_EQ(answer("softmax", {{"axsi", std::int64_t{1}}}),
            "softmax: has no attribute \"axsi\"; it has axis");
  EXPECT_EQ(answer("relu", {{"alpha", 3.0}}), "relu: has no attribute \"alpha\"; it has none");
  EXPECT_EQ(answer("leaky_relu", {{"alpha", 3.0}}), "accepted");
}

TEST(Attributes, OfAWordThatIsNoChoiceAreRefusedWithTheChoice) {
  EXPECT_EQ(answer("gelu", {{"approximate", std::string("sinh")}}),
            "gelu: attribute 'approximate' is 'sinh', expects one of none, tanh");
}

TEST(Attributes, OfNoOtherOperatorPassAtAny) {
  std::set<std::string_view> names{"nonsense"};
  for (const OpDefinition& definition : registry()) {
    for (const AttributeSpec& spec : definition.attributes) names.insert(spec.name);
  }
  for (const OpDefinition& definition : registry()) {
    const ir::Attributes none;
    const AttributeReader reader = definition.read(none);
    for (const std::string_view name : names) {
      if (reader.declares(name)) continue;
      const auto fine =
          check_attributes(definition.attributes, {{std::string(name), std::int64_t{1}}});
      ASSERT_FALSE(fine.has_value()) << definition.name << " takes " << name;
      EXPECT_THAT(fine.error().message, HasSubstr(name));
      for (const AttributeSpec& spec : definition.attributes)
        EXPECT_THAT(fine.error().message, HasSubstr(spec.name));
    }
  }
}

TEST(Attributes, HaveDefaultsThatTheyMayBeGiven) {
  for (const OpDefinition& definition : registry()) {
    std::set<std::string_view> names;
    for (const AttributeSpec& spec : definition.attributes) {
      EXPECT_TRUE(names.insert(spec.name).second) << definition.name << " has two " << spec.name;
      if (!spec.otherwise) continue;
      EXPECT_TRUE(
          check_attributes(definition.attributes, {{std::string(spec.name), *spec.otherwise}})
              .has_value())
          << definition.name << " " << spec.name;
    }
  }
}

TEST(AttributeReaderDeathTest, EndsARuleThatReadsWhatItsDefinitionDoesNotHave) {
  const ir::Attributes none;
  const AttributeReader softmax = find_definition("softmax")->read(none);
  EXPECT_EQ(softmax.integer("axis"), -1);
  EXPECT_DEATH(static_cast<void>(softmax.real("epsilon")), "softmax reads attribute 'epsilon'");
  EXPECT_DEATH(static_cast<void>(softmax.text("axis")), "as a text, its definition says");
  EXPECT_DEATH(static_cast<void>(find_definition("reshape")->read(none).integers("shape")),
               "absent and has no default");
}

}  // namespace
}  // namespace plimsoll::ops
