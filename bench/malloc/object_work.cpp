// Workloads of small objects on one thread.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "work.h"

namespace malloc_work {
namespace {

// ---- In the spirit of cfrac: arithmetic on numbers that each live on the heap for a few
// instructions.

struct Number {
  std::uint32_t length;  // digits in use
  std::uint16_t digits[1];
};

Number* number_of(std::size_t digits) {
  auto* out = static_cast<Number*>(std::malloc(sizeof(Number) + digits * sizeof(std::uint16_t)));
  out->length = static_cast<std::uint32_t>(digits);
  return out;
}

void trim(Number& n) {
  while (n.length > 0 && n.digits[n.length - 1] == 0) --n.length;
}

Number* from(std::uint64_t value) {
  Number* out = number_of(4);
  for (int i = 0; i < 4; ++i) out->digits[i] = static_cast<std::uint16_t>(value >> (16 * i));
  trim(*out);
  return out;
}

std::uint64_t value_of(const Number& n) {
  std::uint64_t out = 0;
  for (std::uint32_t i = n.length; i-- > 0;) out = out << 16 | n.digits[i];
  return out;
}

Number* times(const Number& a, const Number& b) {
  Number* out = number_of(a.length + b.length);
  std::memset(out->digits, 0, out->length * sizeof(std::uint16_t));
  for (std::uint32_t i = 0; i < a.length; ++i) {
    std::uint32_t carry = 0;
    for (std::uint32_t j = 0; j < b.length; ++j) {
      carry += out->digits[i + j] + std::uint32_t{a.digits[i]} * b.digits[j];
      out->digits[i + j] = static_cast<std::uint16_t>(carry);
      carry >>= 16;
    }
    out->digits[i + b.length] = static_cast<std::uint16_t>(carry);
  }
  trim(*out);
  return out;
}

Number* plus(const Number& a, std::uint32_t b) {
  Number* out = number_of(a.length + 1);
  std::uint32_t carry = b;
  for (std::uint32_t i = 0; i < a.length; ++i) {
    carry += a.digits[i];
    out->digits[i] = static_cast<std::uint16_t>(carry);
    carry >>= 16;
  }
  out->digits[a.length] = static_cast<std::uint16_t>(carry);
  trim(*out);
  return out;
}

// Remainder of a number below 2^128 by one below 2^60, two digits at a time.
Number* modulo(const Number& a, const Number& m) {
  const std::uint64_t by = value_of(m);
  unsigned __int128 rest = 0;
  for (std::uint32_t i = a.length; i-- > 0;) rest = (rest << 16 | a.digits[i]) % by;
  return from(static_cast<std::uint64_t>(rest));
}

Number* distance(const Number& a, const Number& b) {
  const std::uint64_t x = value_of(a);
  const std::uint64_t y = value_of(b);
  return from(x > y ? x - y : y - x);
}

Number* step_of(const Number& x, const Number& m) {
  Number* square = times(x, x);
  Number* shifted = plus(*square, 1);
  std::free(square);
  Number* out = modulo(*shifted, m);
  std::free(shifted);
  return out;
}

// Floyd's cycle with products of differences: five or six numbers are born and die per step.
std::int64_t bignum(Arguments arguments) {
  const long steps = argument(arguments, 0, 4000000);
  Number* m = from(1000000007ull * 998244353ull);
  Number* slow = from(2);
  Number* fast = from(2);
  Number* product = from(1);
  for (long step = 0; step < steps; ++step) {
    Number* next = step_of(*slow, *m);
    std::free(slow);
    slow = next;
    for (int twice = 0; twice < 2; ++twice) {
      next = step_of(*fast, *m);
      std::free(fast);
      fast = next;
    }
    Number* gap = distance(*slow, *fast);
    Number* wide = times(*product, *gap);
    std::free(gap);
    std::free(product);
    product = modulo(*wide, *m);
    std::free(wide);
    if (product->length == 0) {
      std::free(product);
      product = from(1);
    }
  }
  std::printf("product %llu\n", static_cast<unsigned long long>(value_of(*product)));
  for (Number* n : {m, slow, fast, product}) std::free(n);
  return 0;
}

// ---- In the spirit of espresso: covers of a Boolean function, lists of cubes that are grown and
// merged.

struct Cube {
  Cube* chain;  // of its bucket
  std::uint32_t fixed;
  std::uint32_t values;
  bool merged;
  char name[1];  // "01-1-0", as the program would print it
};

struct Cover {
  Cube** cubes = nullptr;
  std::size_t count = 0;
  std::size_t room = 0;
  std::vector<Cube*> buckets;
};

bool insert(Cover& cover, std::uint32_t fixed, std::uint32_t values, int variables) {
  const std::size_t bucket = (fixed * 2654435761u ^ values * 40503u) % cover.buckets.size();
  for (Cube* cube = cover.buckets[bucket]; cube != nullptr; cube = cube->chain) {
    if (cube->fixed == fixed && cube->values == values) return false;
  }
  auto* cube = static_cast<Cube*>(std::malloc(sizeof(Cube) + static_cast<std::size_t>(variables)));
  *cube = {cover.buckets[bucket], fixed, values, false, {0}};
  for (int v = 0; v < variables; ++v) {
    cube->name[v] = (fixed >> v & 1) == 0 ? '-' : (values >> v & 1) != 0 ? '1' : '0';
  }
  cover.buckets[bucket] = cube;
  if (cover.count == cover.room) {
    cover.room = cover.room == 0 ? 8 : cover.room * 2;
    // NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers
    cover.cubes = static_cast<Cube**>(std::realloc(cover.cubes, cover.room * sizeof(Cube*)));
  }
  cover.cubes[cover.count++] = cube;
  return true;
}

Cube* find(const Cover& cover, std::uint32_t fixed, std::uint32_t values) {
  const std::size_t bucket = (fixed * 2654435761u ^ values * 40503u) % cover.buckets.size();
  Cube* cube = cover.buckets[bucket];
  while (cube != nullptr && (cube->fixed != fixed || cube->values != values)) cube = cube->chain;
  return cube;
}

void release(Cover& cover) {
  for (std::size_t i = 0; i < cover.count; ++i) std::free(cover.cubes[i]);
  std::free(cover.cubes);
}

// Prime implicants of random functions, level by level: each level is a cover, freed when the next
// stands.
std::int64_t cubes(Arguments arguments) {
  const long functions = argument(arguments, 0, 60);
  const int variables = static_cast<int>(argument(arguments, 1, 10));
  std::size_t primes = 0;
  for (long function = 0; function < functions; ++function) {
    Random random(static_cast<std::uint64_t>(function) + 7);
    Cover level;
    level.buckets.resize(4096);
    for (std::uint32_t point = 0; point < 1u << variables; ++point) {
      if (random.below(100) < 85) insert(level, (1u << variables) - 1, point, variables);
    }
    while (level.count > 0) {
      Cover next;
      next.buckets.resize(4096);
      for (std::size_t i = 0; i < level.count; ++i) {
        const Cube& cube = *level.cubes[i];
        for (int v = 0; v < variables; ++v) {
          const std::uint32_t bit = 1u << v;
          if ((cube.fixed & bit) == 0 || (cube.values & bit) != 0) continue;
          Cube* twin = find(level, cube.fixed, cube.values | bit);
          if (twin == nullptr) continue;
          level.cubes[i]->merged = twin->merged = true;
          insert(next, cube.fixed & ~bit, cube.values, variables);
        }
      }
      for (std::size_t i = 0; i < level.count; ++i) primes += level.cubes[i]->merged ? 0 : 1;
      release(level);
      level = std::move(next);
    }
    release(level);
  }
  std::printf("primes %zu\n", primes);
  return 0;
}

// ---- In the spirit of glibc-simple: bursts of blocks of few sizes, freed in the order of their
// birth.
std::int64_t bursts(Arguments arguments) {
  const long rounds = argument(arguments, 0, 600000);
  constexpr std::size_t kSizes[] = {16, 32, 48, 64, 100, 200, 400};
  void* blocks[64];
  for (long round = 0; round < rounds; ++round) {
    const std::size_t count = 4 + static_cast<std::size_t>(round) % 60;
    for (std::size_t i = 0; i < count; ++i) {
      blocks[i] = std::malloc(kSizes[(i + static_cast<std::size_t>(round)) % 7]);
      *static_cast<volatile char*>(blocks[i]) = 1;
    }
    for (std::size_t i = 0; i < count; ++i) std::free(blocks[i]);
  }
  return 0;
}

// ---- In the spirit of alloc-test: many live blocks of Pareto sizes, one replaced at random.
std::int64_t pareto(Arguments arguments) {
  const long steps = argument(arguments, 0, 12000000);
  const std::size_t slots = static_cast<std::size_t>(argument(arguments, 1, 1 << 15));
  std::vector<char*> blocks(slots);
  std::vector<std::uint32_t> sizes(slots);
  Random random(3);
  Live live;
  live.add(static_cast<std::int64_t>(slots * (sizeof(char*) + 4)));
  for (long step = 0; step < steps; ++step) {
    const std::uint64_t drawn = random.next();
    const std::size_t at = drawn % slots;
    if (blocks[at] != nullptr) {
      live.add(-static_cast<std::int64_t>(sizes[at]));
      std::free(blocks[at]);
    }
    // One in 2^k is 2^k times as large: 16 to 128 KiB.
    const int doublings = __builtin_ctzll(drawn >> 32 | 1ull << 12);
    const std::uint32_t bytes =
        static_cast<std::uint32_t>((16u << doublings) + (drawn >> 50) % (16u << doublings));
    blocks[at] = static_cast<char*>(std::malloc(bytes));
    sizes[at] = bytes;
    blocks[at][0] = blocks[at][bytes - 1] = 1;
    live.add(bytes);
  }
  for (char* block : blocks) std::free(block);
  return live.peak;
}

// ---- Blocks of forty sizes that live for as long as it takes to allocate some more: messages in a
// queue. A short queue lies in the nearest cache, a long one in none.
std::int64_t queue(Arguments arguments) {
  const long steps = argument(arguments, 0, 20000000);
  const auto length = static_cast<std::size_t>(argument(arguments, 1, 1000));
  std::vector<char*> waiting(length);
  std::vector<std::uint32_t> sizes(length);
  Random random(5);
  Live live;
  live.add(static_cast<std::int64_t>(length * (sizeof(char*) + 4)));
  std::size_t at = 0;
  for (long step = 0; step < steps; ++step) {
    live.add(-static_cast<std::int64_t>(sizes[at]));
    std::free(waiting[at]);
    const auto bytes = static_cast<std::uint32_t>(24 + random.below(40) * 24);
    waiting[at] = static_cast<char*>(std::malloc(bytes));
    waiting[at][0] = 1;
    sizes[at] = bytes;
    live.add(bytes);
    if (++at == length) at = 0;
  }
  for (char* block : waiting) std::free(block);
  return live.peak;
}

// ---- Binary trees of nodes of three sizes, each grown leaf by leaf, read once, and freed from its
// leaves up; the one before lives until the next stands.
struct Node {
  Node* left;
  Node* right;
  std::uint64_t key;
};

Node* grow(int depth, Random& random, Live& live) {
  const std::size_t bytes = sizeof(Node) + random.below(3) * 24;
  auto* node = static_cast<Node*>(std::malloc(bytes));
  live.add(static_cast<std::int64_t>(bytes));
  node->key = bytes;
  node->left = depth > 0 ? grow(depth - 1, random, live) : nullptr;
  node->right = depth > 0 ? grow(depth - 1, random, live) : nullptr;
  return node;
}

std::uint64_t fell(Node* node, Live& live) {
  if (node == nullptr) return 0;
  const std::uint64_t sum = node->key + fell(node->left, live) + fell(node->right, live);
  live.add(-static_cast<std::int64_t>(node->key));
  std::free(node);
  return sum;
}

std::int64_t trees(Arguments arguments) {
  const long rounds = argument(arguments, 0, 60);
  const int depth = static_cast<int>(argument(arguments, 1, 17));
  Random random(9);
  Live live;
  Node* before = nullptr;
  std::uint64_t sum = 0;
  for (long round = 0; round < rounds; ++round) {
    Node* tree = grow(depth, random, live);
    sum += fell(before, live);
    before = tree;
  }
  sum += fell(before, live);
  std::printf("sum %llu\n", static_cast<unsigned long long>(sum));
  return live.peak;
}

constexpr Work kWorks[] = {
    {"bignum", "STEPS: short-lived numbers (spirit of cfrac)", bignum},
    {"cubes", "FUNCTIONS VARIABLES: covers of Boolean functions (spirit of espresso)", cubes},
    {"bursts", "ROUNDS: a few sizes, born and freed in order (spirit of glibc-simple)", bursts},
    {"pareto", "STEPS SLOTS: Pareto sizes replaced at random (spirit of alloc-test)", pareto},
    {"queue", "STEPS LENGTH: forty sizes, freed in the order of their birth", queue},
    {"trees", "ROUNDS DEPTH: trees of three sizes of nodes, freed from their leaves up", trees},
};

}  // namespace

std::span<const Work> object_works() {
  return kWorks;
}

}  // namespace malloc_work
