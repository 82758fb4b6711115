// Archives and snapshots that want to do harm, given to the program itself: exit code 3 and one
// line, in less than a second of processor time and less than 200 MB, both measured by the kernel
// (wait4).
#include <string>
#include <vector>

#include "hostile/program_run.h"
#include "plimsoll/model/onnx/testing/file_pieces.h"
#include "plimsoll/store/testing/zip_pieces.h"

namespace plimsoll::hostile {
namespace {

namespace fs = std::filesystem;
namespace zip = store::zip_pieces;
using namespace std::string_literals;

class HostileArchives : public ProgramRun {};

constexpr std::uint64_t kBomb = 400'000'000;

zip::Part bomb(const std::string& name) {
  static const std::string header = zip::npy_header(fmt::format("({},)", kBomb / 4));
  static const std::string packed = zip::deflated(header, kBomb);
  return {name, packed, header.size() + kBomb};
}

// 2,001 names for one stream: half a megabyte that would be 0.8 TB.
TEST_F(HostileArchives, MembersThatShareOneStream) {
  std::vector<zip::Part> parts{bomb("layers.0.weight.npy")};
  for (int i = 0; i < 2000; ++i) {
    parts.push_back(
        {fmt::format("again.{}.npy", i), "", parts[0].size, 8, 0, 0, parts[0].packed.size()});
  }
  std::string bytes = zip::zip_of(parts);
  ASSERT_LT(bytes.size(), 1'000'000u);
  const std::string path = file("shared.npz", bytes);
  for (const char* option : {"--weights", "--resume", "--data", "--inputs"}) {
    expect_refused(option, {"run", "mlp", "--steps", "1", option, path}, "share bytes of the file");
  }
}

// Nothing wrong with the archive, but with what it would make: 400 KB to 400 MB, under names that
// the model has.
TEST_F(HostileArchives, ArraysThatTheModelHasNoRoomFor) {
  const std::string path = file("bomb.npz", zip::zip_of({bomb("layers.0.weight.npy"), bomb("x.npy"),
                                                         bomb("labels.npy"), bomb("other.npy")}));
  ASSERT_LT(fs::file_size(path), 2'000'000u);
  expect_refused(
      "weights",
      {"--log-level", "error", "run", "mlp", "--steps", "1", "--allow-missing", "--weights", path},
      "the model expects");
  expect_refused("resume", {"run", "mlp", "--steps", "1", "--resume", path}, "the model expects");
  expect_refused("data", {"run", "mlp", "--steps", "1", "--data", path}, "");
  namespace onnx = model::onnx::file_pieces;
  const std::string model_file =
      file("m.onnx", onnx::model(onnx::graph({.nodes = {onnx::node("Relu", {"x"}, {"y"})}})));
  expect_refused("inputs", {"run", model_file, "--inputs", path}, "");
}

TEST_F(HostileArchives, HeadersThatLie) {
  const std::string header = zip::npy_header("(8,)");
  expect_refused(
      "a size beyond deflate",
      {"run", "mlp", "--weights",
       file("a.npz", zip::zip_of({{"a.npy", zip::deflated(header, 32), 4'000'000'000}}))},
      "packed ones");
  std::string version2("\x93NUMPY\x02\x00\xff\xff\xff\x7f", 12);
  expect_refused(
      "a header of 2 GiB",
      {"run", "mlp", "--weights",
       file("b.npz", zip::zip_of({zip::stored("a.npy", version2 + std::string(100, ' '))}))},
      "at most 16384");
}

void put_string(std::string& out, const std::string& text) {
  out += 'X';
  zip::put(out, text.size(), 4);
  out += text;
}

// One list of blocks under every segment: 660 KB that became 588 MB.
TEST_F(HostileArchives, SegmentsThatShareOneListOfBlocks) {
  std::string out = "\x80\x04}("s;
  put_string(out, "segments");
  out += "](";
  for (int segment = 0; segment < 5000; ++segment) {
    out += "}(";
    put_string(out, "total_size");
    out += "K\x64";
    put_string(out, "blocks");
    if (segment > 0) {
      out += "h\x00"s;
    } else {
      out += "](";
      for (int block = 0; block < 10000; ++block) {
        out += "}(";
        put_string(out, "state");
        put_string(out, "inactive");
        put_string(out, "size");
        out += "K\x01u";
      }
      out += "e\x94";
    }
    out += "u";
  }
  out += "eu.";
  ASSERT_LT(out.size(), 1'000'000u);
  const std::string path = file("segments.pickle", out);
  expect_refused("replay", {"replay", path}, "several segments");
  expect_refused("view", {"view", path, "-o", (folder_ / "r.html").string()}, "several segments");
  expect_refused("convert", {"convert", path, "-o", (folder_ / "t.jsonl").string()},
                 "several segments");
}

// One list of events under every device, 100,000 of them: quadratic, 4 s for 750 KB.
TEST_F(HostileArchives, DevicesThatShareOneListOfEvents) {
  std::string out = "\x80\x04}("s;
  put_string(out, "device_traces");
  out += "](](";
  for (int event = 0; event < 15000; ++event) {
    out += "}(";
    put_string(out, "action");
    put_string(out, "alloc");
    put_string(out, "size");
    out += "K\x01u";
  }
  out += "e\x94";
  for (int device = 1; device < 100'000; ++device) out += "h\x00"s;
  out += "eu.";
  ASSERT_LT(out.size(), 1'000'000u);
  const std::string path = file("devices.pickle", out);
  expect_refused("replay", {"replay", path}, "several devices");
  // The same with lists of their own, more than there are devices.
  std::string many = "\x80\x04}("s;
  put_string(many, "device_traces");
  many += "](";
  for (int device = 0; device < 100'000; ++device) many += "]";
  many += "eu.";
  expect_refused("100,000 devices", {"replay", file("many.pickle", many)}, "4096 devices");
}

// One stack of frames for every event is right and small; written again it stays small.
TEST_F(HostileArchives, AStackThatManyEventsShareStaysShared) {
  std::string out = "\x80\x04}("s;
  put_string(out, "device_traces");
  out += "](](";
  for (int event = 0; event < 5000; ++event) {
    out += "}(";
    put_string(out, "action");
    put_string(out, "alloc");
    put_string(out, "addr");
    out += "M";
    zip::put(out, static_cast<std::uint64_t>(event), 2);
    put_string(out, "frames");
    if (event > 0) {
      out += "h\x00"s;
    } else {
      out += "](";
      for (int frame = 0; frame < 5000; ++frame) {
        out += "}(";
        put_string(out, "filename");
        put_string(out, "a.py");
        put_string(out, "line");
        out += "M";
        zip::put(out, static_cast<std::uint64_t>(frame), 2);
        out += "u";
      }
      out += "e\x94";
    }
    out += "u";
  }
  out += "eeu.";
  ASSERT_LT(out.size(), 1'000'000u);
  const std::string to = (folder_ / "again.pickle").string();
  const Outcome outcome = run({"convert", file("stacks.pickle", out), "-o", to});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
  EXPECT_LT(fs::file_size(to), 2'000'000u);
  if (kSanitized) return;
  EXPECT_LT(outcome.seconds, kMostSeconds);
  EXPECT_LT(outcome.kilobytes, kMostKilobytes);
}

}  // namespace
}  // namespace plimsoll::hostile
