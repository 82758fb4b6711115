// ONNX's own backend tests, as Debian's libonnx-testdata has them. Every case runs; those in
// tests/onnx/not_run.txt must fail and all others must pass, so the list can neither rot nor hide.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "plimsoll/base/testing/test_paths.h"
#include "plimsoll/model/onnx/testing/backend_case.h"

namespace plimsoll::model::onnx {
namespace {

namespace fs = std::filesystem;

const fs::path kData = "/usr/share/libonnx-testdata/data";
const fs::path kLists = test_source_dir() / "tests/onnx";

// "suite/test_name: reason" per line; # begins a comment.
std::map<std::string, std::string> read_list(const fs::path& path) {
  std::map<std::string, std::string> out;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.empty() || line[0] == '#' || colon == std::string::npos) continue;
    out.emplace(line.substr(0, colon), line.substr(colon + 2));
  }
  return out;
}

Status run_case(const fs::path& folder) {
  PLIMSOLL_TRY(const BackendCase test, read_backend_case(folder));
  PLIMSOLL_TRY(const ImportedModel model, import_case(test));
  PLIMSOLL_TRY(const std::vector<ops::Array> outputs, run_reference(model, test.inputs));
  for (std::size_t i = 0; i < test.outputs.size() && i < outputs.size(); ++i) {
    const Status same = compare(outputs[i], test.outputs[i].array, {});
    if (!same) return forward(same, fmt::format("output '{}'", test.outputs[i].name));
  }
  if (test.outputs.empty()) return bad_input("the case has no outputs");
  return {};
}

void run_suite(const std::string& suite, std::size_t least_passing, const fs::path& data = kData,
               const std::string& list = "not_run.txt") {
  ASSERT_TRUE(fs::exists(data / suite)) << "install Debian's libonnx-testdata (make deps)";
  const auto not_run = read_list(kLists / list);
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(data / suite)) {
    if (fs::exists(entry.path() / "model.onnx")) names.insert(entry.path().filename().string());
  }
  std::size_t passing = 0;
  for (const std::string& name : names) {
    const Status status = run_case(data / suite / name);
    const auto listed = not_run.find(suite + "/" + name);
    passing += status ? 1 : 0;
    if (status) {
      EXPECT_TRUE(listed == not_run.end())
          << suite << "/" << name << " passes: take it off tests/onnx/" << list;
    } else {
      EXPECT_TRUE(listed != not_run.end())
          << suite << "/" << name << ": " << status.error().message;
    }
  }
  std::printf("%s: %zu of %zu cases pass\n", suite.c_str(), passing, names.size());
  EXPECT_GE(passing, least_passing);
}

TEST(OnnxBackend, NodeCasesPassUnlessListed) {
  run_suite("node", 550);
}
TEST(OnnxBackend, SimpleCasesPassUnlessListed) {
  run_suite("simple", 7);
}
TEST(OnnxBackend, PytorchConvertedCasesPassUnlessListed) {
  run_suite("pytorch-converted", 75);
}
TEST(OnnxBackend, PytorchOperatorCasesPassUnlessListed) {
  run_suite("pytorch-operator", 25);
}

// The node tests of the current onnx package, written by tools/references/onnx_node_cases.py.
TEST(SlowOnnxBackend, CurrentNodeCasesPassUnlessListed) {
  const char* folder = std::getenv("PLIMSOLL_ONNX_CASES");
  ASSERT_NE(folder, nullptr)
      << "PLIMSOLL_ONNX_CASES names no folder of cases; `make test-all` makes one";
  run_suite("node", 900, folder, "not_run_current.txt");
}

}  // namespace
}  // namespace plimsoll::model::onnx
