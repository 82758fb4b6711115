// Random operations beside a record of what every block must contain.
//
// `shadow OPERATIONS THREADS SEED`: each thread owns a table of blocks and passes some on to the
// others. A block is filled with bytes that follow from its slot and age (whole when small, a word
// per 512 bytes when large), and checked before it is changed or freed: two blocks that overlap, or
// a block that moved without its contents, show as a wrong byte.
#include <malloc.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "probe.h"

namespace probe {
namespace {

struct Record {
  unsigned char* block;
  std::size_t bytes;
  std::uint64_t stamp;
};

class Table {
 public:
  explicit Table(std::uint64_t seed) : state_(seed) {
    // Not from the allocator under test.
    void* at = mmap(nullptr, kSlots * sizeof(Record), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    PROBE(at != MAP_FAILED);
    records_ = static_cast<Record*>(at);
  }

  void step(std::atomic<Record*>& exchange) {
    Record& record = records_[random() % kSlots];
    const std::uint64_t what = random() % 100;
    if (record.block == nullptr) return create(record, what);
    check(record);
    if (what < 60) {
      std::free(record.block);
      record.block = nullptr;
    } else if (what < 90) {
      resize(record);
    } else {
      pass_on(record, exchange);
    }
  }

  void finish() {
    for (std::size_t i = 0; i < kSlots; ++i) {
      if (records_[i].block == nullptr) continue;
      check(records_[i]);
      std::free(records_[i].block);
    }
    munmap(records_, kSlots * sizeof(Record));
  }

  static void check(const Record& record) {
    for (std::size_t at = 0; at < record.bytes; at += stride(record.bytes)) {
      if (record.block[at] == value(record, at)) continue;
      std::fprintf(stderr, "shadow: a block of %zu bytes has a wrong byte at %zu\n", record.bytes,
                   at);
      std::exit(1);
    }
    if (record.bytes > 0) PROBE(record.block[record.bytes - 1] == value(record, record.bytes - 1));
  }

 private:
  static constexpr std::size_t kSlots = 4000;

  std::uint64_t random() {
    state_ += 0x9E3779B97F4A7C15ull;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    return z ^ (z >> 29);
  }
  static std::size_t stride(std::size_t bytes) {
    return bytes <= 256 ? 1 : bytes <= 65536 ? 61 : 4093;
  }
  static unsigned char value(const Record& record, std::size_t at) {
    return static_cast<unsigned char>(record.stamp + at * 7 + (at >> 8));
  }
  static void fill(const Record& record, std::size_t from = 0) {
    for (std::size_t at = 0; at < record.bytes; at += stride(record.bytes)) {
      if (at >= from) record.block[at] = value(record, at);
    }
    if (record.bytes > 0) record.block[record.bytes - 1] = value(record, record.bytes - 1);
  }

  // Mostly small, a few of every kind: one in 2^k is 2^k times as large.
  std::size_t draw_size() {
    const int doublings = __builtin_ctzll(random() | 1ull << 18);
    return random() % (std::size_t{32} << doublings);
  }

  void create(Record& record, std::uint64_t what) {
    record.bytes = draw_size();
    record.stamp = random();
    if (what < 70) {
      record.block = static_cast<unsigned char*>(std::malloc(record.bytes));
    } else if (what < 85) {
      record.block = static_cast<unsigned char*>(std::calloc(1, record.bytes));
      for (std::size_t at = 0; at < record.bytes; at += stride(record.bytes))
        PROBE(record.block[at] == 0);
    } else {
      const std::size_t alignment = std::size_t{16} << random() % 10;
      record.block = static_cast<unsigned char*>(memalign(alignment, record.bytes));
      PROBE(reinterpret_cast<std::uintptr_t>(record.block) % alignment == 0);
    }
    PROBE(record.block != nullptr && malloc_usable_size(record.block) >= record.bytes);
    fill(record);
  }

  void resize(Record& record) {
    const std::size_t had = record.bytes;
    std::size_t bytes = random() % 2 == 0 ? had + had / 2 + 1 : draw_size() + 1;
    if (bytes > std::size_t{16} << 20) bytes = 100;
    record.block = static_cast<unsigned char*>(std::realloc(record.block, bytes));
    PROBE(record.block != nullptr);
    // What was marked before and is still inside must be unchanged.
    Record common = record;
    common.bytes = had;
    for (std::size_t at = 0; at < had && at < bytes; at += stride(had))
      PROBE(record.block[at] == value(common, at));
    record.bytes = bytes;
    fill(record);
  }

  // Gives the block to whichever thread comes next, and takes what lay there.
  void pass_on(Record& record, std::atomic<Record*>& exchange) {
    auto* parcel = static_cast<Record*>(std::malloc(sizeof(Record)));
    *parcel = record;
    record.block = nullptr;
    Record* other = exchange.exchange(parcel);
    if (other == nullptr) return;
    record = *other;
    std::free(other);
    check(record);
  }

  Record* records_;
  std::uint64_t state_;
};

void shadow(Arguments arguments) {
  const long operations = number(arguments, 0, 1000000);
  const long threads = number(arguments, 1, 1);
  const auto seed = static_cast<std::uint64_t>(number(arguments, 2, 1));
  std::printf("shadow seed %llu\n", static_cast<unsigned long long>(seed));
  std::atomic<Record*> exchange[16] = {};
  std::vector<std::thread> workers;
  for (long id = 0; id < threads; ++id) {
    workers.emplace_back([&, id] {
      Table table(seed * 1000 + static_cast<std::uint64_t>(id));
      for (long i = 0; i < operations / threads; ++i) table.step(exchange[i % 16]);
      table.finish();
    });
  }
  for (std::thread& worker : workers) worker.join();
  for (auto& slot : exchange) {
    Record* parcel = slot.load();
    if (parcel == nullptr) continue;
    Table::check(*parcel);
    std::free(parcel->block);
    std::free(parcel);
  }
}

constexpr Experiment kExperiments[] = {{"shadow", shadow}};

}  // namespace

std::span<const Experiment> shadow_experiments() {
  return kExperiments;
}

}  // namespace probe
