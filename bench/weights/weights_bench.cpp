// The bars of weights at rest: how fast each form is decoded beside a copy of the same bytes, what
// it makes of real weights, and how long a header takes.
//
//   build/release/bin/weights_bench                       # 64 MiB of normal bf16 weights, and fp32
//   build/release/bin/weights_bench model.safetensors     # the tensors of a file
//   build/release/bin/weights_bench "" q8_0 q4_0          # these forms only
//
// Times are CPU seconds of one thread, the best of five rounds; GB/s count decoded bytes. "copy" is
// memcpy of the same bytes, chunk by chunk, into the same memory.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/base/random.h"
#include "plimsoll/codec/weights/float_values.h"
#include "plimsoll/codec/weights/weight_codecs.h"
#include "plimsoll/store/safetensors.h"
#include "plimsoll/store/weight_form.h"
#include "plimsoll/store/weights_file.h"

namespace {

using namespace plimsoll;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}
template <typename Work>
double best_of_five(Work work) {
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const double begin = cpu_seconds();
    work();
    best = std::min(best, cpu_seconds() - begin);
  }
  return best;
}

struct Tensor {
  store::Element element;
  std::vector<std::uint64_t> dims;
  std::vector<std::byte> bytes;
};

void measure(store::Form form, const std::vector<Tensor>& tensors) {
  struct Piece {
    const Tensor* tensor;
    std::uint64_t number;
    store::Chunk chunk;
  };
  std::vector<Piece> pieces;
  std::size_t before = 0;
  std::size_t after = 0;
  const double encoding = cpu_seconds();
  for (const Tensor& tensor : tensors) {
    if (!store::takes(form, tensor.element, tensor.dims)) continue;
    for (std::uint64_t i = 0; i < store::chunks_of(tensor.bytes.size()); ++i) {
      const auto values =
          std::span(tensor.bytes)
              .subspan(i * codec::kChunkBytes, store::chunk_bytes(tensor.bytes.size(), i));
      pieces.push_back(
          {&tensor, i, store::encode_chunk(form, tensor.element, tensor.dims, i, values)});
      before += values.size();
      after += pieces.back().chunk.bytes.size();
    }
  }
  const double encoded = cpu_seconds() - encoding;
  if (pieces.empty()) return;
  std::vector<std::byte> out(before);
  bool good = true;
  const double decoded = best_of_five([&] {
    std::size_t at = 0;
    for (const Piece& piece : pieces) {
      const std::size_t bytes = store::chunk_bytes(piece.tensor->bytes.size(), piece.number);
      good =
          store::decode_chunk(piece.chunk.form, piece.tensor->element, piece.tensor->dims,
                              piece.number, piece.chunk.bytes, std::span(out).subspan(at, bytes)) &&
          good;
      at += bytes;
    }
  });
  const double copied = best_of_five([&] {
    std::size_t at = 0;
    for (const Piece& piece : pieces) {
      const std::size_t bytes = store::chunk_bytes(piece.tensor->bytes.size(), piece.number);
      std::memcpy(out.data() + at, piece.tensor->bytes.data() + piece.number * codec::kChunkBytes,
                  bytes);
      at += bytes;
    }
  });
  const auto total = static_cast<double>(before);
  fmt::print("  {:<14}{:>8.4f}{:>10.2f}{:>10.2f}{:>10.2f}{}\n", store::name(form),
             static_cast<double>(after) / total, total / encoded / 1e9, total / decoded / 1e9,
             total / copied / 1e9, good ? "" : "  WRONG");
}

void measure_all(const std::string& title, const std::vector<Tensor>& tensors,
                 const std::vector<std::string>& wanted) {
  fmt::print("{}\n  {:<14}{:>8}{:>10}{:>10}{:>10}\n", title, "form", "share", "encode", "decode",
             "copy GB/s");
  for (const store::Form form : store::all_forms()) {
    if (form == store::Form::kRaw) continue;
    if (wanted.empty() ||
        std::find(wanted.begin(), wanted.end(), store::name(form)) != wanted.end())
      measure(form, tensors);
  }
}

Tensor normal_tensor(store::Element element, std::uint64_t rows, std::uint64_t columns) {
  Random random(1);
  std::vector<float> values(rows * columns);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(0.02 * random.normal());
  Tensor out{element, {rows, columns}, {}};
  const bool narrow = element == store::Element::kBF16;
  out.bytes.resize(values.size() * (narrow ? 2 : 4));
  codec::from_floats(values, narrow ? codec::WeightKind::kBF16 : codec::WeightKind::kF32,
                     out.bytes);
  return out;
}

void measure_header() {
  std::vector<store::SafetensorsEntry> entries;
  for (int i = 0; i < 6336; ++i)
    entries.push_back({fmt::format("model.layers.{}.block.{}.attention.weight", i / 64, i % 64),
                       store::Element::kF32,
                       {64, 64},
                       0,
                       0});
  if (!store::place_safetensors(entries)) return;
  const auto header = store::safetensors_header(entries, {});
  std::size_t found = 0;
  const double seconds = best_of_five([&] {
    const auto read = store::read_safetensors_header(*header);
    found = read ? read->entries.size() : 0;
  });
  fmt::print("header of {} tensors, {} bytes: {:.2f} ms\n", found, header->size(), 1e3 * seconds);
}

}  // namespace

int main(int argc, char** argv) {
  measure_header();
  const std::vector<std::string> wanted(argv + std::min(argc, 2), argv + argc);
  if (argc > 1 && argv[1][0] != '\0') {
    const auto file = store::WeightsFile::open(argv[1]);
    if (!file) {
      fmt::print(stderr, "{}\n", file.error().message);
      return 3;
    }
    std::vector<Tensor> tensors;
    for (const auto& tensor : file->tensors()) {
      tensors.push_back({tensor.element, tensor.dims, std::vector<std::byte>(tensor.bytes)});
      if (!file->read_into(tensor, tensors.back().bytes)) return 3;
    }
    measure_all(argv[1], tensors, wanted);
    return 0;
  }
  measure_all("normal bf16, 64 MiB", {normal_tensor(store::Element::kBF16, 8192, 4096)}, wanted);
  measure_all("normal fp32, 64 MiB", {normal_tensor(store::Element::kF32, 4096, 4096)}, wanted);
  return 0;
}
