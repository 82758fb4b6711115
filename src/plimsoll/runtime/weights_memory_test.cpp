// What reading weights takes beside the memory they are read to: a budget sets it aside, so it must
// be true, and not much more than the truth.
#include <gtest/gtest.h>

#include <cstring>

#include <fmt/format.h>

#include "plimsoll/base/random.h"
#include "plimsoll/base/testing/scratch_folder.h"
#include "plimsoll/codec/weights/float_values.h"
#include "plimsoll/codec/weights/weight_codec.h"
#include "plimsoll/runtime/outside_bytes.h"
#include "plimsoll/store/plim_file.h"
#include "plimsoll/store/safetensors.h"
#include "plimsoll/store/weights_file.h"

namespace plimsoll::runtime {
namespace {

using store::Element;
using store::Form;
using store::WeightsFile;

constexpr std::uint64_t kSide = 512;  // four chunks of fp32

// Nine in ten are zero, and the others have sixteen bits: every form has something to gain.
std::vector<std::byte> sparse_values(Element element) {
  Random random(3);
  std::vector<float> values(kSide * kSide);
  for (float& value : values)
    value = random.chance(0.1) ? static_cast<float>(random.between(-40, 40)) / 64 : 0.0f;
  const auto kind = element == Element::kF32   ? codec::WeightKind::kF32
                    : element == Element::kF16 ? codec::WeightKind::kF16
                                               : codec::WeightKind::kBF16;
  std::vector<std::byte> out(values.size() * (element == Element::kF32 ? 4 : 2));
  codec::from_floats(values, kind, out);
  return out;
}

class WeightsMemory : public ::testing::Test {
 protected:
  Result<WeightsFile> plain(Element element, const std::vector<std::byte>& values) const {
    std::vector<store::SafetensorsEntry> entries = {{"w", element, dims_, 0, 0}};
    PLIMSOLL_RETURN_IF_ERROR(store::place_safetensors(entries));
    PLIMSOLL_TRY(const std::string header, store::safetensors_header(entries, {}));
    PLIMSOLL_TRY(auto writer, store::SafetensorsWriter::create(folder_ / "w.safetensors", header));
    PLIMSOLL_RETURN_IF_ERROR(writer.write(values));
    PLIMSOLL_RETURN_IF_ERROR(writer.commit());
    return WeightsFile::open(folder_ / "w.safetensors");
  }
  Result<WeightsFile> encoded(Form form, Element element,
                              const std::vector<std::byte>& values) const {
    PLIMSOLL_TRY(auto writer, store::PlimWriter::create(folder_ / "w.plim"));
    PLIMSOLL_RETURN_IF_ERROR(writer.begin("w", element, form, dims_));
    for (std::uint64_t i = 0; i < store::chunks_of(values.size()); ++i)
      PLIMSOLL_RETURN_IF_ERROR(writer.put(
          store::encode_chunk(form, element, dims_, i,
                              std::span(values).subspan(i * codec::kChunkBytes,
                                                        store::chunk_bytes(values.size(), i)))));
    PLIMSOLL_RETURN_IF_ERROR(writer.commit("{}"));
    return WeightsFile::open(folder_ / "w.plim");
  }

  const std::vector<std::uint64_t> dims_ = {kSide, kSide};
  ScratchFolder folder_{"weights_memory"};
};

template <typename Work>
std::uint64_t peak_of(Work work) {
  const OutsideBytes outside;
  const Status done = work();
  EXPECT_TRUE(done) << (done ? "" : done.error().message);
  return static_cast<std::uint64_t>(outside.peak().value);
}

TEST_F(WeightsMemory, IsWhatIsSetAsideForIt) {
  if (!OutsideBytes::available()) GTEST_SKIP() << "sanitizers bring an allocator of their own";
  int forms = 0;
  std::uint64_t most_reading = 0;
  std::uint64_t most_encoding = 0;
  for (const Element element : {Element::kF32, Element::kBF16, Element::kF16}) {
    const std::vector<std::byte> values = sparse_values(element);
    const auto from = plain(element, values);
    ASSERT_TRUE(from) << from.error().message;
    for (const Form form : store::all_forms()) {
      if (!store::takes(form, element, dims_)) continue;
      SCOPED_TRACE(fmt::format("{} of {}", store::name(form), store::name(element)));
      ++forms;
      auto file = encoded(form, element, values);
      ASSERT_TRUE(file) << file.error().message;
      file->prepare_decoding();
      const store::WeightTensor& tensor = *file->find("w");
      std::vector<std::byte> out(tensor.bytes);
      const std::uint64_t reading = peak_of([&] { return file->read_into(tensor, out); });
      EXPECT_LE(reading, file->reading_bytes(tensor));
      const std::uint64_t visiting =
          peak_of([&] { return file->for_chunks(tensor, [](auto) { return Status(); }); });
      EXPECT_LE(visiting, file->visiting_bytes(tensor));
      if (element == Element::kF32) most_reading = std::max(most_reading, visiting);
      const std::uint64_t bytes = file->encoded_bytes(tensor);
      if (bytes == 0) continue;
      std::vector<std::byte> kept(bytes);
      EXPECT_LE(peak_of([&] { return file->read_encoded(tensor, kept); }),
                file->reading_bytes(tensor));
      const store::WeightTensor& whole = *from->find("w");
      store::FormError error;
      const std::uint64_t encoding =
          peak_of([&] { return from->encode_into(whole, form, kept, error); });
      EXPECT_LE(encoding, from->visiting_bytes(whole) + from->encoding_bytes(whole));
      if (element == Element::kF32) most_encoding = std::max(most_encoding, encoding);
    }
  }
  EXPECT_GE(forms, 30);
  // Not much more than the truth: a small budget must not pay for what nobody takes.
  EXPECT_GE(most_reading, 2 * codec::kChunkBytes);
  const auto file = plain(Element::kF32, sparse_values(Element::kF32));
  ASSERT_TRUE(file);
  const store::WeightTensor& whole = *file->find("w");
  EXPECT_GE(most_encoding + codec::kChunkBytes,
            file->visiting_bytes(whole) + file->encoding_bytes(whole));
}

}  // namespace
}  // namespace plimsoll::runtime
