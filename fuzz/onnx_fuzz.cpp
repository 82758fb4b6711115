// Any bytes as an .onnx file: an error or a graph.
//
//   build/fuzz/bin/onnx_fuzz -max_total_time=600 corpus /usr/share/libonnx-testdata/data/node/*/
#include <cstddef>
#include <cstdint>
#include <span>

#include "plimsoll/model/onnx_import.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  plimsoll::model::ImportOptions options;
  options.batch = 2;
  options.seq = 3;
  (void)plimsoll::model::import_onnx_bytes({reinterpret_cast<const std::byte*>(data), size},
                                           options);
  return 0;
}
