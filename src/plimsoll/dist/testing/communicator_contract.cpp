#include "plimsoll/dist/testing/communicator_contract.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory_resource>

#include <fmt/format.h>

namespace plimsoll::dist {
namespace {

// What collectives work on: of the default resource, which a test of device memory replaces.
template <typename T>
using Memory = std::pmr::vector<T>;

// In the order of ranks where that is possible.
Reduction ordered(const Communicator& comm) {
  return comm.adds_in_order() ? Reduction::kFixed : Reduction::kAny;
}

std::byte* bytes_of(auto& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

// Different on every rank, and such that the order of adding shows in the last bits.
template <typename T>
T number(int rank, std::int64_t i) {
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(std::sin(1.7 * static_cast<double>(i) + rank) * std::pow(10, rank % 5));
  return static_cast<T>(i * 7 + rank);
}

template <typename T>
Memory<T> numbers(int rank, std::int64_t count) {
  Memory<T> out;
  out.reserve(static_cast<std::size_t>(count) + 1);
  for (std::int64_t i = 0; i < count; ++i) out.push_back(number<T>(rank, i));
  return out;
}

// In the order of ranks.
template <typename T>
T sum(int ranks, std::int64_t i) {
  T out = number<T>(0, i);
  for (int r = 1; r < ranks; ++r) out = static_cast<T>(out + number<T>(r, i));
  return out;
}

template <typename T>
bool close(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    const double scale = std::is_same_v<T, float> ? 1e-2 : 1e-11;
    return std::abs(static_cast<double>(a) - static_cast<double>(b)) <= scale;
  }
  return a == b;
}

template <typename T>
std::string check_sums(Communicator& comm, ir::DType dtype, Reduction how) {
  for (const std::int64_t count : {0, 1, 2, 3, 63, 1000, 100003}) {
    Memory<T> data = numbers<T>(comm.rank(), count);
    data.push_back(T(77));  // behind the end
    Memory<std::byte> scratch(static_cast<std::size_t>(
        comm.scratch(Bytes(count * static_cast<std::int64_t>(sizeof(T))), dtype, how).value + 1));
    comm.all_reduce(bytes_of(data), count, dtype, how, scratch.data());
    for (std::int64_t i = 0; i < count; ++i) {
      const T got = data[static_cast<std::size_t>(i)], wanted = sum<T>(comm.size(), i);
      const bool right = how == Reduction::kFixed ? got == wanted : close(got, wanted);
      if (!right) return fmt::format("{} of {}: {} instead of {}", i, count, got, wanted);
    }
    if (data.back() != T(77)) return "wrote behind the end";
  }
  return {};
}

// One run or many: the same bits.
std::string check_pieces(Communicator& comm) {
  constexpr std::int64_t kCount = 5000;
  Memory<float> whole = numbers<float>(comm.rank(), kCount);
  Memory<float> pieces = whole;
  Memory<std::byte> scratch(static_cast<std::size_t>(
      comm.scratch(Bytes(kCount * 4), ir::DType::kF32, Reduction::kFixed).value + 1));
  comm.all_reduce(bytes_of(whole), kCount, ir::DType::kF32, Reduction::kFixed, scratch.data());
  for (std::int64_t at = 0; at < kCount; at += 777) {
    comm.all_reduce(bytes_of(pieces) + at * 4, std::min<std::int64_t>(777, kCount - at),
                    ir::DType::kF32, Reduction::kFixed, scratch.data());
  }
  return whole == pieces ? "" : "other bits when the run is cut into pieces";
}

// Longer than what is summed at once. Two ranks are enough to see it.
std::string check_long_runs(Communicator& comm) {
  if (comm.size() > 2) return {};
  constexpr std::int64_t kCount = 9'000'001;
  Memory<float> data(kCount, static_cast<float>(comm.rank() + 1));
  data.back() = 5;
  Memory<std::byte> scratch(static_cast<std::size_t>(
      comm.scratch(Bytes(kCount * 4), ir::DType::kF32, ordered(comm)).value + 1));
  comm.all_reduce(bytes_of(data), kCount, ir::DType::kF32, ordered(comm), scratch.data());
  const float wanted = comm.size() == 2 ? 3.0F : 1.0F;
  const auto right = std::count(data.begin(), data.end() - 1, wanted);
  if (right != kCount - 1 || data.back() != 5.0F * static_cast<float>(comm.size()))
    return fmt::format("{} of {} elements are right", right, kCount);
  return {};
}

// 256 and small ones: bf16 has 8 bits, so that rounding after every addition would lose them.
std::string check_narrow(Communicator& comm) {
  const auto brain = [](float x) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &x, 4);
    return static_cast<std::uint16_t>(bits >> 16);
  };
  Memory<std::uint16_t> data(100, brain(comm.rank() == 0 ? 256.0F : 1.0F));
  Memory<std::byte> scratch(
      static_cast<std::size_t>(comm.scratch(Bytes(200), ir::DType::kBF16, Reduction::kAny).value) +
      1);
  comm.all_reduce(bytes_of(data), 100, ir::DType::kBF16, Reduction::kAny, scratch.data());
  // 257 is half-way between 256 and 258 and goes to the even one; 258 and above are exact when even
  const float total = 255.0F + static_cast<float>(comm.size());
  const float wanted = std::nearbyint(total / 2) * 2;
  for (const std::uint16_t got : data) {
    if (got != brain(wanted) && comm.size() <= 256)
      return fmt::format("bf16: {:#x} instead of {:#x}", got, brain(wanted));
  }
  return {};
}

std::string check_scatter(Communicator& comm, Reduction how) {
  constexpr std::int64_t kPart = 501;
  Memory<double> data = numbers<double>(comm.rank(), kPart * comm.size());
  Memory<std::byte> scratch(static_cast<std::size_t>(
      comm.scratch(Bytes(kPart * comm.size() * 8), ir::DType::kF64, how).value + 1));
  comm.reduce_scatter(bytes_of(data), kPart, ir::DType::kF64, how, scratch.data());
  for (std::int64_t i = kPart * comm.rank(); i < kPart * (comm.rank() + 1); ++i) {
    if (!close(data[static_cast<std::size_t>(i)], sum<double>(comm.size(), i)))
      return fmt::format("element {}: {}", i, data[static_cast<std::size_t>(i)]);
  }
  comm.all_gather(bytes_of(data), Bytes(kPart * 8));
  for (std::int64_t i = 0; i < kPart * comm.size(); ++i) {
    if (!close(data[static_cast<std::size_t>(i)], sum<double>(comm.size(), i)))
      return fmt::format("gathered element {}: {}", i, data[static_cast<std::size_t>(i)]);
  }
  return {};
}

// Parts of other lengths, one of them empty where there are three.
std::string check_runs(Communicator& comm) {
  std::vector<std::int64_t> begins{0};
  for (int r = 0; r < comm.size(); ++r)
    begins.push_back(begins.back() + (r % 3 == 2 ? 0 : 1000 + 7 * r));
  const std::int64_t count = begins.back();
  const std::int64_t own = begins[static_cast<std::size_t>(comm.rank())];
  const std::int64_t part = begins[static_cast<std::size_t>(comm.rank()) + 1] - own;
  const Memory<float> data = numbers<float>(comm.rank(), count);
  Memory<float> sums(static_cast<std::size_t>(part) + 1, 77);
  Memory<std::byte> scratch(
      static_cast<std::size_t>(
          comm.scatter_scratch(Bytes(std::int64_t{4} * (1000 + 7 * comm.size()))).value) +
      1);
  comm.scatter_sums(reinterpret_cast<const std::byte*>(data.data()), begins, bytes_of(sums),
                    ir::DType::kF32, scratch.data());
  for (std::int64_t i = 0; i < part; ++i) {
    const float got = sums[static_cast<std::size_t>(i)], wanted = sum<float>(comm.size(), own + i);
    if (comm.adds_in_order() ? got != wanted : !close(got, wanted))
      return fmt::format("element {} of part {}: {} instead of {}", i, comm.rank(), got, wanted);
  }
  if (sums.back() != 77) return "wrote behind its part";
  Memory<float> all(static_cast<std::size_t>(count), -1);
  std::copy_n(sums.begin(), part, all.begin() + own);
  for (std::int64_t& begin : begins) begin *= 4;
  comm.gather_run(bytes_of(all), begins);
  for (std::int64_t i = 0; i < count; ++i) {
    if (!close(all[static_cast<std::size_t>(i)], sum<float>(comm.size(), i)))
      return fmt::format("gathered element {}: {}", i, all[static_cast<std::size_t>(i)]);
  }
  return {};
}

std::string check_broadcast(Communicator& comm) {
  for (int root = 0; root < comm.size(); ++root) {
    Memory<float> data = numbers<float>(comm.rank(), 10007);
    comm.broadcast(bytes_of(data), Bytes(std::int64_t{10007} * 4), root);
    if (data != numbers<float>(root, 10007)) return fmt::format("from rank {}", root);
  }
  const std::string text = comm.broadcast_text(comm.rank() == 0 ? "the plan" : "", 0);
  return text == "the plan" ? "" : "text: " + text;
}

std::string check_gather(Communicator& comm) {
  const std::vector<std::int64_t> all = comm.gather<std::int64_t>(std::int64_t{3} * comm.rank());
  if (static_cast<int>(all.size()) != comm.size()) return "wrong number";
  for (int r = 0; r < comm.size(); ++r) {
    if (all[static_cast<std::size_t>(r)] != std::int64_t{3} * r)
      return fmt::format("of rank {}", r);
  }
  return {};
}

std::string check_traffic(Communicator& comm) {
  comm.reset_traffic();
  Memory<float> data(1000, 1.0F);
  comm.all_reduce(bytes_of(data), 1000, ir::DType::kF32, Reduction::kAny, nullptr);
  const Traffic& traffic = comm.traffic();
  const std::int64_t ring = 2 * 4000 * (comm.size() - 1) / comm.size();
  if (traffic.messages != 1 || std::abs(traffic.wire_bytes - ring) > 1)
    return fmt::format("{} messages, {} bytes; a ring sends {}", traffic.messages,
                       traffic.wire_bytes, ring);
  return {};
}

}  // namespace

std::vector<ContractCase> communicator_contract() {
  using ir::DType;
  return {
      {"SumsFp32", [](auto& c) { return check_sums<float>(c, DType::kF32, Reduction::kAny); }},
      {"SumsFp64", [](auto& c) { return check_sums<double>(c, DType::kF64, Reduction::kAny); }},
      {"SumsWholeNumbers",
       [](auto& c) { return check_sums<std::int64_t>(c, DType::kI64, Reduction::kAny); }},
      {"SumsInTheOrderOfRanks",
       [](auto& c) { return check_sums<float>(c, DType::kF32, Reduction::kFixed); }, true},
      {"SumsInTheOrderOfRanksFp64",
       [](auto& c) { return check_sums<double>(c, DType::kF64, Reduction::kFixed); }, true},
      {"SameBitsInPieces", check_pieces, true},
      {"SumsLongRuns", check_long_runs},
      {"NarrowFloatsAreRoundedOnce", check_narrow},
      {"ScattersAndGathers", [](auto& c) { return check_scatter(c, Reduction::kAny); }},
      {"ScattersInTheOrderOfRanks", [](auto& c) { return check_scatter(c, Reduction::kFixed); },
       true},
      {"ScattersAndGathersPartsOfAnyLength", check_runs},
      {"BroadcastsFromEveryRank", check_broadcast},
      {"GathersNumbers", check_gather},
      {"CountsWhatARingSends", check_traffic},
  };
}

}  // namespace plimsoll::dist
