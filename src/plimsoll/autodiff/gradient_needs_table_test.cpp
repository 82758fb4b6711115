// docs/gradient_needs.md is derived: this test makes the table again from the examples and
// compares. After a deliberate change, put what it prints into the document.
#include <set>

#include <gtest/gtest.h>

#include "plimsoll/autodiff/testing/operator_examples.h"
#include "plimsoll/base/file.h"
#include "plimsoll/base/testing/test_paths.h"
#include "plimsoll/ops/gradient_needs.h"

namespace plimsoll::autodiff {
namespace {

// "| `mul` | in0 in1 |"; one line for each different answer among an operator's examples.
std::string table_line(const OperatorExample& example, const ops::OpDefinition& definition) {
  std::vector<const ir::TensorType*> types;
  for (const auto& input : example.inputs) types.push_back(input ? &input->type : nullptr);
  const auto needs =
      ops::gradient_needs(definition, ops::Call(types, definition.read(example.attributes)));
  EXPECT_TRUE(needs.has_value()) << example.op;
  if (!needs) return {};
  const std::string text = ops::to_string("", *needs);
  return fmt::format("| `{}` | {} |\n", example.op, text.substr(std::string(" reads ").size()));
}

std::string needs_table() {
  std::set<std::string> lines;
  for (const OperatorExample& example : operator_examples()) {
    const ops::OpDefinition* definition = ops::find_definition(example.op);
    if (definition != nullptr && definition->gradient.rule() != nullptr)
      lines.insert(table_line(example, *definition));
  }
  std::string out = "| operator | its gradient reads |\n|---|---|\n";
  for (const std::string& line : lines) out += line;
  return out;
}

TEST(GradientNeedsTable, IsTheOneInTheDocument) {
  const auto document = read_file(test_source_dir().string() + "/docs/gradient_needs.md");
  ASSERT_TRUE(document.has_value()) << document.error().message;
  const std::string table = needs_table();
  EXPECT_NE(document->find(table), std::string::npos) << table;
}

}  // namespace
}  // namespace plimsoll::autodiff
