#include "plimsoll/dist/communicator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "plimsoll/base/check.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/dist/add_in_order.h"

namespace plimsoll::dist {
namespace {

// A library's counts of elements are ints.
constexpr std::int64_t kPiece = std::int64_t{256} << 20;
// One message as long as a count of bytes can be an int.
constexpr std::int64_t kMostSent = (std::int64_t{1} << 31) - (std::int64_t{1} << 20);
// Sums in the order of ranks take scratch, which pieces keep small. They are the same bits whatever
// the pieces.
constexpr std::int64_t kOrderedPiece = std::int64_t{32} << 20;

std::int64_t element_bytes(ir::DType dtype) {
  return ir::bits(dtype) / 8;
}

using Range = Interval<std::int64_t>;

// Parts of whole elements, as equal as can be, in bytes.
std::vector<Range> equal_parts(std::int64_t count, std::int64_t bytes, int parts) {
  std::vector<Range> out;
  for (int part = 0; part < parts; ++part)
    out.push_back({count * part / parts * bytes, count * (part + 1) / parts * bytes});
  return out;
}

// Of each part the bytes from `at` on, `piece` at most.
std::vector<Range> piece_of(std::span<const std::int64_t> begins, std::int64_t unit,
                            std::int64_t at, std::int64_t piece) {
  std::vector<Range> out;
  for (std::size_t r = 0; r + 1 < begins.size(); ++r) {
    const std::int64_t end = begins[r + 1] * unit;
    const std::int64_t from = std::min(begins[r] * unit + at, end);
    out.push_back({from, std::min(from + piece, end)});
  }
  return out;
}

std::int64_t longest(std::span<const std::int64_t> begins) {
  std::int64_t out = 0;
  for (std::size_t r = 0; r + 1 < begins.size(); ++r)
    out = std::max(out, begins[r + 1] - begins[r]);
  return out;
}

std::int64_t share(std::int64_t bytes, int size) {
  return bytes / size * (size - 1) + bytes % size * (size - 1) / size;
}

class SelfCommunicator final : public Communicator {
 public:
  SelfCommunicator() : Communicator(0, 1) {}
  std::string_view name() const override { return "self"; }
  [[noreturn]] void abort(ErrorCode code, const std::string& line) override {
    std::fprintf(stderr, "plimsoll: %s\n", line.c_str());
    std::exit(static_cast<int>(code));
  }

 protected:
  bool sums(ir::DType) const override { return true; }
  void sum_all(std::byte*, std::int64_t, ir::DType, void*) override {}
  void sum_parts(std::byte*, std::int64_t, ir::DType, void*) override {}
  void exchange(const std::byte*, Parts, std::byte*, void*) override {}
  void gather_parts(std::byte*, Parts, void*) override {}
  void send_to_all(std::byte*, std::int64_t, int, void*) override {}
};

class PaperCommunicator final : public Communicator {
 public:
  explicit PaperCommunicator(int ranks) : Communicator(0, ranks) {}
  std::string_view name() const override { return "paper"; }
  [[noreturn]] void abort(ErrorCode code, const std::string& line) override {
    std::fprintf(stderr, "plimsoll: %s\n", line.c_str());
    std::exit(static_cast<int>(code));
  }

 protected:
  bool sums(ir::DType dtype) const override {
    return dtype == ir::DType::kF32 || dtype == ir::DType::kF64;
  }
  void sum_all(std::byte*, std::int64_t, ir::DType, void*) override { refuse(); }
  void sum_parts(std::byte*, std::int64_t, ir::DType, void*) override { refuse(); }
  void exchange(const std::byte*, Parts, std::byte*, void*) override { refuse(); }
  void gather_parts(std::byte*, Parts, void*) override { refuse(); }
  void send_to_all(std::byte*, std::int64_t, int, void*) override { refuse(); }

 private:
  [[noreturn]] void refuse() {
    abort(ErrorCode::kInternal, "a collective of ranks that are only planned for");
  }
};

}  // namespace

// One collective: how often, how much, how long.
class Communicator::Timed {
 public:
  Timed(Traffic& traffic, std::int64_t wire_bytes) : traffic_(traffic) {
    ++traffic_.messages;
    traffic_.wire_bytes += wire_bytes;
  }
  ~Timed() { traffic_.seconds += watch_.seconds(); }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  Traffic& traffic_;
  Stopwatch watch_;
};

Result<Reduction> parse_reduction(std::string_view text) {
  if (text == "any") return Reduction::kAny;
  if (text == "fixed") return Reduction::kFixed;
  return fail(ErrorCode::kUsage, "reduction '{}': expects any or fixed", text);
}

std::string_view name(Reduction reduction) {
  return reduction == Reduction::kFixed ? "fixed" : "any";
}

Bytes Communicator::scratch(Bytes data, ir::DType dtype, Reduction how) const {
  if (size_ == 1 || (how == Reduction::kAny && sums(dtype))) return Bytes(0);
  const std::int64_t bytes = element_bytes(dtype);
  const std::int64_t most = std::min(data.value, kOrderedPiece) / bytes;
  return Bytes((most + size_ - 1) / size_ * bytes * (size_ - 1));
}

void Communicator::add_in_order(std::byte* own, const std::byte* received, std::int64_t count,
                                ir::DType dtype, void*) {
  add_parts_in_order(own, received, count, dtype, rank_, size_);
}

void Communicator::sum_in_order(std::byte* data, Parts parts, ir::DType dtype, std::byte* scratch,
                                void* queue) {
  exchange(data, parts, scratch, queue);
  const Range own = parts[static_cast<std::size_t>(rank_)];
  add_in_order(data + own.begin, scratch, (own.end - own.begin) / element_bytes(dtype), dtype,
               queue);
}

void Communicator::sum_own(const std::byte*, Parts, std::byte*, ir::DType, void*) {
  PLIMSOLL_CHECK(adds_in_order(), "{} sums parts neither in order nor otherwise", name());
}

Bytes Communicator::scatter_scratch(Bytes longest_part) const {
  if (size_ == 1 || !adds_in_order()) return Bytes(0);
  return Bytes(std::min(longest_part.value, kOrderedPiece / size_) * (size_ - 1));
}

void Communicator::scatter_sums(const std::byte* data, std::span<const std::int64_t> begins,
                                std::byte* out, ir::DType dtype, std::byte* scratch, void* queue) {
  const std::int64_t bytes = element_bytes(dtype);
  const auto own = static_cast<std::size_t>(rank_);
  const Timed timed(traffic_, (begins.back() - (begins[own + 1] - begins[own])) * bytes);
  const std::int64_t all = longest(begins) * bytes;
  if (!adds_in_order()) {
    for (std::int64_t at = 0; at < all; at += kPiece)
      sum_own(data, piece_of(begins, bytes, at, kPiece), out + at, dtype, queue);
    return;
  }
  const std::int64_t piece = std::max(bytes, kOrderedPiece / size_ / bytes * bytes);
  for (std::int64_t at = 0; at < all; at += piece) {
    const std::vector<Range> parts = piece_of(begins, bytes, at, piece);
    if (size_ > 1) exchange(data, parts, scratch, queue);
    const std::int64_t now = parts[own].end - parts[own].begin;
    copy(out + at, data + parts[own].begin, static_cast<std::size_t>(now), queue);
    if (size_ > 1) add_in_order(out + at, scratch, now / bytes, dtype, queue);
  }
}

void Communicator::gather_run(std::byte* data, std::span<const std::int64_t> begins, void* queue) {
  const auto own = static_cast<std::size_t>(rank_);
  const Timed timed(traffic_, (begins[own + 1] - begins[own]) * (size_ - 1));
  if (size_ == 1) return;
  const std::int64_t piece = kPiece / size_;
  for (std::int64_t at = 0; at < longest(begins); at += piece)
    gather_parts(data, piece_of(begins, 1, at, piece), queue);
}

void Communicator::zero(std::byte* to, std::size_t bytes, void*) {
  if (bytes > 0) std::memset(to, 0, bytes);
}

void Communicator::all_reduce(std::byte* data, std::int64_t count, ir::DType dtype, Reduction how,
                              std::byte* scratch, void* queue) {
  const std::int64_t bytes = element_bytes(dtype);
  const Timed timed(traffic_, 2 * share(count * bytes, size_));
  if (size_ == 1 || count == 0) return;
  const bool own_order = how == Reduction::kAny && sums(dtype);
  PLIMSOLL_CHECK(own_order || scratch != nullptr, "a sum in the order of ranks without scratch");
  const std::int64_t most = (own_order ? kPiece : kOrderedPiece) / bytes;
  for (std::int64_t at = 0; at < count; at += most) {
    const std::int64_t now = std::min(most, count - at);
    std::byte* const piece = data + at * bytes;
    if (own_order) {
      sum_all(piece, now, dtype, queue);
      continue;
    }
    const std::vector<Range> parts = equal_parts(now, bytes, size_);
    sum_in_order(piece, parts, dtype, scratch, queue);
    gather_parts(piece, parts, queue);
  }
}

void Communicator::reduce_scatter(std::byte* data, std::int64_t count, ir::DType dtype,
                                  Reduction how, std::byte* scratch, void* queue) {
  const std::int64_t bytes = element_bytes(dtype);
  const Timed timed(traffic_, share(count * size_ * bytes, size_));
  if (size_ == 1 || count == 0) return;
  const bool own_order = how == Reduction::kAny && sums(dtype);
  const std::int64_t most = own_order ? kPiece : kOrderedPiece;
  PLIMSOLL_CHECK(count * size_ * bytes <= most, "a scatter of {} bytes: at most {} at once",
                 count * size_ * bytes, most);
  if (own_order) return sum_parts(data, count, dtype, queue);
  PLIMSOLL_CHECK(scratch != nullptr, "a sum in the order of ranks without scratch");
  sum_in_order(data, equal_parts(count * size_, bytes, size_), dtype, scratch, queue);
}

void Communicator::all_gather(std::byte* data, Bytes part, void* queue) {
  const Timed timed(traffic_, part.value * (size_ - 1));
  if (size_ == 1 || part.value == 0) return;
  PLIMSOLL_CHECK(part.value * size_ <= kPiece, "{} bytes gathered: at most {} at once",
                 part.value * size_, kPiece);
  gather_parts(data, equal_parts(size_, part.value, size_), queue);
}

void Communicator::broadcast(std::byte* data, Bytes bytes, int root, void* queue) {
  const Timed timed(traffic_, share(bytes.value, size_));
  if (size_ == 1) return;
  for (std::int64_t at = 0; at < bytes.value; at += kMostSent)
    send_to_all(data + at, std::min(kMostSent, bytes.value - at), root, queue);
}

std::string Communicator::broadcast_text(std::string text, int root) {
  if (size_ == 1) return text;
  Communicator& comm = host();
  std::uint64_t length = text.size();
  comm.broadcast(reinterpret_cast<std::byte*>(&length), Bytes(sizeof length), root);
  text.resize(length);
  comm.broadcast(reinterpret_cast<std::byte*>(text.data()),
                 Bytes(static_cast<std::int64_t>(length)), root);
  return text;
}

void Communicator::copy(std::byte* to, const std::byte* from, std::size_t bytes, void*) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

std::shared_ptr<Communicator> make_paper_communicator(int ranks) {
  return std::make_shared<PaperCommunicator>(ranks);
}

std::shared_ptr<Communicator> make_self_communicator() {
  return std::make_shared<SelfCommunicator>();
}

}  // namespace plimsoll::dist
