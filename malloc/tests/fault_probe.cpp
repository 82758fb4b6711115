// Programs with a fault: each must end by abort with one clear line (or by a fault at a guard
// page), never go on.
#include <cstring>
#include <thread>
#include <vector>

#include "probe.h"

namespace probe {
namespace {

// What the compiler cannot follow.
void* hide(void* p) {
  asm volatile("" : "+r"(p));
  return p;
}

void free_twice(std::size_t bytes, bool others_between) {
  void* block = hide(std::malloc(bytes));
  void* neighbours[8];
  for (void*& neighbour : neighbours) neighbour = std::malloc(bytes);
  std::free(block);
  if (others_between) {
    for (void* neighbour : neighbours) std::free(neighbour);
  }
  std::free(hide(block));
}

// Of a heap of so many blocks beside: those of a large one wait before they are looked at.
void double_free(Arguments arguments) {
  std::vector<void*> others(static_cast<std::size_t>(number(arguments, 2, 0)));
  for (void*& other : others) other = hide(std::malloc(500));
  free_twice(static_cast<std::size_t>(number(arguments, 0, 100)), number(arguments, 1, 0) != 0);
}

void double_free_by_another_thread(Arguments) {
  void* block = hide(std::malloc(100));
  std::thread([&] {
    std::free(hide(block));
    std::free(hide(block));
  }).join();
}

// Some for each way home: in a parcel, and, behind what fills all parcels, by itself.
void double_free_by_two_threads(Arguments arguments) {
  const long others = number(arguments, 0, 0);
  void* block = hide(std::malloc(100));
  std::vector<void*> more(static_cast<std::size_t>(others));
  for (void*& one : more) one = std::malloc(100);
  for (int i = 0; i < 2; ++i) {
    std::thread([&] {
      for (void*& one : more) {
        std::free(one);
        one = nullptr;
      }
      std::free(hide(block));
    }).join();
  }
}

// Of a size whose blocks the thread exchanges with others (magazine.h): one of another's, or own.
void double_free_in_exchange(Arguments arguments) {
  const bool own = number(arguments, 0, 0) != 0;
  const bool allocate_behind = number(arguments, 1, 0) != 0;
  std::vector<void*> blocks(6000);
  for (void*& block : blocks) block = std::malloc(100);
  std::thread([&] {
    std::vector<void*> mine(blocks.size());
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      std::free(blocks[i]);
      blocks[i] = nullptr;
      mine[i] = std::malloc(100);
      if (i > blocks.size() / 2) std::free(mine[i - blocks.size() / 4]);
    }
    void* block = hide(own ? std::malloc(100) : mine.back());
    std::free(block);
    std::free(hide(block));
    for (int i = 0; allocate_behind && i < 200; ++i) (void)hide(std::malloc(100));
  }).join();
}

void foreign_pointer(Arguments) {
  char on_stack[64];
  std::free(hide(on_stack + 16));
}

void wild_pointer(Arguments) {
  std::free(hide(reinterpret_cast<void*>(0xDEADBEEFDEADBEE0ull)));
}

void inside_of_block(Arguments arguments) {
  auto* block =
      static_cast<char*>(std::malloc(static_cast<std::size_t>(number(arguments, 0, 3 << 20))));
  std::free(hide(block + number(arguments, 1, 16)));
}

void overrun(Arguments arguments) {
  const auto bytes = static_cast<std::size_t>(number(arguments, 0, 100));
  auto* block = static_cast<char*>(hide(std::malloc(bytes)));
  block[bytes + static_cast<std::size_t>(number(arguments, 1, 0))] = 1;
  std::free(hide(block));
}

constexpr Experiment kExperiments[] = {
    {"double_free", double_free},
    {"double_free_by_another_thread", double_free_by_another_thread},
    {"double_free_by_two_threads", double_free_by_two_threads},
    {"double_free_in_exchange", double_free_in_exchange},
    {"foreign_pointer", foreign_pointer},
    {"wild_pointer", wild_pointer},
    {"inside_of_block", inside_of_block},
    {"overrun", overrun},
};

}  // namespace

std::span<const Experiment> fault_experiments() {
  return kExperiments;
}

}  // namespace probe
