// Files that want to do harm: one clear line each, no crash, no unbounded memory.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "plimsoll/base/file.h"
#include "plimsoll/base/random.h"
#include "plimsoll/base/testing/test_paths.h"
#include "plimsoll/model/onnx/testing/file_pieces.h"
#include "plimsoll/model/onnx_import.h"

namespace plimsoll::model::onnx {
namespace {

namespace fs = std::filesystem;
using namespace file_pieces;

std::span<const std::byte> as_bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// The error's message, and that it is one line about bad input.
std::string refusal(const std::string& file) {
  const auto result = import_onnx_bytes(as_bytes(file));
  if (result) return "accepted";
  EXPECT_EQ(result.error().code, ErrorCode::kBadInput);
  EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
  return result.error().message;
}

TEST(HostileOnnx, SmallestModelIsAccepted) {
  EXPECT_EQ(refusal(model(graph({.nodes = {node("Relu", {"x"}, {"y"})}}))), "accepted");
}

TEST(HostileOnnx, TruncationIsRefusedEverywhere) {
  const std::string raw(24, 'a');
  const std::string whole = model(graph(
      {.nodes = {node("Add", {"x", "w"}, {"y"})}, .initializers = {tensor("w", 1, {2, 3}, raw)}}));
  EXPECT_EQ(refusal(whole), "accepted");
  int accepted = 0;
  for (std::size_t size = 0; size < whole.size(); ++size)
    accepted += refusal(whole.substr(0, size)) == "accepted" ? 1 : 0;
  // Only whole messages may be missing at the end: the operator set is the last, and needed.
  EXPECT_EQ(accepted, 0);
}

TEST(HostileOnnx, CyclesAndMissingInputsAreNamed) {
  EXPECT_NE(
      refusal(model(graph({.nodes = {node("Add", {"x", "b"}, {"a"}), node("Relu", {"a"}, {"b"}),
                                     node("Relu", {"b"}, {"y"})}})))
          .find("reads 'b'"),
      std::string::npos);
  EXPECT_NE(refusal(model(graph({.nodes = {node("Relu", {"nowhere"}, {"y"})}}))).find("'nowhere'"),
            std::string::npos);
  EXPECT_NE(refusal(model(graph({.nodes = {}}))).find("output 'y'"), std::string::npos);
}

TEST(HostileOnnx, UnknownOperatorsAndTypesAreNamed) {
  EXPECT_NE(refusal(model(graph({.nodes = {node("Frobnicate", {"x"}, {"y"})}})))
                .find("'Frobnicate' is not supported"),
            std::string::npos);
  EXPECT_NE(
      refusal(model(graph({.nodes = {node("Relu", {"x"}, {"y"})}, .inputs = {value("x", 8, {2})}})))
          .find("strings"),
      std::string::npos);
}

// Both once ended the program.
TEST(HostileOnnx, OperandsThatDoNotFitEachOtherAreRefused) {
  const std::vector<std::string> uneven{value("q", 1, {2, 3, 4, 8}), value("k", 1, {2, 3, 6, 8}),
                                        value("v", 1, {2, 3, 38, 8})};
  EXPECT_NE(refusal(model(graph(
                        {.nodes = {node("Attention", {"q", "k", "v"}, {"y"})}, .inputs = uneven})))
                .find("attention: input 2"),
            std::string::npos);
  EXPECT_NE(refusal(model(graph({.nodes = {node("DFT", {"x"}, {"y"})},
                                 .inputs = {value("x", 5, {1, 10, 10, 1})}})))
                .find("int16"),
            std::string::npos);
}

TEST(HostileOnnx, ImpossibleShapesAreRefused) {
  for (const std::vector<std::int64_t>& dims : {std::vector<std::int64_t>{-5},
                                                {1LL << 62, 8},
                                                {1LL << 40, 1LL << 40},
                                                {1, 1, 1, 1, 1, 1, 1, 1, 1}}) {
    EXPECT_NE(refusal(model(
                  graph({.nodes = {node("Relu", {"x"}, {"y"})}, .inputs = {value("x", 1, dims)}}))),
              "accepted");
    EXPECT_NE(refusal(model(graph({.nodes = {node("Relu", {"w"}, {"y"})},
                                   .initializers = {tensor("w", 1, dims, "")}}))),
              "accepted");
  }
  const std::string huge = tensor("s", 7, {2}, int64s({1LL << 40, 1LL << 40}));
  EXPECT_NE(refusal(model(
                graph({.nodes = {node("Reshape", {"x", "s"}, {"y"})}, .initializers = {huge}}))),
            "accepted");
  EXPECT_NE(
      refusal(model(graph({.nodes = {node("Expand", {"x", "s"}, {"y"})}, .initializers = {huge}}))),
      "accepted");
  EXPECT_NE(
      refusal(model(graph({.nodes = {node("Tile", {"x", "s"}, {"y"})}, .initializers = {huge}}))),
      "accepted");
}

TEST(HostileOnnx, SizesAreComparedBeforeMemoryIsTaken) {
  EXPECT_NE(refusal(model(graph({.nodes = {node("Add", {"x", "w"}, {"y"})},
                                 .initializers = {tensor("w", 1, {1LL << 30}, "abcd")}})))
                .find("the file has 4"),
            std::string::npos);
}

TEST(HostileOnnx, IndicesAndDivisorsKnownAtImportAreChecked) {
  const auto with = [](const std::string& op, const std::string& initializer,
                       const std::string& in) {
    return refusal(
        model(graph({.nodes = {node(op, {in, "i"}, {"y"})},
                     .initializers = {initializer, tensor("c", 7, {3}, int64s({1, 2, 3}))}})));
  };
  EXPECT_NE(with("Gather", tensor("i", 7, {1}, int64s({99})), "x").find("index 99"),
            std::string::npos);
  EXPECT_NE(with("Gather", tensor("i", 7, {1}, int64s({-99})), "c").find("index -99"),
            std::string::npos);
  EXPECT_NE(with("Div", tensor("i", 7, {1}, int64s({0})), "c").find("by zero"), std::string::npos);
  EXPECT_NE(with("Mod", tensor("i", 7, {1}, int64s({0})), "c").find("by zero"), std::string::npos);
  EXPECT_EQ(with("Div", tensor("i", 7, {1}, int64s({-1})), "c"), "accepted");
}

TEST(HostileOnnx, DeepNestingIsRefused) {
  std::string body = graph({.nodes = {node("Relu", {"x"}, {"y"})}, .inputs = {}});
  for (int depth = 0; depth < 60; ++depth) {
    const auto branch = [&](std::string_view name) {
      return WireWriter().bytes(1, name).bytes(6, body).integer(20, 5).take();
    };
    body = graph({.nodes = {node("If", {"c"}, {"y"}, {branch("then_branch")})}, .inputs = {}});
  }
  const std::string nested = body;
  WireWriter top;
  top.bytes(1, node("If", {"c"}, {"y"},
                    {WireWriter().bytes(1, "then_branch").bytes(6, nested).integer(20, 5).take()}));
  top.bytes(5, tensor("c", 9, {1}, std::string(1, '\1')))
      .bytes(11, value("x", 1, {2, 3}))
      .bytes(12, value("y", 1, {2, 3}));
  EXPECT_NE(refusal(model(top.take())).find("deep"), std::string::npos);
}

TEST(HostileOnnx, EndlessLoopsAreRefused) {
  const std::string body =
      graph({.nodes = {node("Identity", {"go"}, {"go_on"}), node("Relu", {"v"}, {"w"})},
             .inputs = {value("i", 7, {}), value("go", 9, {}), value("v", 1, {2, 3})},
             .outputs = {value("go_on", 9, {}), value("w", 1, {2, 3})}});
  const std::string loop =
      node("Loop", {"n", "", "x"}, {"y"},
           {WireWriter().bytes(1, "body").bytes(6, body).integer(20, 5).take()});
  EXPECT_NE(refusal(model(graph(
                {.nodes = {loop}, .initializers = {tensor("n", 7, {}, int64s({INT64_MAX}))}}))),
            "accepted");
}

TEST(HostileOnnx, MillionsOfEmptyNodesStaySmall) {
  WireWriter parts;
  std::string nodes;
  for (int i = 0; i < 2'000'000; ++i) nodes += std::string("\x0a\x00", 2);
  const std::string file = model(nodes + graph({.nodes = {node("Relu", {"x"}, {"y"})}}));
  EXPECT_NE(refusal(file).find("more than"), std::string::npos);
}

TEST(HostileOnnx, ExternalDataCannotLeaveTheFolder) {
  const auto folder = fs::temp_directory_path() / fmt::format("plimsoll_hostile_{}", ::getpid());
  fs::create_directories(folder);
  const auto file_with = [&](const std::string& location, const std::string& length) {
    WireWriter w;
    w.integer(1, 4).integer(2, 1).bytes(8, "w");
    w.bytes(13, WireWriter().bytes(1, "location").bytes(2, location).take());
    if (!length.empty()) w.bytes(13, WireWriter().bytes(1, "length").bytes(2, length).take());
    w.integer(14, 1);
    return model(graph({.nodes = {node("Add", {"x", "w"}, {"y"})},
                        .initializers = {w.take()},
                        .inputs = {value("x", 1, {4})}}));
  };
  ASSERT_TRUE(write_file(folder / "good", std::string(16, '\0')));
  for (const auto& [location, length] :
       std::vector<std::pair<std::string, std::string>>{{"../good", ""},
                                                        {"/etc/hostname", ""},
                                                        {"missing", ""},
                                                        {"good", "9999999999999999"},
                                                        {"good", "-1"},
                                                        {"good", "8"}}) {
    ASSERT_TRUE(write_file(folder / "m.onnx", file_with(location, length)));
    EXPECT_FALSE(import_onnx(folder / "m.onnx")) << location << " " << length;
  }
  ASSERT_TRUE(write_file(folder / "m.onnx", file_with("good", "16")));
  const auto good = import_onnx(folder / "m.onnx");
  EXPECT_TRUE(good) << good.error().message;
  fs::remove_all(folder);
}

// Flipped bytes of a real export: an error or a graph, never a crash. The fuzzer goes further.
TEST(HostileOnnx, SurvivesDamage) {
  const auto path = test_source_dir() / "tests/onnx/exports/efficientnet.script.onnx";
  const auto whole = read_file(path);
  ASSERT_TRUE(whole);
  Random random(20240607);
  for (int i = 0; i < 300; ++i) {
    std::string damaged = *whole;
    for (int k = 0; k < 4; ++k) {
      damaged[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(damaged.size())))] =
          static_cast<char>(random.below(256));
    }
    (void)import_onnx_bytes(as_bytes(damaged));
  }
}

}  // namespace
}  // namespace plimsoll::model::onnx
