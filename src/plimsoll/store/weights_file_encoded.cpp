// Tensors of a weights file in encoded form: those that it has so, and others encoded on the way.
#include <algorithm>

#include "plimsoll/base/check.h"
#include "plimsoll/base/utf8.h"
#include "plimsoll/codec/weights/encoded_matrix.h"
#include "plimsoll/codec/weights/ternary.h"
#include "plimsoll/codec/weights/weight_codec.h"
#include "plimsoll/store/plim_reader.h"
#include "plimsoll/store/weights_file.h"

namespace plimsoll::store {

std::uint64_t WeightsFile::encoded_bytes(const WeightTensor& tensor) const {
  const auto* plim = dynamic_cast<const PlimReader*>(reader_.get());
  const bool floats = tensor.element == Element::kF32 || tensor.element == Element::kF16 ||
                      tensor.element == Element::kBF16;
  if (plim == nullptr || !floats || !tensor.mapped.empty() || tensor.dims.size() < 2 ||
      tensor.bytes == 0)
    return 0;
  const PlimTensor& from = plim->tensor(tensor.index);
  for (const PlimChunk& chunk : from.chunks)
    if (chunk.form != Form::kRaw && !stays_in_memory(chunk.form)) return 0;
  return codec::encoded_table_bytes(from.chunks.size()) + from.stored_bytes();
}

std::uint64_t WeightsFile::prepare_decoding() const {
  const auto* plim = dynamic_cast<const PlimReader*>(reader_.get());
  std::uint64_t out = 0;
  if (plim == nullptr) return out;
  for (const unsigned zeros : plim->ternary_zeros()) out += codec::RunDictionary::of(zeros).bytes();
  return out;
}

// Which form and how many bytes each chunk has, in front of what is stored.
void WeightsFile::write_table(const WeightTensor& tensor, std::span<std::byte> out) const {
  const PlimTensor& from = dynamic_cast<const PlimReader*>(reader_.get())->tensor(tensor.index);
  std::vector<codec::EncodedChunk> chunks;
  for (const PlimChunk& chunk : from.chunks)
    chunks.push_back({static_cast<std::uint8_t>(chunk.form), chunk.stored});
  const std::size_t table = codec::encoded_table_bytes(chunks.size());
  codec::write_encoded_table(chunks, {reinterpret_cast<std::uint8_t*>(out.data()), table});
}

Status WeightsFile::read_encoded(const WeightTensor& tensor, std::span<std::byte> out,
                                 const PartReader::Staging& staging) const {
  PLIMSOLL_CHECK(encoded_bytes(tensor) == out.size() && !out.empty(),
                 "memory of another form than that of '{}'", tensor.name);
  write_table(tensor, out);
  const Wanted wanted{&tensor, out, true};
  if (const auto part = part_of(wanted)) {
    const auto offset = static_cast<std::uint64_t>(part->in_file.data() - file_->bytes().data());
    PLIMSOLL_RETURN_IF_ERROR(
        parts_->read(offset, part->to, method_of(part->in_file, part->in_file.size()), staging));
  } else {
    const std::span<std::byte> stored = out.last(tensor.in_file.size());
    std::copy(tensor.in_file.begin(), tensor.in_file.end(), stored.begin());
  }
  return finish(wanted);
}

Result<std::vector<std::uint64_t>> WeightsFile::bytes_in_forms(const WeightTensor& tensor,
                                                               std::span<const Form> forms) const {
  constexpr double kWorthwhile = 0.95;
  const std::uint64_t table = codec::encoded_table_bytes(chunks_of(tensor.bytes));
  std::vector<std::uint64_t> out(forms.size(), table);
  std::vector<bool> pays(forms.size(), true);
  const auto is_small = [&](std::uint64_t bytes, std::uint64_t of) {
    return static_cast<double>(bytes) < kWorthwhile * static_cast<double>(of);
  };
  std::uint64_t chunk = 0;
  PLIMSOLL_RETURN_IF_ERROR(for_chunks(tensor, [&](std::span<const std::byte> values) -> Status {
    for (std::size_t f = 0; f < forms.size(); ++f) {
      if (!pays[f]) continue;
      const Chunk coded = encode_chunk(forms[f], tensor.element, tensor.dims, chunk, values);
      out[f] += coded.bytes.size();
      pays[f] = chunk > 0 || is_small(coded.bytes.size(), values.size());
    }
    ++chunk;
    return {};
  }));
  for (std::size_t f = 0; f < forms.size(); ++f)
    if (!pays[f] || !is_small(out[f], tensor.bytes)) out[f] = 0;
  return out;
}

Status WeightsFile::encode_into(const WeightTensor& tensor, Form form, std::span<std::byte> out,
                                FormError& error) const {
  const std::size_t table = codec::encoded_table_bytes(chunks_of(tensor.bytes));
  const auto changed = [&] {
    return bad_input("tensor '{}': as {} it takes other bytes than when it was planned",
                     printable(tensor.name), name(form));
  };
  if (out.size() < table) return changed();
  std::vector<codec::EncodedChunk> chunks;
  std::vector<std::byte> again;
  std::size_t at = table;
  PLIMSOLL_RETURN_IF_ERROR(for_chunks(tensor, [&](std::span<const std::byte> values) -> Status {
    const Chunk coded = encode_chunk(form, tensor.element, tensor.dims, chunks.size(), values);
    if (coded.bytes.size() > out.size() - at) return changed();
    std::copy(coded.bytes.begin(), coded.bytes.end(),
              out.begin() + static_cast<std::ptrdiff_t>(at));
    at += coded.bytes.size();
    if (!is_lossless(coded.form)) {
      again.resize(values.size());
      PLIMSOLL_CHECK(
          decode_chunk(coded.form, tensor.element, tensor.dims, chunks.size(), coded.bytes, again),
          "'{}' was encoded wrongly", tensor.name);
      error.add(tensor.element, values, again);
    }
    chunks.push_back(
        {static_cast<std::uint8_t>(coded.form), static_cast<std::uint32_t>(coded.bytes.size())});
    return {};
  }));
  if (at != out.size()) return changed();
  codec::write_encoded_table(chunks, {reinterpret_cast<std::uint8_t*>(out.data()), table});
  return {};
}

}  // namespace plimsoll::store
