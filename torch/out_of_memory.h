// PyTorch's own out-of-memory error, thrown by a library that is not built against PyTorch.
//
// PyTorch turns a C++ exception of its class c10::OutOfMemoryError into torch.OutOfMemoryError,
// which training loops catch; anything else becomes a RuntimeError. Its headers are not here, but
// the class is in its libraries, which are loaded: its constructor, its table of virtual functions
// and its type are looked up by name and an exception is made of them, as a compiler would.
//
//   the exception     [ vtable of OutOfMemoryError | what c10::Error's constructor wrote ... ]
//   its type          typeinfo for c10::OutOfMemoryError       what a catch clause compares
//   its destructor    the first entry of the vtable
//
// Relied on: c10::Error(SourceLocation, std::string) of PyTorch 2.x, and the Itanium C++ ABI.
// Where a name is not found the function returns, and the caller throws what it can.
#pragma once

namespace plimsoll::torch {

void throw_torch_out_of_memory(const char* message);

}  // namespace plimsoll::torch
