// From an address to the block that starts there, and to the physical slab behind it.
//
// A radix tree with two levels over pages of 2 MiB. At most one block of 2 MiB or more starts in a page:
// it stands in the page's own record. For smaller ones the page has a table with one entry per 512
// bytes. No hash, no lock of its own, two or three dependent loads. A flat table over the whole
// reservation would save a load and cost a page fault on the host for every half MiB of device memory
// that is touched first.
//
//   address 0x7f12_3456_7800   page 0x7f12_3456_7800 >> 21, entry (address >> 9) & 4095
//
// Entries are written when a block is handed out and never cleared: the reader compares the block's
// own address and state, so a stale entry, a wild pointer and a second free are all told apart from
// a live block.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "plimsoll/memory/block_table.h"

namespace plimsoll::memory {

inline constexpr int kPageBits = 21;
inline constexpr std::int64_t kPage = std::int64_t{1} << kPageBits;

using SlabIndex = std::uint32_t;
inline constexpr SlabIndex kNoSlab = 0;

class PageMap {
 public:
  // The block recorded for `address`, or none; O(1).
  BlockIndex find(std::uint64_t address) const {
    const Page* page = page_at(address);
    if (page == nullptr) return kNoBlock;
    if (page->large != kNoBlock && page->large_entry == entry_of(address)) return page->large;
    if (page->starts == nullptr) return kNoBlock;
    return (*page->starts)[entry_of(address)];
  }

  void record(std::uint64_t address, BlockIndex block, std::int64_t size) {
    Page& page = make_page(address);
    if (size >= kPage) {
      page.large = block;
      page.large_entry = static_cast<std::uint32_t>(entry_of(address));
      return;
    }
    if (page.large_entry == entry_of(address)) page.large = kNoBlock;
    if (page.starts == nullptr) [[unlikely]] page.starts = make_starts();
    (*page.starts)[entry_of(address)] = block;
  }

  SlabIndex slab(std::uint64_t address) const {
    const Page* page = page_at(address);
    return page == nullptr ? kNoSlab : page->slab;
  }

  void set_slab(std::uint64_t address, std::int64_t size, SlabIndex slab) {
    const std::uint64_t end = address + static_cast<std::uint64_t>(size);
    for (std::uint64_t at = address; at < end; at += static_cast<std::uint64_t>(kPage)) {
      make_page(at).slab = slab;
    }
  }

 private:
  static constexpr int kAddressBits = 48;
  static constexpr int kChunkBits = 13;
  static constexpr std::size_t kRoot = std::size_t{1} << (kAddressBits - kPageBits - kChunkBits);
  static constexpr std::size_t kEntries = std::size_t{1} << (kPageBits - kGranuleBits);
  using Starts = std::array<BlockIndex, kEntries>;
  struct Page {
    Starts* starts = nullptr;
    SlabIndex slab = kNoSlab;
    BlockIndex large = kNoBlock;
    std::uint32_t large_entry = 0;
  };
  using Chunk = std::array<Page, std::size_t{1} << kChunkBits>;

  static std::size_t entry_of(std::uint64_t address) {
    return (address >> kGranuleBits) & (kEntries - 1);
  }
  static std::size_t root_of(std::uint64_t address) {
    return address >> (kPageBits + kChunkBits);
  }
  static std::size_t page_of(std::uint64_t address) {
    return (address >> kPageBits) & ((std::size_t{1} << kChunkBits) - 1);
  }

  const Page* page_at(std::uint64_t address) const {
    if (root_of(address) >= kRoot || chunks_[root_of(address)] == nullptr) return nullptr;
    return &(*chunks_[root_of(address)])[page_of(address)];
  }
  Page& make_page(std::uint64_t address) {
    std::unique_ptr<Chunk>& chunk = chunks_[root_of(address)];
    if (chunk == nullptr) [[unlikely]] chunk = std::make_unique<Chunk>();
    return (*chunk)[page_of(address)];
  }
  Starts* make_starts() {
    tables_.push_back(std::make_unique<Starts>());
    return tables_.back().get();
  }

  std::vector<std::unique_ptr<Chunk>> chunks_ = std::vector<std::unique_ptr<Chunk>>(kRoot);
  std::vector<std::unique_ptr<Starts>> tables_;
};

}  // namespace plimsoll::memory
