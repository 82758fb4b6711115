#include "plimsoll/store/weights_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "plimsoll/base/checksum64.h"
#include "plimsoll/base/random.h"
#include "plimsoll/base/testing/test_paths.h"
#include "plimsoll/codec/weights/block_weights.h"
#include "plimsoll/codec/weights/weight_codec.h"
#include "plimsoll/store/npz.h"
#include "plimsoll/store/plim_file.h"
#include "plimsoll/store/testing/arrays.h"

namespace plimsoll::store {
namespace {

const std::filesystem::path kFiles = test_source_dir() / "src/plimsoll/store/testdata";

std::vector<std::byte> read_all(const WeightsFile& file, const std::string& name) {
  const WeightTensor* tensor = file.find(name);
  EXPECT_NE(tensor, nullptr) << name;
  if (tensor == nullptr) return {};
  std::vector<std::byte> out(tensor->bytes);
  const Status read = file.read_into(*tensor, out);
  EXPECT_TRUE(read) << (read ? "" : read.error().message);
  // The two ways to read agree.
  std::vector<std::byte> pieces;
  EXPECT_TRUE(file.for_chunks(*tensor, [&](std::span<const std::byte> piece) -> Status {
    pieces.insert(pieces.end(), piece.begin(), piece.end());
    return {};
  }));
  EXPECT_EQ(pieces, out) << name;
  return out;
}
std::vector<float> read_floats(const WeightsFile& file, const std::string& name) {
  const auto bytes = read_all(file, name);
  std::vector<float> out(bytes.size() / 4);
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}
std::vector<float> array(const NpzFile& file, const std::string& name) {
  const NpzEntry* entry = file.find(name);
  EXPECT_NE(entry, nullptr) << name;
  const auto read = file.read(*entry);
  EXPECT_TRUE(read);
  std::vector<float> out(read->bytes.size() / 4);
  std::memcpy(out.data(), read->bytes.data(), read->bytes.size());
  return out;
}
std::vector<std::uint8_t> byte_array(const NpzFile& file, const std::string& name) {
  const auto read = file.read(*file.find(name));
  EXPECT_TRUE(read);
  std::vector<std::uint8_t> out(read->bytes.size());
  std::memcpy(out.data(), read->bytes.data(), out.size());
  return out;
}

// The PyPI package `gguf` wrote the file and decoded the blocks.
TEST(WeightsFile, DecodesTheBlocksOfGgufAsItsOwnPackageDoes) {
  const auto file = WeightsFile::open(kFiles / "blocks.gguf");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->format(), "gguf");
  const auto expected = NpzFile::open(kFiles / "blocks.npz");
  ASSERT_TRUE(expected);
  EXPECT_EQ(read_floats(*file, "plain"), array(*expected, "values"));
  EXPECT_EQ(file->find("plain")->dims, (std::vector<std::uint64_t>{2, 256}));
  for (const std::string kind : {"Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K"}) {
    const auto is = read_floats(*file, kind);
    const auto should = array(*expected, kind);
    ASSERT_EQ(is.size(), should.size()) << kind;
    for (std::size_t i = 0; i < is.size(); ++i)
      ASSERT_NEAR(is[i], should[i], 1e-6f * (1 + std::fabs(should[i]))) << kind << " " << i;
  }
  EXPECT_EQ(file->find("F16")->element, Element::kF16);
  EXPECT_EQ(file->find("BF16")->element, Element::kBF16);
}

// The F16 tensor of the file as one of no rows, in blocks that are not decoded here.
TEST(WeightsFile, ReadsTensorsWithoutValuesOfAnyKind) {
  const auto file = MappedFile::open(kFiles / "blocks.gguf");
  ASSERT_TRUE(file);
  std::vector<std::byte> bytes(file->bytes().begin(), file->bytes().end());
  const std::string_view header("F16\2\0\0\0", 7);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::byte* const at = bytes.data() + text.find(header) + header.size();
  const std::uint64_t dims[] = {256, 0};
  const std::uint32_t kind = 10;
  std::memcpy(at, dims, sizeof dims);
  std::memcpy(at + sizeof dims, &kind, sizeof kind);
  const auto edited = WeightsFile::from_bytes(bytes);
  ASSERT_TRUE(edited) << edited.error().message;
  EXPECT_EQ(edited->find("F16")->form, "Q2_K");
  EXPECT_TRUE(read_all(*edited, "F16").empty());
}

TEST(WeightsFile, EncodesQ8AndQ4ToTheBytesOfGguf) {
  const auto expected = NpzFile::open(kFiles / "blocks.npz");
  ASSERT_TRUE(expected);
  const auto values = array(*expected, "values");
  for (const auto& [form, kind] : {std::pair("q8_0", "Q8_0"), std::pair("q4_0", "Q4_0")}) {
    const auto parsed = parse_form(form);
    ASSERT_TRUE(parsed);
    const std::uint64_t dims[] = {2, 256};
    const Chunk chunk =
        encode_chunk(*parsed, Element::kF32, dims, 0, std::as_bytes(std::span(values)));
    EXPECT_EQ(chunk.form, *parsed);
    const auto bytes = byte_array(*expected, std::string(kind) + ".bytes");
    ASSERT_EQ(chunk.bytes.size(), bytes.size());
    EXPECT_EQ(std::memcmp(chunk.bytes.data(), bytes.data(), bytes.size()), 0) << form;
  }
}

// bitsandbytes quantized and decoded.
TEST(WeightsFile, Nf4AgreesWithBitsandbytes) {
  const auto expected = NpzFile::open(kFiles / "nf4.npz");
  ASSERT_TRUE(expected);
  const auto values = array(*expected, "values");
  const auto packed = byte_array(*expected, "packed");
  const auto largest = array(*expected, "largest");
  const auto form = parse_form("nf4");
  ASSERT_TRUE(form);
  const std::uint64_t dims[] = {1, values.size()};
  const Chunk chunk = encode_chunk(*form, Element::kF32, dims, 0, std::as_bytes(std::span(values)));
  ASSERT_EQ(chunk.bytes.size(), values.size() / 64 * 36);
  for (std::size_t block = 0; block < values.size() / 64; ++block) {
    float scale;
    std::memcpy(&scale, chunk.bytes.data() + 36 * block, 4);
    EXPECT_EQ(scale, largest[block]);
    EXPECT_EQ(std::memcmp(chunk.bytes.data() + 36 * block + 4, packed.data() + 32 * block, 32), 0)
        << block;
  }
  std::vector<float> back(values.size());
  ASSERT_TRUE(decode_chunk(*form, Element::kF32, dims, 0, chunk.bytes,
                           std::as_writable_bytes(std::span(back))));
  EXPECT_EQ(back, array(*expected, "decoded"));
}

TEST(WeightsFile, ReadsTensorsOfTorchHoweverTheyLie) {
  const auto file = WeightsFile::open(kFiles / "model.pt");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->format(), "torch");
  std::set<std::string> names;
  for (const auto& tensor : file->tensors()) names.insert(tensor.name);
  EXPECT_EQ(names, (std::set<std::string>{"model.plain", "model.transposed", "model.part",
                                          "model.tied", "model.half", "model.bytes", "model.empty",
                                          "model.scalar", "model.eight", "list.0"}));
  std::vector<float> plain(24);
  for (std::size_t i = 0; i < 24; ++i) plain[i] = static_cast<float>(i);
  EXPECT_EQ(read_floats(*file, "model.plain"), plain);
  EXPECT_EQ(read_floats(*file, "model.tied"), plain);
  EXPECT_EQ(read_floats(*file, "list.0"), std::vector<float>(plain.begin(), plain.begin() + 6));
  EXPECT_EQ(read_floats(*file, "model.part"), (std::vector<float>{8, 9, 10, 14, 15, 16}));
  const auto transposed = read_floats(*file, "model.transposed");
  EXPECT_EQ(file->find("model.transposed")->dims, (std::vector<std::uint64_t>{6, 4}));
  for (std::size_t i = 0; i < 24; ++i) EXPECT_EQ(transposed[i], plain[i % 4 * 6 + i / 4]);
  EXPECT_EQ(file->find("model.empty")->bytes, 0u);
  EXPECT_EQ(file->find("model.scalar")->element, Element::kF64);
  EXPECT_EQ(file->find("model.eight")->element, Element::kF8E4M3);
  EXPECT_EQ(file->find("model.half")->element, Element::kBF16);
}

TEST(WeightsFile, OpensSafetensorsAndNpz) {
  const auto types = WeightsFile::open(kFiles / "types.safetensors");
  ASSERT_TRUE(types);
  EXPECT_EQ(types->format(), "safetensors");
  EXPECT_EQ(types->tensors().size(), 29u);
  EXPECT_EQ(read_floats(*types, "f4.0"), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  const auto archive = WeightsFile::open(kFiles / "blocks.npz");
  ASSERT_TRUE(archive);
  EXPECT_EQ(archive->format(), "npz");
  EXPECT_EQ(read_floats(*archive, "values").size(), 512u);
  EXPECT_EQ(archive->find("nothing"), nullptr);
}

// Everything that is read, edited anyhow: an error or tensors that lie where they should.
TEST(WeightsFile, SurvivesEveryEditOfEveryFormat) {
  Random random(21);
  for (const std::string name : {"blocks.gguf", "model.pt", "nf4.npz", "types.safetensors"}) {
    const auto file = MappedFile::open(kFiles / name);
    ASSERT_TRUE(file);
    int opened = 0;
    int refused = 0;
    for (int round = 0; round < 600; ++round) {
      std::vector<std::byte> bytes(file->bytes().begin(), file->bytes().end());
      // Mostly where formats describe themselves: the first kilobyte and the last.
      for (std::int64_t i = random.between(1, 3); i > 0; --i) {
        const auto near = static_cast<std::size_t>(random.below(1200)) % bytes.size();
        bytes[random.chance(0.5) ? near : bytes.size() - 1 - near] =
            static_cast<std::byte>(random.below(256));
      }
      if (random.chance(0.1))
        bytes.resize(
            static_cast<std::size_t>(random.below(static_cast<std::int64_t>(bytes.size()))));
      const auto edited = WeightsFile::from_bytes(bytes);
      ++(edited ? opened : refused);
      if (!edited) continue;
      for (const WeightTensor& tensor : edited->tensors()) {
        if (tensor.bytes > (1u << 20)) continue;
        std::vector<std::byte> out(tensor.bytes);
        (void)edited->read_into(tensor, out);
      }
    }
    EXPECT_GE(opened, 20) << name;
    EXPECT_GE(refused, 20) << name;
  }
}

// ---- .plim

std::vector<float> noise(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> out(count);
  for (float& value : out) value = static_cast<float>(0.02 * random.normal());
  return out;
}

std::filesystem::path write_plim(std::string_view form_name, const std::vector<float>& values,
                                 std::uint64_t columns) {
  const auto form = parse_form(form_name);
  EXPECT_TRUE(form);
  std::string file_name = "form.plim";
  auto path = std::filesystem::path(testing::TempDir()) / file_name;
  auto writer = PlimWriter::create(path);
  EXPECT_TRUE(writer);
  const std::vector<std::uint64_t> dims = {values.size() / columns, columns};
  EXPECT_TRUE(writer->begin("w", Element::kF32, *form, dims));
  const auto bytes = std::as_bytes(std::span(values));
  for (std::uint64_t i = 0; i < chunks_of(bytes.size()); ++i)
    EXPECT_TRUE(writer->put(
        encode_chunk(*form, Element::kF32, dims, i,
                     bytes.subspan(i * codec::kChunkBytes, chunk_bytes(bytes.size(), i)))));
  EXPECT_TRUE(writer->begin("empty", Element::kF16, Form::kRaw, {0}));
  EXPECT_TRUE(writer->begin("b", Element::kI64, Form::kRaw, {}));
  EXPECT_TRUE(writer->put({Form::kRaw, std::vector<std::byte>(8, std::byte{7})}));
  EXPECT_TRUE(writer->commit("{}"));
  return path;
}

TEST(PlimFile, GivesBackTensorsInEveryForm) {
  const auto values = noise(70'000 * 3, 5);
  for (const Form form : all_forms()) {
    const auto path = write_plim(name(form), values, 700);
    const auto file = WeightsFile::open(path);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->format(), "plim");
    EXPECT_EQ(file->source_header(), "{}");
    EXPECT_EQ(file->find("w")->form, name(form));
    EXPECT_EQ(file->find("empty")->bytes, 0u);
    EXPECT_EQ(read_all(*file, "b"), std::vector<std::byte>(8, std::byte{7}));
    const auto back = read_floats(*file, "w");
    ASSERT_EQ(back.size(), values.size());
    FormError error;
    error.add(Element::kF32, std::as_bytes(std::span(values)), std::as_bytes(std::span(back)));
    EXPECT_FALSE(error.not_finite);
    if (is_lossless(form)) {
      EXPECT_EQ(back, values) << name(form);
    } else {
      EXPECT_LT(error.rms_error(), name(form) == "ternary" ? 0.6
                                   : name(form) == "2:4"   ? 0.5
                                                           : 0.12)
          << name(form);
      EXPECT_GT(error.cosine(), 0.85) << name(form);
    }
    std::vector<std::byte> last;
    ASSERT_TRUE(file->read_chunk(*file->find("w"), 3, last));
    EXPECT_EQ(last.size(), values.size() * 4 - 3 * codec::kChunkBytes);
    EXPECT_EQ(std::memcmp(last.data(), back.data() + 3 * codec::kChunkBytes / 4, last.size()), 0);
    // A raw tensor is mapped from a page on.
    if (form == Form::kRaw) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file->find("w")->mapped.data()) % 4096, 0u);
    }
  }
}

// Of every kind of reader, by every method: what read_into() gives of each alone.
TEST(WeightsFile, ReadsManyTensorsAtOnce) {
  std::vector<std::filesystem::path> paths = {kFiles / "blocks.gguf", kFiles / "model.pt",
                                              kFiles / "types.safetensors", kFiles / "blocks.npz"};
  for (const char* form : {"raw", "q8_0", "archive", "bf16-lossless"})
    paths.push_back(write_plim(form, noise(70'000 * 3, 5), 700));
  for (const auto& path : paths) {
    SCOPED_TRACE(path);
    auto file = WeightsFile::open(path);
    ASSERT_TRUE(file) << file.error().message;
    std::vector<std::vector<std::byte>> alone;
    for (const WeightTensor& tensor : file->tensors()) {
      alone.emplace_back(tensor.bytes);
      ASSERT_TRUE(file->read_into(tensor, alone.back()));
    }
    for (const ReadMethod method : {ReadMethod::kCached, ReadMethod::kDirect}) {
      file->set_read_method(method);
      std::vector<std::vector<std::byte>> memory;
      std::vector<WeightsFile::Wanted> wanted;
      for (const WeightTensor& tensor : file->tensors()) memory.emplace_back(tensor.bytes);
      for (std::size_t i = 0; i < memory.size(); ++i)
        wanted.push_back({&file->tensors()[i], memory[i], false});
      const Status read = file->read_all(wanted);
      ASSERT_TRUE(read) << read.error().message;
      EXPECT_EQ(memory, alone);
    }
  }
}

TEST(PlimFile, FindsDamageOfTensorsThatAreReadTogether) {
  for (const char* form : {"raw", "q8_0"}) {
    const auto path = write_plim(form, noise(70'000 * 3, 5), 700);
    auto content = read_file(path);
    ASSERT_TRUE(content);
    (*content)[300'000 / (form == std::string_view("raw") ? 1 : 4)] ^= 4;
    ASSERT_TRUE(write_file(path, *content));
    auto file = WeightsFile::open(path);
    ASSERT_TRUE(file) << file.error().message;
    const WeightTensor& tensor = *file->find("w");
    std::vector<std::byte> out(tensor.bytes);
    const WeightsFile::Wanted wanted{&tensor, out, false};
    for (const ReadMethod method : {ReadMethod::kCached, ReadMethod::kDirect}) {
      file->set_read_method(method);
      const Status read = file->read_all({&wanted, 1});
      ASSERT_FALSE(read) << form;
      EXPECT_NE(read.error().message.find("its checksum is wrong"), std::string::npos);
      EXPECT_EQ(read.error().message.find(path.string()), 0u) << "which file";
    }
    const Status visited = file->for_chunks(tensor, [](auto) { return Status(); });
    ASSERT_FALSE(visited);
    EXPECT_EQ(visited.error().message.find(path.string()), 0u) << "which file";
    if (file->encoded_bytes(tensor) == 0) continue;
    std::vector<std::byte> kept(file->encoded_bytes(tensor));
    const WeightsFile::Wanted encoded{&tensor, kept, true};
    EXPECT_FALSE(file->read_all({&encoded, 1}));
  }
}

TEST(PlimFile, FindsDamage) {
  const auto path = write_plim("q8_0", noise(5000, 1), 50);
  const auto content = read_file(path);
  ASSERT_TRUE(content);
  const std::vector<std::byte> right = bytes_of(*content);
  Random random(4);
  int at_opening = 0;
  int at_reading = 0;
  for (int round = 0; round < 800; ++round) {
    auto bytes = right;
    // Anywhere but in the padding, which nobody reads.
    const auto place = static_cast<std::size_t>(
        random.chance(0.5) ? random.between(4096, 4096 + 5000)
                           : random.between(static_cast<std::int64_t>(bytes.size()) - 150,
                                            static_cast<std::int64_t>(bytes.size()) - 1));
    bytes[place] ^= static_cast<std::byte>(random.between(1, 255));
    const auto file = WeightsFile::from_bytes(bytes);
    if (!file) {
      ++at_opening;
      continue;
    }
    std::vector<std::byte> out(20000);
    ASSERT_FALSE(file->read_into(*file->find("w"), out)) << place;
    ++at_reading;
  }
  EXPECT_GE(at_opening, 300);
  EXPECT_GE(at_reading, 300);
  for (std::size_t size : {std::size_t{0}, std::size_t{100}, std::size_t{4160}, right.size() - 1})
    EXPECT_FALSE(WeightsFile::from_bytes(std::span(right).first(size))) << size;
}

// An attacker can make checksums right too: then the forms defend themselves.
TEST(PlimFile, SurvivesEditsWithRightChecksums) {
  Random random(8);
  int opened = 0;
  for (const std::string form : {"csr", "bf16-lossless", "ternary", "archive"}) {
    auto values = noise(3000, 2);
    for (float& value : values) {
      std::uint32_t bits;
      std::memcpy(&bits, &value, 4);
      bits &= 0xffff0000u;
      std::memcpy(&value, &bits, 4);
    }
    for (std::size_t i = 0; i < values.size(); ++i)
      if (i % 3 != 0) values[i] = 0;
    const auto content = read_file(write_plim(form, values, 30));
    ASSERT_TRUE(content);
    for (int round = 0; round < 200; ++round) {
      auto bytes = bytes_of(*content);
      const std::size_t end = bytes.size() - 64;
      std::uint64_t begin;
      std::memcpy(&begin, bytes.data() + end + 8, 8);
      const auto edit = [&](std::size_t low, std::size_t high) {
        bytes[static_cast<std::size_t>(
            random.between(static_cast<std::int64_t>(low), static_cast<std::int64_t>(high) - 1))] =
            static_cast<std::byte>(random.below(256));
      };
      if (random.chance(0.5)) edit(begin, end);
      if (random.chance(0.7)) edit(4096, 4096 + 64);
      // The first tensor's only chunk record: name 1, three bytes, two extents, length and form.
      const std::size_t record = begin + 4 + 1 + 3 + 16;
      std::uint32_t stored;
      std::memcpy(&stored, bytes.data() + record, 4);
      if (4096 + std::uint64_t{stored} <= begin) {
        const std::uint64_t sum = checksum64(std::span(bytes).subspan(4096, stored));
        std::memcpy(bytes.data() + record + 5, &sum, 8);
      }
      const std::uint64_t index = checksum64(std::span(bytes).subspan(begin, end - begin));
      std::memcpy(bytes.data() + end + 24, &index, 8);
      const std::uint64_t trailer = checksum64(std::span(bytes).subspan(end, 56));
      std::memcpy(bytes.data() + end + 56, &trailer, 8);
      const auto file = WeightsFile::from_bytes(bytes);
      if (!file) continue;
      ++opened;
      for (const WeightTensor& tensor : file->tensors()) {
        if (tensor.bytes > (1u << 22)) continue;
        std::vector<std::byte> out(tensor.bytes);
        (void)file->read_into(tensor, out);
      }
    }
  }
  EXPECT_GE(opened, 100);
}

// Values of the reference implementation.
TEST(Checksum, IsXxh64) {
  EXPECT_EQ(checksum64({}), 0xef46db3751d8e999ULL);
  EXPECT_EQ(checksum64(bytes_of("a")), 0xd24ec4f1a98c6e5bULL);
  EXPECT_EQ(checksum64(bytes_of("The quick brown fox jumps over the lazy dog")),
            0x0b242d361fda71bcULL);
}

TEST(FormErrors, MeasureAgainstTheLargestValue) {
  const std::vector<float> was = {1, -2, 0};
  const std::vector<float> is = {1, -1.5f, 0};
  FormError error;
  error.add(Element::kF32, std::as_bytes(std::span(was)), std::as_bytes(std::span(is)));
  EXPECT_DOUBLE_EQ(error.max_error(), 0.25);
  EXPECT_DOUBLE_EQ(error.rms_error(), 0.5 / std::sqrt(5.0));
  EXPECT_NEAR(error.cosine(), 4.0 / (std::sqrt(5.0) * std::sqrt(3.25)), 1e-12);
}

}  // namespace
}  // namespace plimsoll::store
