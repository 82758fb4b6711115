"""Nanoseconds of malloc+free pairs and of replacing one of many live blocks, ours beside PyTorch's own,
from C++ in one process: calls both through the same kind of compiled loop.

    python allocator_speed.py
"""
import ctypes
import os
import sys

import torch
from torch.utils.cpp_extension import load_inline

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, ".."))
import plimsoll_torch

SOURCE = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <chrono>
#include <cmath>
#include <random>
#include <vector>
using Alloc = void* (*)(ssize_t, int, void*);
using Free = void (*)(void*, ssize_t, int, void*);
struct Ours { Alloc a; Free f; void* get(size_t n) { return a(n, 0, nullptr); } void put(void* p) { f(p, 0, 0, nullptr); } };
struct Native { void* get(size_t n) { return c10::cuda::CUDACachingAllocator::raw_alloc(n); }
                void put(void* p) { c10::cuda::CUDACachingAllocator::raw_delete(p); } };
template <class A> double pair(A a, int64_t size, int64_t turns) {
  for (int i = 0; i < 1000; ++i) a.put(a.get(size));
  auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < turns; ++i) a.put(a.get(size));
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / turns;
}
template <class A> double replace(A a, int64_t live, int64_t turns) {
  std::mt19937_64 random(1);
  std::vector<int64_t> sizes(1 << 16), which(1 << 16);
  for (auto& s : sizes) s = 512 * std::exp2(17 * (random() % 1000000 / 1e6));
  for (auto& w : which) w = random() % live;
  std::vector<void*> blocks(live);
  for (int64_t i = 0; i < live; ++i) blocks[i] = a.get(sizes[i]);
  auto turn = [&](int64_t i) { auto& b = blocks[which[i & 65535]]; a.put(b); b = a.get(sizes[i & 65535]); };
  for (int64_t i = 0; i < 20 * 65536; ++i) turn(i);  // until it has settled
  auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < turns; ++i) turn(i);
  double ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / turns;
  for (void* b : blocks) a.put(b);
  return ns;
}
double ours_pair(int64_t a, int64_t f, int64_t size, int64_t turns) { return pair(Ours{(Alloc)a, (Free)f}, size, turns); }
double native_pair(int64_t size, int64_t turns) { return pair(Native{}, size, turns); }
double ours_replace(int64_t a, int64_t f, int64_t live, int64_t turns) { return replace(Ours{(Alloc)a, (Free)f}, live, turns); }
double native_replace(int64_t live, int64_t turns) { return replace(Native{}, live, turns); }
"""

torch.cuda.init()
torch.empty(1, device="cuda")
module = load_inline("plimsoll_speed", SOURCE, with_cuda=True, extra_cflags=["-O2"],
                     functions=["ours_pair", "native_pair", "ours_replace", "native_replace"])
library = plimsoll_torch.allocator._load(plimsoll_torch.library_path())
address = lambda name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value
alloc, free = address("plimsoll_device_alloc"), address("plimsoll_device_free")
for size in (512, 1 << 20, 2 << 20, 64 << 20):
    ours = module.ours_pair(alloc, free, size, 1_000_000)
    native = module.native_pair(size, 200_000)
    print(f"  pair {size:>9}: ours {ours:6.1f} ns, native {native:6.1f} ns, {native / ours:4.1f}x")
library.plimsoll_reset()
for live in (64, 512, 2048):
    ours = module.ours_replace(alloc, free, live, 500_000)
    moved = library.plimsoll_count(0, 4)
    library.plimsoll_reset()
    native = module.native_replace(live, 200_000)
    torch.cuda.empty_cache()
    print(f"  replace {live:>5}: ours {ours:6.1f} ns (slabs moved so far {moved}), native {native:6.1f} ns, {native / ours:4.1f}x")
