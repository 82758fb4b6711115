// From an address to the live block that starts there, and to the window (the mapping of a physical
// slab) in which it lies.
//
// A radix tree with three levels over pages of 2 MiB, small ones: stretches lie far apart, and what
// a new one costs is the tables it is the first to touch (12 KiB). A page's descriptor is one cache
// line: its window and the first eight live blocks that start in it. A page with more of them has a
// table behind it, one entry per 512 bytes. No hash, no lock of its own; three dependent loads, the
// last of a line that an allocator with gigabytes still finds in its second-level cache: 5600 pages
// (11 GiB) are 350 KiB. Tables alone, without the eight, are 16 KiB a page: every new start is a
// line that was never touched, and that miss was a third of the time of an allocation.
//
//   address 0x7f12_3456_7800   page 0x7f12_3456_7800 >> 21, entry (address >> 9) & 4095
//   descriptor                 starts {entry + 1, 0 when unused} x 8, blocks x 8, window, table
//
// Invariants: (1) an address is in its page's eight or in its table, never in both; (2) what is
// recorded is live: erase() comes before the block is given to anybody else. So a wild pointer and
// a second free find nothing.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "plimsoll/memory/block_table.h"

namespace plimsoll::memory {

inline constexpr int kPageBits = 21;
inline constexpr std::int64_t kPage = std::int64_t{1} << kPageBits;

using WindowIndex = std::uint32_t;
inline constexpr WindowIndex kNoWindow = 0;

class PageMap {
 public:
  // The block recorded for `address`, or none.
  BlockIndex find(std::uint64_t address) const {
    const Page* page = page_at(address);
    if (page == nullptr) return kNoBlock;
    const unsigned slot = slot_with(*page, start_of(address));
    if (slot < kSlots) [[likely]]
      return page->blocks[slot];
    return page->table == nullptr ? kNoBlock : (*page->table)[entry_of(address)];
  }

  // find(), after which nothing is recorded there.
  BlockIndex erase(std::uint64_t address) {
    Page* page = page_at(address);
    if (page == nullptr) return kNoBlock;
    const unsigned slot = slot_with(*page, start_of(address));
    if (slot < kSlots) [[likely]] {
      set_start(*page, slot, 0);
      return page->blocks[slot];
    }
    if (page->table == nullptr) return kNoBlock;
    return std::exchange((*page->table)[entry_of(address)], kNoBlock);
  }

  // Nothing may be recorded for `address` yet.
  void record(std::uint64_t address, BlockIndex block) {
    Page& page = make_page(address);
    const unsigned slot = slot_with(page, 0);
    if (slot < kSlots) [[likely]] {
      set_start(page, slot, start_of(address));
      page.blocks[slot] = block;
      return;
    }
    if (page.table == nullptr) [[unlikely]]
      page.table = make_table();
    (*page.table)[entry_of(address)] = block;
  }

  WindowIndex window(std::uint64_t address) const {
    const Page* page = page_at(address);
    return page == nullptr ? kNoWindow : page->window;
  }

  void set_window(std::uint64_t address, std::int64_t size, WindowIndex window) {
    for_each_page(address, size, [&](Page& page) { page.window = window; });
  }

  // Nothing may be recorded there any more. Tables go to the next pages that need one: addresses
  // are used all over, and a table for each ever used would be a hundredth of them.
  void clear_window(std::uint64_t address, std::int64_t size) {
    for_each_page(address, size, [&](Page& page) {
      page.window = kNoWindow;
      if (page.table != nullptr) spare_tables_.push_back(std::exchange(page.table, nullptr));
    });
  }

 private:
  static constexpr int kAddressBits = 48;
  static constexpr int kChunkBits = 6;
  static constexpr int kMiddleBits = 10;
  static constexpr std::size_t kRoot = std::size_t{1}
                                       << (kAddressBits - kPageBits - kChunkBits - kMiddleBits);
  static constexpr std::size_t kEntries = std::size_t{1} << (kPageBits - kGranuleBits);
  static constexpr unsigned kSlots = 8;
  static constexpr unsigned kLanes = 4;  // of 16 bits in a word
  using Table = std::array<BlockIndex, kEntries>;
  struct alignas(64) Page {
    std::array<std::uint64_t, kSlots / kLanes> starts{};  // four entries + 1 in each; 0: unused
    std::array<BlockIndex, kSlots> blocks{};
    Table* table = nullptr;
    WindowIndex window = kNoWindow;
  };
  using Chunk = std::array<Page, std::size_t{1} << kChunkBits>;
  using Middle = std::array<std::unique_ptr<Chunk>, std::size_t{1} << kMiddleBits>;

  static std::size_t entry_of(std::uint64_t address) {
    return (address >> kGranuleBits) & (kEntries - 1);
  }
  static std::uint64_t start_of(std::uint64_t address) { return entry_of(address) + 1; }
  static std::size_t root_of(std::uint64_t address) {
    return address >> (kPageBits + kChunkBits + kMiddleBits);
  }
  static std::size_t middle_of(std::uint64_t address) {
    return (address >> (kPageBits + kChunkBits)) & ((std::size_t{1} << kMiddleBits) - 1);
  }
  static std::size_t page_of(std::uint64_t address) {
    return (address >> kPageBits) & ((std::size_t{1} << kChunkBits) - 1);
  }

  // The first slot whose start is `start`, kSlots when there is none. Four are compared at once: a
  // lane of x is zero where they are equal, and borrowing from the lane finds the lowest one.
  // Starts are read and written by the word, because a load that overlaps a narrower store has to
  // wait for it.
  static unsigned slot_with(const Page& page, std::uint64_t start) {
    constexpr std::uint64_t kOnes = 0x0001000100010001;
    for (unsigned word = 0; word < page.starts.size(); ++word) {
      const std::uint64_t x = page.starts[word] ^ (kOnes * start);
      const std::uint64_t zero = (x - kOnes) & ~x & (kOnes << 15);
      if (zero != 0) [[likely]] {
        return word * kLanes + static_cast<unsigned>(std::countr_zero(zero)) / 16;
      }
    }
    return kSlots;
  }
  static void set_start(Page& page, unsigned slot, std::uint64_t start) {
    const unsigned shift = slot % kLanes * 16;
    std::uint64_t& word = page.starts[slot / kLanes];
    word = (word & ~(std::uint64_t{0xffff} << shift)) | start << shift;
  }

  const Page* page_at(std::uint64_t address) const {
    return const_cast<PageMap*>(this)->page_at(address);
  }
  Page* page_at(std::uint64_t address) {
    if (root_of(address) >= kRoot || root_[root_of(address)] == nullptr) return nullptr;
    Chunk* chunk = (*root_[root_of(address)])[middle_of(address)].get();
    return chunk == nullptr ? nullptr : &(*chunk)[page_of(address)];
  }
  Page& make_page(std::uint64_t address) {
    std::unique_ptr<Middle>& middle = root_[root_of(address)];
    if (middle == nullptr) [[unlikely]]
      middle = std::make_unique<Middle>();
    std::unique_ptr<Chunk>& chunk = (*middle)[middle_of(address)];
    if (chunk == nullptr) [[unlikely]]
      chunk = std::make_unique<Chunk>();
    return (*chunk)[page_of(address)];
  }
  template <typename Visit>
  void for_each_page(std::uint64_t address, std::int64_t size, Visit visit) {
    const std::uint64_t end = address + static_cast<std::uint64_t>(size);
    for (std::uint64_t at = address; at < end; at += static_cast<std::uint64_t>(kPage))
      visit(make_page(at));
  }
  Table* make_table() {
    if (!spare_tables_.empty()) {
      Table* table = spare_tables_.back();
      spare_tables_.pop_back();
      return table;
    }
    tables_.push_back(std::make_unique<Table>());
    return tables_.back().get();
  }

  std::vector<std::unique_ptr<Middle>> root_ = std::vector<std::unique_ptr<Middle>>(kRoot);
  std::vector<std::unique_ptr<Table>> tables_;
  std::vector<Table*> spare_tables_;  // all of their entries are none
};

}  // namespace plimsoll::memory
