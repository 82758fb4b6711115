#include "statistics.h"

#include <sys/resource.h>

#include "metadata.h"
#include "slices.h"
#include "span_heap.h"
#include "text.h"
#include "threads.h"

namespace plimsoll::heap {
namespace {

std::uint64_t peak_resident_bytes() {
  rusage used{};
  return ::getrusage(RUSAGE_SELF, &used) == 0 ? static_cast<std::uint64_t>(used.ru_maxrss) * 1024
                                              : 0;
}

}  // namespace

plimsoll_malloc_statistics statistics() {
  if (this_pool->is_working) this_pool->count_handed_out();
  const PoolTotals pools = pool_totals();
  Guard guard(heap_lock);
  const Footprint& footprint = span_heap.footprint();
  plimsoll_malloc_statistics out{};
  out.live_bytes = footprint.live();
  out.peak_bytes = footprint.peak();
  out.cached_bytes = footprint.cached();
  out.peak_held_bytes = footprint.peak_held();
  out.peak_resident_bytes = peak_resident_bytes();
  out.reserved_bytes = span_heap.reserved();
  out.metadata_bytes = metadata_total();
  out.reused_bytes = span_heap.reused();
  out.purged_bytes = span_heap.purged();
  out.allocations = pools.blocks + slice_allocations() + span_heap.blocks();
  out.remote_frees = pools.remote_frees;
  out.pools = pools.pools;
  return out;
}

void print_statistics(int file) {
  const plimsoll_malloc_statistics s = statistics();
  Text line;
  line << "plimsoll malloc: peak ";
  line.size(s.peak_bytes) << " live, ";
  line.size(s.peak_resident_bytes) << " resident; ";
  line.size(s.cached_bytes) << " cached at the end; " << std::uint64_t{s.allocations}
                            << " allocations; ";
  line << std::uint64_t{s.reused_bytes / kKernelPage} << " page faults saved, ";
  line.size(s.purged_bytes) << " given back\n";
  line.write_to(file);
}

bool write_statistics(const char* path) {
  const int file = open_file(path, true);
  if (file < 0) return false;
  const plimsoll_malloc_statistics s = statistics();
  Text line;
  const auto field = [&](const char* name, std::uint64_t value) {
    line << ",\"" << name << "\":" << value;
  };
  line << "{\"schema\":1";
  field("peak_bytes", s.peak_bytes);
  field("peak_resident_bytes", s.peak_resident_bytes);
  field("cached_bytes", s.cached_bytes);
  field("allocations", s.allocations);
  field("live_bytes", s.live_bytes);
  field("peak_held_bytes", s.peak_held_bytes);
  field("reserved_bytes", s.reserved_bytes);
  field("metadata_bytes", s.metadata_bytes);
  field("reused_bytes", s.reused_bytes);
  field("faults_saved", s.reused_bytes / kKernelPage);
  field("purged_bytes", s.purged_bytes);
  field("remote_frees", s.remote_frees);
  field("pools", s.pools);
  line << "}\n";
  line.write_to(file);
  close_file(file);
  return true;
}

}  // namespace plimsoll::heap
