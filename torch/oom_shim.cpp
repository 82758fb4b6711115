// Optional, built against the installed PyTorch: makes an out-of-memory error of ours a real
// torch.OutOfMemoryError. plimsoll_torch builds it when a compiler is there and does without
// otherwise.
#include <c10/util/Exception.h>

extern "C" void plimsoll_throw_out_of_memory(const char* message) {
  TORCH_CHECK_WITH(OutOfMemoryError, false, message);
}
