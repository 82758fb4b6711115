// ONNX files that want to do harm, given to the program itself.
#include "hostile/program_run.h"
#include "plimsoll/model/onnx/testing/file_pieces.h"

namespace plimsoll::model::onnx {
namespace {

namespace fs = std::filesystem;
using namespace file_pieces;

class HostilePrograms : public hostile::ProgramRun {
 protected:
  void SetUp() override {
    hostile::ProgramRun::SetUp();
    fs::create_directories(folder_ / "inside");
  }

  // The file is refused, and how.
  void expect_refused(const std::string& what, const std::string& file, int exit_code = 3) const {
    const std::string path = this->file("inside/model.onnx", file);
    hostile::ProgramRun::expect_refused(what, {"run", path, "--random"}, "", exit_code);
  }
};

std::string one_node(const std::string& the_node,
                     const std::vector<std::string>& initializers = {}) {
  return model(graph({.nodes = {the_node}, .initializers = initializers}));
}

std::string shape_tensor(const std::vector<std::int64_t>& dims) {
  return tensor("s", 7, {static_cast<std::int64_t>(dims.size())}, int64s(dims));
}

TEST_F(HostilePrograms, TruncatedFilesAreRefused) {
  const std::string whole =
      one_node(node("Add", {"x", "w"}, {"y"}), {tensor("w", 1, {2, 3}, std::string(24, 'a'))});
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, whole.size() / 3, whole.size() / 2, whole.size() - 1}) {
    expect_refused(fmt::format("{} bytes", size), whole.substr(0, size));
  }
}

TEST_F(HostilePrograms, HugeCountsAreRefused) {
  std::string length = WireWriter().integer(1, 8).take();
  length += "\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f";  // a graph of 2^63 bytes
  expect_refused("a graph longer than the file", length);
  std::string nodes;
  for (int i = 0; i < 2'000'000; ++i) nodes += std::string("\x0a\x00", 2);
  expect_refused("millions of empty nodes", model(nodes));
  const std::vector<std::string> many(200'000, "x");
  expect_refused("a node with 200,000 inputs",
                 one_node(node("Concat", many, {"y"}, {integer("axis", 0)})));
  expect_refused("a tensor with 200,000 dimensions",
                 one_node(node("Relu", {"w"}, {"y"}),
                          {tensor("w", 1, std::vector<std::int64_t>(200'000, 1), "abcd")}));
}

TEST_F(HostilePrograms, ImpossibleShapesAreRefused) {
  for (const std::vector<std::int64_t>& dims : {std::vector<std::int64_t>{-5},
                                                {1LL << 62, 8},
                                                {1LL << 40, 1LL << 40},
                                                {1LL << 31, 1LL << 31, 4}}) {
    expect_refused(
        "an input",
        model(graph({.nodes = {node("Relu", {"x"}, {"y"})}, .inputs = {value("x", 1, dims)}})));
    expect_refused("an initialiser",
                   one_node(node("Relu", {"w"}, {"y"}), {tensor("w", 1, dims, "")}));
    for (const char* op : {"Reshape", "Expand", "Tile"}) {
      expect_refused(op, one_node(node(op, {"x", "s"}, {"y"}), {shape_tensor(dims)}));
    }
  }
}

TEST_F(HostilePrograms, CyclesMissingInputsAndUnknownNamesAreRefused) {
  expect_refused("a cycle",
                 model(graph({.nodes = {node("Add", {"x", "b"}, {"a"}), node("Relu", {"a"}, {"b"}),
                                        node("Relu", {"b"}, {"y"})}})));
  expect_refused("a missing input", one_node(node("Relu", {"nowhere"}, {"y"})));
  expect_refused("no inputs at all", one_node(node("Conv", {}, {"y"})));
  expect_refused("an unknown operator", one_node(node("Frobnicate", {"x"}, {"y"})));
  expect_refused("an unknown domain", one_node(WireWriter()
                                                   .bytes(1, "x")
                                                   .bytes(2, "y")
                                                   .bytes(4, "Relu")
                                                   .bytes(7, "org.nowhere")
                                                   .take()));
  expect_refused("an unknown attribute",
                 one_node(node("Relu", {"x"}, {"y"}, {integer("secretly_tanh", 1)})));
  expect_refused(
      "an attribute of another type",
      one_node(node("Softmax", {"x"}, {"y"},
                    {WireWriter().bytes(1, "axis").bytes(4, "last").integer(20, 3).take()})));
}

std::string external_tensor(const std::string& location, const std::string& length,
                            const std::string& offset, const std::vector<std::int64_t>& dims) {
  WireWriter out;
  for (const std::int64_t d : dims) out.integer(1, d);
  out.integer(2, 1).bytes(8, "w");
  const auto entry = [&](std::string_view key, const std::string& text) {
    if (!text.empty()) out.bytes(13, WireWriter().bytes(1, key).bytes(2, text).take());
  };
  entry("location", location);
  entry("length", length);
  entry("offset", offset);
  return out.integer(14, 1).take();
}

TEST_F(HostilePrograms, ExternalDataStaysInTheFolderAndInItsFile) {
  ASSERT_TRUE(write_file(folder_ / "outside", std::string(64, '\0')));
  ASSERT_TRUE(write_file(folder_ / "inside" / "data", std::string(64, '\0')));
  fs::create_symlink("../outside", folder_ / "inside" / "link");
  fs::create_directory_symlink("..", folder_ / "inside" / "up");
  struct Case {
    std::string location, length, offset;
    std::vector<std::int64_t> dims = {6};
  };
  for (const Case& c : std::vector<Case>{{"../outside", "", ""},
                                         {"/etc/hostname", "", ""},
                                         {"link", "", ""},
                                         {"up/outside", "", ""},
                                         {"./../outside", "", ""},
                                         {"missing", "", ""},
                                         {".", "", ""},
                                         {"", "", ""},
                                         {"data", "4611686018427387904", ""},
                                         {"data", "24", "18446744073709551615"},
                                         {"data", "24", "9223372036854775807"},
                                         {"data", "-1", ""},
                                         {"data", "12", ""},
                                         {"data", "", "", {1LL << 32}},
                                         {"data", "17179869184", "", {1LL << 32}}}) {
    expect_refused(
        fmt::format("'{}' {} {}", c.location, c.length, c.offset),
        model(graph({.nodes = {node("Add", {"x", "w"}, {"y"})},
                     .initializers = {external_tensor(c.location, c.length, c.offset, c.dims)},
                     .inputs = {value("x", 1, {6})}})));
  }
}

TEST_F(HostilePrograms, DeepNestingIsRefused) {
  for (const int depth : {60, 2000}) {
    std::string inner = graph({.nodes = {node("Relu", {"x"}, {"y"})}, .inputs = {}});
    for (int i = 0; i < depth; ++i)
      inner =
          graph({.nodes = {node("If", {"c"}, {"y"}, {body("then_branch", inner)})}, .inputs = {}});
    expect_refused(fmt::format("{} branches", depth),
                   one_node(node("If", {"c"}, {"y"}, {body("then_branch", inner)}),
                            {tensor("c", 9, {1}, std::string(1, '\1'))}));
  }
}

// Small files whose constants would be large: each is refused before anything is made.
TEST_F(HostilePrograms, ConstantsThatWouldGrowAreRefused) {
  const std::int64_t huge = 1LL << 36;
  const std::vector<std::string> one{tensor("c", 1, {1}, std::string(4, '\0')),
                                     shape_tensor({huge})};
  for (const char* op : {"Expand", "Tile"})
    expect_refused(op, one_node(node(op, {"c", "s"}, {"y"}), one));
  expect_refused("ConstantOfShape", one_node(node("ConstantOfShape", {"s"}, {"y"}), one));
  const auto scalar = [](std::string_view name, std::int64_t number) {
    return tensor(name, 7, {}, int64s({number}));
  };
  expect_refused("Range", one_node(node("Range", {"a", "b", "d"}, {"y"}),
                                   {scalar("a", 0), scalar("b", INT64_MAX), scalar("d", 1)}));
  expect_refused(
      "OneHot", one_node(node("OneHot", {"i", "d", "v"}, {"y"}),
                         {scalar("i", 0), scalar("d", huge), tensor("v", 7, {2}, int64s({0, 1}))}));
  expect_refused("Pad", one_node(node("Pad", {"c", "s"}, {"y"}),
                                 {one[0], tensor("s", 7, {2}, int64s({0, huge}))}));
}

// The same with sizes computed from other attributes than a shape.
TEST_F(HostilePrograms, SizesThatWouldGrowAreRefused) {
  const std::int64_t huge = 1LL << 40;
  const std::string image = value("x", 1, {1, 1, 2, 2});
  const auto floats = [](std::string_view name, const std::vector<float>& numbers) {
    return tensor(name, 1, {static_cast<std::int64_t>(numbers.size())},
                  std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * 4));
  };
  const auto on_image = [&](const std::string& the_node,
                            const std::vector<std::string>& initializers) {
    return model(graph({.nodes = {the_node}, .initializers = initializers, .inputs = {image}}));
  };
  expect_refused("Resize by scales", on_image(node("Resize", {"x", "", "s"}, {"y"}),
                                              {floats("s", {1, 1, 1e30F, 1e30F})}));
  expect_refused("Resize to sizes", on_image(node("Resize", {"x", "", "", "s"}, {"y"}),
                                             {tensor("s", 7, {4}, int64s({1, 1, huge, huge}))}));
  expect_refused("Pad of an input",
                 on_image(node("Pad", {"x", "s"}, {"y"}),
                          {tensor("s", 7, {8}, int64s({0, 0, huge, huge, 0, 0, huge, huge}))}));
  expect_refused("Pad by what overflows",
                 on_image(node("Pad", {"x", "s"}, {"y"}),
                          {tensor("s", 7, {8}, int64s({0, 0, INT64_MAX, 0, 0, 0, INT64_MAX, 0}))}));
  expect_refused(
      "DepthToSpace",
      on_image(node("DepthToSpace", {"x"}, {"y"}, {integer("blocksize", 1LL << 32)}), {}));
  expect_refused("Range of floats",
                 one_node(node("Range", {"a", "b", "c"}, {"y"}),
                          {tensor("a", 1, {}, std::string(4, '\0')),
                           tensor("b", 1, {}, std::string("\xff\xff\x7f\x7f", 4)),
                           tensor("c", 1, {}, std::string("\0\0\x80\x3f", 4))}));
  expect_refused("EyeLike of a constant", one_node(node("EyeLike", {"c"}, {"y"}),
                                                   {tensor("c", 1, {1LL << 30, 1LL << 30}, "")}));
  std::string equation;
  for (int i = 0; i < 1000; ++i) equation += static_cast<char>('a' + i % 26);
  expect_refused(
      "Einsum of a thousand letters",
      on_image(node("Einsum", {"x"}, {"y"}, {text("equation", equation + "->" + equation)}), {}));
}

// Recurrences are unrolled: one node of the file is thousands of ours.
TEST_F(HostilePrograms, UnrollingWithoutEndIsRefused) {
  const auto weights = [](std::string_view name, std::int64_t columns) {
    return tensor(name, 1, {1, 4, columns},
                  std::string(static_cast<std::size_t>(16 * columns), '\0'));
  };
  std::vector<std::string> layers;
  for (int i = 0; i < 200; ++i) {
    layers.push_back(node("LSTM", {i == 0 ? "x" : fmt::format("h{}", i), "w", "r"},
                          {fmt::format("y{}", i)}, {integer("hidden_size", 1)}));
    layers.push_back(node("Squeeze", {fmt::format("y{}", i), "one"}, {fmt::format("h{}", i + 1)}));
  }
  layers.push_back(node("Identity", {"h200"}, {"y"}));
  expect_refused("200 layers", model(graph({.nodes = layers,
                                            .initializers = {weights("w", 1), weights("r", 1),
                                                             tensor("one", 7, {1}, int64s({1}))},
                                            .inputs = {value("x", 1, {4096, 1, 1})}})));
  expect_refused("a million steps", model(graph({.nodes = {layers[0]},
                                                 .initializers = {weights("w", 1), weights("r", 1)},
                                                 .inputs = {value("x", 1, {1 << 20, 1, 1})}})));
}

TEST_F(HostilePrograms, SequencesWithoutEndAreRefused) {
  const std::string inside = graph(
      {.nodes = {node("Identity", {"go"}, {"go_on"}), node("SequenceInsert", {"v", "x"}, {"w"})},
       .inputs = {value("i", 7, {}), value("go", 9, {}), value("v", 1, {})},
       .outputs = {value("go_on", 9, {}), value("w", 1, {})}});
  expect_refused(
      "a list that grows in a loop",
      model(graph({.nodes = {node("SequenceConstruct", {"x"}, {"v"}),
                             node("Loop", {"n", "", "v"}, {"w"}, {body("body", inside)}),
                             node("ConcatFromSequence", {"w"}, {"y"}, {integer("axis", 0)})},
                   .initializers = {tensor("n", 7, {}, int64s({INT64_MAX}))}})));
  expect_refused(
      "pieces of one",
      model(graph({.nodes = {node("SplitToSequence", {"x"}, {"v"}),
                             node("ConcatFromSequence", {"v"}, {"y"}, {integer("axis", 0)})},
                   .inputs = {value("x", 1, {1LL << 40})}})));
  expect_refused("a position outside", one_node(node("SequenceAt", {"x", "n"}, {"y"}),
                                                {tensor("n", 7, {}, int64s({INT64_MIN}))}));
}

// What a run computes may be large, too large for this machine: that is no fault of the file.
TEST_F(HostilePrograms, ModelsLargerThanTheMachineDoNotFit) {
  const std::string wide = tensor("s", 7, {2}, int64s({1LL << 38, 3}));
  expect_refused("Expand of an input",
                 model(graph({.nodes = {node("Expand", {"x", "s"}, {"y"})},
                              .initializers = {wide},
                              .inputs = {value("x", 1, {1, 3})}})),
                 4);
  std::vector<std::string> doubling;
  for (int i = 0; i < 40; ++i)
    doubling.push_back(node("Concat", {fmt::format("c{}", i), fmt::format("c{}", i)},
                            {fmt::format("c{}", i + 1)}, {integer("axis", 0)}));
  doubling.push_back(node("Identity", {"c40"}, {"y"}));
  expect_refused("doubling",
                 model(graph({.nodes = doubling,
                              .initializers = {tensor("c0", 1, {1}, std::string(4, '\0'))}})),
                 4);
}

TEST_F(HostilePrograms, EndlessWorkIsRefused) {
  const auto loop = [](const std::string& inner_node) {
    const std::string inside =
        graph({.nodes = {node("Identity", {"go"}, {"go_on"}), inner_node},
               .inputs = {value("i", 7, {}), value("go", 9, {}), value("v", 1, {2, 3})},
               .outputs = {value("go_on", 9, {}), value("w", 1, {2, 3})}});
    return node("Loop", {"n", "", "v"}, {"w"}, {body("body", inside)});
  };
  const std::string trips = tensor("n", 7, {}, int64s({INT64_MAX}));
  std::string nested = node("Relu", {"v"}, {"w"});
  for (int depth = 0; depth < 3; ++depth) {
    nested = loop(nested);
    expect_refused(fmt::format("{} loops in each other", depth + 1),
                   model(graph({.nodes = {node("Identity", {"x"}, {"v"}), nested,
                                          node("Identity", {"w"}, {"y"})},
                                .initializers = {trips}})));
  }
}

// f0 is called twice by f1, which is called twice by f2, ...: 2^40 nodes; and one that calls
// itself.
TEST_F(HostilePrograms, FunctionsThatMultiplyAreRefused) {
  const auto call = [](const std::string& name, const std::string& from, const std::string& to) {
    return WireWriter().bytes(1, from).bytes(2, to).bytes(4, name).bytes(7, "own").take();
  };
  const auto function = [](const std::string& name, const std::vector<std::string>& nodes) {
    WireWriter out;
    out.bytes(1, name).bytes(4, "a").bytes(5, "c");
    for (const std::string& n : nodes) out.bytes(7, n);
    return out.bytes(9, WireWriter().integer(2, 17).take()).bytes(10, "own").take();
  };
  const auto with = [&](const std::vector<std::string>& functions, const std::string& first) {
    WireWriter out;
    out.integer(1, 8)
        .bytes(7, graph({.nodes = {call(first, "x", "y")}}))
        .bytes(8, WireWriter().integer(2, 17).take());
    for (const std::string& f : functions) out.bytes(25, f);
    return out.take();
  };
  std::vector<std::string> chain{function("f0", {node("Relu", {"a"}, {"c"})})};
  for (int i = 1; i < 20; ++i) {
    const std::string before = fmt::format("f{}", i - 1);
    chain.push_back(
        function(fmt::format("f{}", i), {call(before, "a", "b"), call(before, "b", "c")}));
  }
  expect_refused("doubling calls", with(chain, "f19"));
  expect_refused("a function that calls itself", with({function("f", {call("f", "a", "c")})}, "f"));
}

}  // namespace
}  // namespace plimsoll::model::onnx
