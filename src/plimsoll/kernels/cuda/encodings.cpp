// Activations into compressed buffers and out again, on a stream (kernels/activation_encoding.h).
#include <array>
#include <utility>

#include "plimsoll/kernels/cuda/cuda_kernels.h"
#include "plimsoll/kernels/cuda/launch.h"

namespace plimsoll::kernels::cuda {
namespace {

constexpr std::array<std::pair<std::string_view, CodedForm>, 8> kForms = {{
    {"sparse", CodedForm::kSparse},
    {"crumbs", CodedForm::kCrumbs},
    {"nibbles", CodedForm::kNibbles},
    {"fp16", CodedForm::kFp16},
    {"bf16", CodedForm::kBf16},
    {"fp8-e4m3", CodedForm::kE4m3},
    {"fp8-e5m2", CodedForm::kE5m2},
    {"int8", CodedForm::kInt8},
}};

static_assert(sizeof(ActivationError) == 3 * sizeof(double));
static_assert(sizeof(EncodingStep) == 2 * sizeof(std::uint64_t));

Result<CodedForm> form_of(const codec::Codec& codec) {
  for (const auto& [name, form] : kForms) {
    if (name == codec.name) return form;
  }
  return bad_input("codec '{}': has no CUDA kernel; plan without it", codec.name);
}

CodedActivation coded(const ActivationEncoding& encoding) {
  CodedActivation out{};
  out.plain = reinterpret_cast<std::uint8_t*>(encoding.plain.data());
  out.count = static_cast<std::int64_t>(encoding.count());
  out.buffer = encoding.compressed.data();
  out.buffer_bytes = static_cast<std::int64_t>(encoding.compressed.size());
  out.overflow = reinterpret_cast<std::uint8_t*>(encoding.overflow->memory().data());
  out.stored = encoding.overflow->stored().data();
  out.errors = reinterpret_cast<double*>(encoding.errors.data());
  out.step = reinterpret_cast<const std::uint64_t*>(encoding.step);
  out.seed = encoding.seed;
  return out;
}

Status launched() {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return {};
  return fail(ErrorCode::kDevice, "an encoding: {}", cudaGetErrorString(error));
}

}  // namespace

Status encode_on_card(const ActivationEncoding& encoding, void* queue) {
  PLIMSOLL_TRY(const CodedForm form, form_of(*encoding.codec));
  // A byte less, and the counter of `sparse` would lie over the list of blocks.
  if (encoding.compressed.size() < codec::least_compressed_bytes(encoding.count()) + 8)
    return bad_input("codec '{}': a buffer of {} bytes holds no block", encoding.codec->name,
                     encoding.compressed.size());
  encode_activation(form, coded(encoding), static_cast<cudaStream_t>(queue));
  return launched();
}

Status decode_on_card(const ActivationEncoding& encoding, void* queue) {
  PLIMSOLL_TRY(const CodedForm form, form_of(*encoding.codec));
  decode_activation(form, coded(encoding), static_cast<cudaStream_t>(queue));
  return launched();
}

}  // namespace plimsoll::kernels::cuda
