// Times of single CUDA kernels at the sizes of resnet50 b256 and gpt2 b16x1024, beside what the
// memory (4.2 TB/s on an H200) would take for the bytes they must move.
//
//   cmake --build build/release --target kernels_cuda_bench
//   build/release/bin/kernels_cuda_bench [PART OF A NAME]
//
// Ten runs in one CUDA graph, the fastest of five replays. Contents do not matter: every byte is
// 0x3c, a small number in every float type; integers are zero.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "plimsoll/kernels/cuda/cuda_kernels.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::kernels::cuda {
namespace {

constexpr double kBytesPerSecond = 4.2e12;
constexpr int kRunsOfGraph = 10;
constexpr int kReplays = 5;

struct Case {
  std::string op;
  std::vector<ir::TensorType> inputs;
  ir::Attributes attributes{};
  bool tf32 = true;
};

ir::TensorType type(ir::DType dtype, const ir::Shape& shape, bool channels_last = false) {
  return {dtype, shape,
          channels_last ? ir::Layout::channels_last(shape.rank()) : ir::Layout::row_major()};
}

void add_convolutions(std::vector<Case>& out, ir::DType dtype, bool last) {
  const ir::Ints ones{1, 1, 1, 1};
  const auto data = [&](const ir::Shape& shape) { return type(dtype, shape, last); };
  const ir::Shape narrow{256, 64, 56, 56};
  const ir::Shape wide{256, 256, 56, 56};
  const ir::Ints as_ints(narrow.begin(), narrow.end());
  const ir::Attributes three{{"pads", ones}};
  const ir::Attributes back{{"pads", ones}, {"shape", as_ints}};
  out.push_back({"conv", {data(narrow), data({64, 64, 3, 3})}, three});
  out.push_back({"conv_grad_input", {data(narrow), data({64, 64, 3, 3})}, back});
  out.push_back({"conv_grad_weight",
                 {data(narrow), data(narrow)},
                 {{"pads", ones}, {"shape", ir::Ints{64, 64, 3, 3}}}});
  out.push_back({"conv", {data(narrow), data({256, 64, 1, 1})}});
  const ir::TensorType channels = type(ir::DType::kF32, {256});
  out.push_back({"batch_norm", {data(wide), channels, channels}});
  out.push_back(
      {"batch_norm_grad", {data(wide), data(wide), channels, channels, channels, channels}});
  out.push_back({"add_relu", {data(wide), data(wide)}});
  out.push_back({"max_pool",
                 {data({256, 64, 112, 112})},
                 {{"kernel", ir::Ints{3, 3}}, {"strides", ir::Ints{2, 2}}, {"pads", ones}}});
}

void add_transformer(std::vector<Case>& out, ir::DType dtype) {
  const ir::TensorType rows = type(dtype, {16, 1024, 768});
  const ir::TensorType gamma = type(ir::DType::kF32, {768});
  const ir::TensorType statistic = type(ir::DType::kF32, {16, 1024});
  const ir::TensorType lse = type(ir::DType::kF32, {16, 12, 1024});
  const ir::Attributes heads{{"heads", std::int64_t{12}}, {"causal", std::int64_t{1}}};
  out.push_back({"linear", {rows, type(dtype, {768, 3072}), type(dtype, {3072})}});
  out.push_back(
      {"linear_grad_weight", {rows, type(dtype, {16, 1024, 3072})}, {{"bias", std::int64_t{1}}}});
  out.push_back({"gelu", {type(dtype, {16, 1024, 3072})}, {{"approximate", std::string("tanh")}}});
  out.push_back({"add", {rows, rows}});
  out.push_back({"layer_norm", {rows, gamma, gamma}});
  out.push_back({"layer_norm_grad", {rows, rows, gamma, statistic, statistic}});
  out.push_back({"attention_qkv", {type(dtype, {16, 1024, 2304})}, heads});
  out.push_back({"attention_qkv_grad", {rows, type(dtype, {16, 1024, 2304}), rows, lse}, heads});
  out.push_back({"cross_entropy", {type(dtype, {16384, 50257}), type(ir::DType::kI64, {16384})}});
  out.push_back({"gather_grad",
                 {rows, type(ir::DType::kI64, {16, 1024})},
                 {{"shape", ir::Ints{50257, 768}}}});
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const ir::DType dtype : {ir::DType::kF32, ir::DType::kBF16}) {
    for (const bool last : {false, true}) add_convolutions(out, dtype, last);
    add_transformer(out, dtype);
  }
  const ir::TensorType weights = type(ir::DType::kF32, {124000000});
  out.push_back({"adamw", {weights, weights, weights, weights, type(ir::DType::kI64, {})}});
  out.push_back(
      {"transpose", {type(ir::DType::kF32, {256, 64, 56, 56})}, {{"perm", ir::Ints{0, 2, 3, 1}}}});
  return out;
}

// Memory for the values of a node; freed at the end.
struct Buffers {
  std::vector<std::byte*> all;
  std::byte* take(std::int64_t bytes, int fill) {
    void* out = nullptr;
    if (cudaMalloc(&out, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1))) != cudaSuccess)
      return nullptr;
    cudaMemset(out, fill, static_cast<std::size_t>(bytes));
    all.push_back(static_cast<std::byte*>(out));
    return all.back();
  }
  ~Buffers() {
    for (std::byte* buffer : all) cudaFree(buffer);
  }
};

// Milliseconds of one run.
double time_of(Kernel& kernel, const ir::Graph& graph) {
  const ir::Node& node = graph.nodes.front();
  Buffers buffers;
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  constexpr int kSmallNumber = 0x3c;
  for (const ValueId id : node.inputs) {
    const ir::TensorType& of = graph.value(id).type;
    inputs.push_back(
        buffers.take(ir::bytes_of(of).value, ir::is_float(of.dtype) ? kSmallNumber : 0));
  }
  for (const ValueId id : node.outputs)
    outputs.push_back(buffers.take(ir::bytes_of(graph.value(id).type).value, 0));
  std::byte* scratch = buffers.take(kernel.scratch().value, 0);
  if (std::ranges::count(outputs, nullptr) + std::ranges::count(inputs, nullptr) > 0) return -1;
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaDeviceSynchronize();
  const Arguments arguments{inputs, outputs, scratch, stream};
  kernel.run(arguments);
  cudaStreamSynchronize(stream);
  cudaGraph_t recorded = nullptr;
  cudaGraphExec_t executable = nullptr;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  for (int i = 0; i < kRunsOfGraph; ++i) kernel.run(arguments);
  cudaStreamEndCapture(stream, &recorded);
  cudaGraphInstantiate(&executable, recorded, 0);
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  float best = 1e30F;
  for (int i = 0; i < kReplays; ++i) {
    float elapsed = 0;
    cudaEventRecord(begin, stream);
    cudaGraphLaunch(executable, stream);
    cudaEventRecord(end, stream);
    cudaEventSynchronize(end);
    cudaEventElapsedTime(&elapsed, begin, end);
    best = std::min(best, elapsed);
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(recorded);
  cudaStreamDestroy(stream);
  return cudaGetLastError() == cudaSuccess ? best / kRunsOfGraph : -1;
}

void report(const Case& what) {
  ir::Graph graph;
  ir::Node node;
  node.op = what.op;
  node.attributes = what.attributes;
  for (std::size_t i = 0; i < what.inputs.size(); ++i) {
    node.inputs.push_back(
        graph.add_source(fmt::format("x{}", i), ir::ValueKind::kInput, what.inputs[i]));
  }
  auto types = ops::infer(graph, node);
  if (!types) {
    std::printf("%s: %s\n", what.op.c_str(), types.error().message.c_str());
    return;
  }
  // A weight gradient lies like its data.
  if (what.op == "conv_grad_weight")
    types->front().layout = what.inputs[0].layout.is_row_major()
                                ? ir::Layout()
                                : ir::Layout::channels_last(types->front().shape.rank());
  graph.add_node(node, *types, ir::ValueKind::kActivation);
  auto kernel = make_cuda_kernel(graph, NodeId(0), {.tf32 = what.tf32});
  if (!kernel) {
    std::printf("%s: %s\n", what.op.c_str(), kernel.error().message.c_str());
    return;
  }
  const ops::Cost cost = ops::cost_of(graph, graph.nodes.front());
  const double milliseconds = time_of(**kernel, graph);
  std::printf("%-20s %-34s %8.3f ms  memory alone %7.3f  %7.1f TFLOP/s  scratch %lld\n",
              what.op.c_str(), ir::to_string(what.inputs.front()).c_str(), milliseconds,
              cost.bytes() / kBytesPerSecond * 1e3, cost.operations / milliseconds / 1e9,
              static_cast<long long>((*kernel)->scratch().value));
  std::fflush(stdout);
}

}  // namespace
}  // namespace plimsoll::kernels::cuda

int main(int argc, char** argv) {
  for (const auto& what : plimsoll::kernels::cuda::cases()) {
    if (argc < 2 || what.op.find(argv[1]) != std::string::npos)
      plimsoll::kernels::cuda::report(what);
  }
  return 0;
}
