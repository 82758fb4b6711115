// JSON files that want to do harm, one test for each way in which a version of this program was
// harmed.
#include <functional>
#include <map>

#include <nlohmann/json.hpp>

#include "hostile/program_run.h"
#include "plimsoll/model/onnx/testing/file_pieces.h"

namespace plimsoll::hostile {
namespace {

using nlohmann::json;
namespace pieces = model::onnx::file_pieces;

constexpr int kDeep = 200'000;

std::string deep() {
  return std::string(kDeep, '[') + std::string(kDeep, ']');
}

class HostileJson : public ProgramRun {
 protected:
  // Every JSON file that the program reads, and a command that reads it.
  std::map<std::string, std::vector<std::string>> readers(
      const std::function<std::string(const std::string& kind)>& content) const {
    const auto at = [&](const std::string& kind, const char* name) {
      return file(name, content(kind));
    };
    return {{"packing problem", {"pack", at("packing problem", "problem.json")}},
            {"plan", {"check", at("plan", "plan.json")}},
            {"family", {"check", at("family", "family.json")}},
            {"sweep", {"view", at("sweep", "sweep.json"), "-o", (folder_ / "x.html").string()}},
            {"trace", {"replay", at("trace", "trace.jsonl")}},
            {"profile", {"plan", "exp-example", "--device", at("profile", "profile.json")}},
            {"dag", {"plan", "--dag", at("dag", "dag.json")}}};
  }

  // A plan that the program made, with one place of it replaced.
  std::string forged(const std::string& pointer, const json& value) const {
    const std::string path = (folder_ / "made.json").string();
    EXPECT_EQ(run({"plan", "mlp", "-o", path}).exit_code, 0);
    json plan = json::parse(read_file(path).value());
    plan.at(json::json_pointer(pointer)) = value;
    return file("forged.json", plan.dump());
  }

  void expect_every_verb_refuses(const std::string& plan, const std::string& why) const {
    expect_refused("check", {"check", plan}, "the plan is wrong");
    expect_refused("explain", {"explain", plan}, why);
    expect_refused("view", {"view", plan, "-o", (folder_ / "x.html").string()}, why);
    expect_refused("run", {"run", plan}, "");
  }
};

TEST_F(HostileJson, LifetimesThatLeadPastTheStepsOfAPlan) {
  for (const char* verb : {"view", "explain", "check", "diff"}) {
    const std::string plan = forged("/buffers/0/end", 1'000'000'000);
    std::vector<std::string> words{verb, plan};
    if (std::string_view(verb) == "view")
      words.insert(words.end(), {"-o", (folder_ / "x.html").string()});
    if (std::string_view(verb) == "diff") words.push_back(plan);
    expect_refused(verb, words, "is alive in steps [0, 1000000000)");
  }
  expect_refused(
      "a beginning behind the end",
      {"view", forged("/buffers/0/first", 2'000'000), "-o", (folder_ / "x.html").string()},
      "is alive in steps");
}

TEST_F(HostileJson, ForgedLifetimesAndProofs) {
  expect_every_verb_refuses(forged("/buffers/40/end", 22), "by its steps it is in");
  expect_every_verb_refuses(forged("/proof/load_bytes", 64), "bytes are alive, it is");
  expect_every_verb_refuses(forged("/proof/lower_bound", 64), "lower bound");
  expect_every_verb_refuses(forged("/proof/optimal", false), "optimal");
  expect_every_verb_refuses(forged("/predicted_seconds", 1e-9), "predicts");
  expect_every_verb_refuses(forged("/arenas/0/bytes", 1LL << 26), "the buffers in it reach");
  expect_every_verb_refuses(forged("/buffers/40/use", "weights"), "counts it as weights");
}

TEST_F(HostileJson, NestingOf200000LevelsWhereverItStands) {
  for (const auto& [kind, words] : readers([](const std::string&) { return deep(); }))
    expect_refused(kind, words, kind == "trace" || kind == "sweep" ? "" : "nested deeper than");
  expect_refused("a size of the packing",
                 {"pack", file("a.json", R"({"buffers": [{"size": )" + deep() + "}]}")},
                 "nested deeper than");
  expect_refused("an end of the packing",
                 {"pack", file("a.json", R"({"buffers": [{"size": 1, "end": )" + deep() + "}]}")},
                 "nested deeper than");
  expect_refused(
      "sources of a plan",
      {"check", file("a.json", R"({"kind": "plimsoll plan", "schema": 1, "sources": [[0, )" +
                                   deep() + ", 0]]}")},
      "nested deeper than");
  expect_refused(
      "members of a family",
      {"check",
       file("a.json", R"({"kind": "plimsoll family", "schema": 1, "option": "batch", "members": )" +
                          deep() + "}")},
      "nested deeper than");
  expect_refused(
      "frames of a trace",
      {"replay",
       file("a.jsonl", "{\"plimsoll_trace\":1}\n{\"kind\":\"stack\",\"frames\":" + deep() + "}\n")},
      "line 2, column 29: nested deeper than");
  expect_refused("points of a sweep",
                 {"view", file("a.json", R"({"points": )" + deep() + "}"), "-o",
                  (folder_ / "x.html").string()},
                 "nested deeper than");
}

TEST_F(HostileJson, EqualKeysNulBytesAndBytesThatAreNoUtf8) {
  const std::map<std::string, std::string> heads = {{"plan", R"("kind": "plimsoll plan")"},
                                                    {"family", R"("kind": "plimsoll family")"},
                                                    {"sweep", R"("points": [])"},
                                                    {"trace", R"("plimsoll_trace": 1)"}};
  const auto head = [&](const std::string& kind) {
    return heads.contains(kind) ? heads.at(kind) : R"("nodes": [])";
  };
  for (const auto& [kind, words] :
       readers([&](const std::string& kind) { return "{" + head(kind) + R"(, "a": 1, "a": 2})"; }))
    expect_refused(kind, words, "the key 'a' is there twice");
  for (const auto& [kind, words] :
       readers([&](const std::string& kind) { return "{" + head(kind) + ", \"a\xff\": 1}"; }))
    expect_refused(kind, words, "not UTF-8");
  for (const auto& [kind, words] : readers([&](const std::string& kind) {
         return "{" + head(kind) + "}" + std::string(1, '\0') + "x";
       }))
    expect_refused(kind, words, "not valid JSON");
}

TEST_F(HostileJson, SixtyThousandUnknownKeys) {
  std::string keys = "{";
  for (int i = 0; i < 60'000; ++i) keys += fmt::format("\"unknown{}\":{},", i, i);
  expect_refused("a packing problem", {"pack", file("a.json", keys + "\"buffers\":[]}")},
                 "unknown key");
  expect_refused("a buffer", {"pack", file("a.json", "{\"buffers\":[" + keys + "\"size\":1}]}")},
                 "unknown key");
  expect_refused("a DAG", {"plan", "--dag", file("a.json", keys + "\"nodes\":[]}")}, "unknown key");
}

// 40,000 buffers took 3.3 s, of which nearly all was looking for keys.
TEST_F(HostileJson, OffsetsOfManyBuffers) {
  const auto seconds = [&](int count) {
    std::string csv = "id,lower,upper,size\n";
    for (int i = 0; i < count; ++i) csv += fmt::format("buffer{},{},{},64\n", i, i, i + 2);
    const Outcome outcome = run({"pack", file("many.csv", csv), "--method", "skyline", "--deadline",
                                 "1ms", "-o", (folder_ / "offsets.json").string()});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
    EXPECT_EQ(json::parse(read_file(folder_ / "offsets.json").value())["offsets"].size(),
              static_cast<std::size_t>(count));
    return outcome.seconds;
  };
  const double taken = seconds(40'000);
  if (kSanitized) GTEST_SKIP() << "a sanitizer is slow";
  EXPECT_LT(taken, kMostSeconds);
}

TEST_F(HostileJson, NamesThatAreNotUtf8) {
  const std::string odd = "caf\xe9";
  const std::string path = file(
      "odd.onnx", pieces::model(pieces::graph(
                      {.nodes = {pieces::node("Add", {"x", odd}, {odd + "2"}),
                                 pieces::node("Relu", {odd + "2"}, {"y"})},
                       .initializers = {pieces::tensor(odd, 1, {2, 3}, std::string(24, '\0'))}})));
  for (const std::vector<std::string>& words : {std::vector<std::string>{"memory", path, "--json"},
                                                {"plan", path, "--json"},
                                                {"graph", path, "--json"}}) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.exit_code, 0) << words[0] << ": " << outcome.error;
    EXPECT_TRUE(json::accept(outcome.out)) << words[0];
  }
  // A plan is read back: its graph keeps every byte.
  const std::string plan = (folder_ / "odd.json").string();
  EXPECT_EQ(run({"plan", path, "-o", plan}).exit_code, 0);
  EXPECT_EQ(run({"check", plan}).exit_code, 0);
  EXPECT_EQ(run({"view", plan, "-o", (folder_ / "odd.html").string()}).exit_code, 0);
  const Outcome explained = run({"explain", plan, "--json"});
  EXPECT_EQ(explained.exit_code, 0) << explained.error;
  EXPECT_TRUE(json::accept(explained.out));
  EXPECT_NE(read_file(plan).value().find("caf\\\\xe9"), std::string::npos);
  // An id of a packing is what the file is read back by.
  const std::string csv = file("odd.csv", "id,lower,upper,size\ncaf\xe9,0,2,4\ncaf\xea,1,3,4\n");
  expect_refused("offsets as JSON", {"pack", csv, "-o", (folder_ / "offsets.json").string()},
                 "buffer 'caf\\xe9': its name is not UTF-8");
  EXPECT_EQ(run({"pack", csv, "-o", (folder_ / "offsets.csv").string()}).exit_code, 0);
  EXPECT_TRUE(json::accept(run({"pack", csv, "--json"}).out));
}

TEST_F(HostileJson, CostsThatAreNoSeconds) {
  for (const char* cost : {"1.6e12", "1e300", "1e-300", "0"}) {
    const std::string path =
        file("flops.json", fmt::format(R"({{"nodes": [{{"seconds": {0}, "bytes": 64}}, )"
                                       R"({{"seconds": {0}, "bytes": 64, "inputs": [0]}}, )"
                                       R"({{"bytes": 64, "inputs": [0, 1]}}]}})",
                                       cost));
    if (std::string_view(cost) == "1e300") {
      expect_refused(cost, {"plan", "--dag", path}, "choose a larger unit");
      continue;
    }
    const Outcome outcome = run({"plan", "--dag", path, "--deadline", "200ms", "--json"});
    EXPECT_EQ(outcome.exit_code, 0) << cost << ": " << outcome.error;
    const json said = json::parse(outcome.out);
    EXPECT_EQ(said["predicted_seconds"], 2 * std::stod(cost)) << cost;
    EXPECT_EQ(said["keep_all_seconds"], 2 * std::stod(cost)) << cost;
    const std::string text = run({"plan", "--dag", path, "--deadline", "200ms"}).out;
    EXPECT_EQ(text.find("e+12 s"), std::string::npos) << text;
  }
}

TEST_F(HostileJson, KeysOfADagThatNobodyReads) {
  expect_refused("a misspelt key",
                 {"plan", "--dag",
                  file("a.json", R"({"nodes": [{"name": "a"}, {"name": "b", "input": ["a"]}]})")},
                 "node 'b': unknown key `input`; did you mean `inputs`?");
  expect_refused(
      "a node-link graph whose sizes nobody finds",
      {"plan", "--dag",
       file("a.json",
            R"({"directed": true, "nodes": [{"id": 0, "mb": 3, "cost": 1}], "links": []})")},
      "node '0': has no size, which is one of `bytes`");
  expect_refused("edges with a weight",
                 {"plan", "--dag", file("a.json", R"({"nodes": [{"id": 0, "bytes": 3, "cost": 1},
                                               {"id": 1, "bytes": 3, "cost": 1}],
                                     "edges": [{"source": 0, "target": 1, "weight": 9}]})")},
                 "`edges` 0: unknown key `weight` (9)");
}

TEST_F(HostileJson, SchedulesOfADagThatLie) {
  const std::string dag =
      file("dag.json", R"({"nodes": [{"name": "a", "bytes": 8}, {"name": "b", "inputs": ["a"]}]})");
  const std::string path = (folder_ / "schedule.json").string();
  ASSERT_EQ(run({"plan", "--dag", dag, "-o", path}).exit_code, 0);
  EXPECT_EQ(run({"check", path}).exit_code, 0);
  const auto changed = [&](const char* key, const json& value) {
    json plan = json::parse(read_file(path).value());
    plan[key] = value;
    return file("forged_schedule.json", plan.dump());
  };
  for (const char* verb : {"check", "view", "explain"}) {
    expect_refused("another peak", {verb, changed("peak_bytes", 7)}, "wrong");
    expect_refused("another time", {verb, changed("seconds", 7)}, "wrong");
    expect_refused("a node that is not there",
                   {verb, changed("steps", json::parse(R"([{"compute": "z"}])"))},
                   "step 0: there is no node 'z'");
    expect_refused("a read of what is not there",
                   {verb, changed("steps", json::parse(R"([{"compute": "b"}])"))}, "wrong");
    expect_refused("no steps", {verb, changed("steps", 3)}, "`steps` must be an array");
    expect_refused("no graph", {verb, changed("nodes", nullptr)}, "`nodes`");
  }
}

TEST_F(HostileJson, IndexesOfPlanSetsThatLie) {
  const std::string plan = (folder_ / "member.json").string();
  EXPECT_EQ(run({"plan", "exp-example", "-o", plan}).exit_code, 0);
  const auto index = [&](const char* member) {
    return file(
        "family.json",
        fmt::format(
            R"({{"kind": "plimsoll family", "schema": 1, "option": "batch", "members": [{}]}})",
            member));
  };
  expect_refused("a file elsewhere", {"check", index(R"({"size": 1, "file": "../member.json"})")},
                 "expects a name beside the index");
  expect_refused("another arena",
                 {"check", index(R"({"size": 1, "file": "member.json", "arena_bytes": 1})")},
                 "the index");
  expect_refused(
      "one size twice",
      {"check", index(R"({"size": 1, "file": "member.json"}, {"size": 1, "file": "member.json"})")},
      "two members have the size 1");
}

}  // namespace
}  // namespace plimsoll::hostile
