// Any bytes as a chunk of a weight in any form: refused, or values, and as many as were asked for;
// and its products. The first eight bytes say which form, kind of floats, columns, place and count.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plimsoll/codec/weights/weight_codecs.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace codec = plimsoll::codec;
  constexpr std::size_t kHead = 8;
  if (size < kHead) return 0;
  const auto codecs = codec::weight_codecs();
  const codec::WeightCodec& form = codecs[data[0] % codecs.size()];
  constexpr codec::WeightKind kKinds[] = {codec::WeightKind::kF32, codec::WeightKind::kF16,
                                          codec::WeightKind::kBF16, codec::WeightKind::kF64,
                                          codec::WeightKind::kOther};
  constexpr std::size_t kWidths[] = {4, 2, 2, 8, 1};
  codec::ChunkShape shape;
  shape.kind = kKinds[data[1] % 5];
  shape.element_bytes = kWidths[data[1] % 5];
  shape.columns = 1 + data[2] + 256u * (data[3] % 16);
  shape.begin = (data[4] + 256u * data[5]) * (codec::kChunkBytes / shape.element_bytes);
  const std::size_t count = data[6] + 256u * (data[7] % 32);
  if (!form.takes(shape)) return 0;
  const std::vector<std::uint8_t> coded(data + kHead, data + size);  // its end is the allocation's
  std::vector<std::byte> values(count * shape.element_bytes);
  if (!form.decode(coded, shape, values)) return 0;
  if (form.multiply == nullptr || shape.kind == codec::WeightKind::kF64 || count == 0) return 0;
  const std::size_t first_row = shape.begin / shape.columns;
  const std::size_t rows = (shape.begin + count - 1) / shape.columns - first_row + 1;
  const std::vector<float> columns_in(shape.columns, 0.5f);
  std::vector<float> rows_out(rows);
  (void)form.multiply(coded, shape, count, codec::Product::kRows, columns_in.data(),
                      rows_out.data());
  if (first_row + rows > (1u << 20)) return 0;
  const std::vector<float> rows_in(first_row + rows, 0.5f);
  std::vector<float> columns_out(shape.columns);
  (void)form.multiply(coded, shape, count, codec::Product::kColumns, rows_in.data(),
                      columns_out.data());
  return 0;
}
