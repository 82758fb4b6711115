// The C interface of the plug-in: what PyTorch's CUDAPluggableAllocator calls, and what the Python
// package asks for with ctypes. One library serves every Python and every PyTorch from 2.11 on.
//
// PyTorch takes the addresses of these functions: the first two in its constructor, eight more
// through setters. A result of nullptr would become a tensor at address 0, so
// plimsoll_device_alloc throws instead: PyTorch's out-of-memory error (out_of_memory.h), a
// std::runtime_error without PyTorch.
//
// Devices are opened on first use and never closed: at exit PyTorch frees tensors after the driver
// is gone. Texts that are returned belong to the caller, who gives them back to plimsoll_free_text.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

struct CUstream_st;
using PlimsollStream = CUstream_st*;
using PlimsollPool = std::pair<unsigned long long, unsigned long long>;

extern "C" {

void* plimsoll_device_alloc(ssize_t size, int device, PlimsollStream stream);
void plimsoll_device_free(void* pointer, ssize_t size, int device, PlimsollStream stream);

void plimsoll_init(int device_count);
void plimsoll_reset();  // empty_cache on every device
void plimsoll_memory_fraction(double fraction, int device);
void* plimsoll_base_alloc(void* pointer, std::size_t* size);
void plimsoll_record_stream(void* pointer, PlimsollStream stream);
void plimsoll_begin_pool(int device, PlimsollPool pool, std::function<bool(PlimsollStream)> filter);
void plimsoll_end_pool(int device, PlimsollPool pool);
void plimsoll_release_pool(int device, PlimsollPool pool);

// A device that exists only as bookkeeping, for tests on machines without a GPU. Before the first
// allocation.
void plimsoll_use_fake_device(std::int64_t capacity);

// Bytes that each device may hold at most; before the first allocation.
void plimsoll_set_capacity(std::int64_t bytes);

// Why live blocks cannot move to the host, as a sentence; empty when they can. Opens the device.
char* plimsoll_spill_refusal(int device);
// Host bytes that spilling the blocks would pin beside what is pinned.
std::int64_t plimsoll_to_be_pinned(int device, void* const* blocks, std::int64_t count);
// Moves what the blocks fill to host memory, or back: JSON, {"moved", "stays", "problem"}.
char* plimsoll_spill(int device, void* const* blocks, std::int64_t count);
char* plimsoll_restore(int device, void* const* blocks, std::int64_t count);

// 0 allocated now, 1 its peak, 2 reserved now, 3 its peak, 4 slabs moved, 5 stream waits,
// 6 device allocations, 7 spilled to the host.
std::int64_t plimsoll_count(int device, int which);
char* plimsoll_statistics(int device);  // JSON, with PyTorch's keys
void plimsoll_reset_peaks(int device);
void plimsoll_reset_totals(int device);
void plimsoll_record_history(int device, int on, std::int64_t most);
char* plimsoll_snapshot(int device);  // JSON, with PyTorch's layout: segments, trace
void plimsoll_free_text(char* text);
const char* plimsoll_problem();  // why a device could not be opened, or ""
}
