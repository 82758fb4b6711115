#include "plimsoll/report/growth.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace plimsoll::report {
namespace {

__extension__ using Wide = __int128;

std::optional<std::int64_t> narrowed(Wide value) {
  if (value < std::numeric_limits<std::int64_t>::min() ||
      value > std::numeric_limits<std::int64_t>::max())
    return std::nullopt;
  return static_cast<std::int64_t>(value);
}

Wide share_at(const Share& share, std::int64_t n) {
  const Wide slice = Wide(share.granule) * n;
  const Wide parts = (share.whole + slice - 1) / slice;
  return Wide(share.tensors) * share.granule * parts * (share.each ? n : 1);
}

using Three = std::array<std::int64_t, 3>;

// Through y at three sizes, by Newton's divided differences over one divisor.
std::optional<Polynomial> parabola(const Three& n, const Three& y) {
  const Wide d01 = Wide(n[1]) - n[0];
  const Wide d02 = Wide(n[2]) - n[0];
  const Wide d12 = Wide(n[2]) - n[1];
  const Wide first = (Wide(y[1]) - y[0]) * d02 * d12;                         // over all three
  const Wide second = (Wide(y[2]) - y[1]) * d01 - (Wide(y[1]) - y[0]) * d12;  // likewise
  const Wide divisor = d01 * d02 * d12;
  const Wide all[4] = {divisor * y[0] - first * n[0] + second * n[0] * n[1],
                       first - second * (Wide(n[0]) + n[1]), second, divisor};
  Wide common = 0;
  for (Wide number : all) {
    while (number != 0) common = std::exchange(number, common % number);
  }
  if (common < 0) common = -common;
  const auto constant = narrowed(all[0] / common);
  const auto linear = narrowed(all[1] / common);
  const auto quadratic = narrowed(all[2] / common);
  if (!constant || !linear || !quadratic) return std::nullopt;
  return Polynomial{*constant, *linear, *quadratic, static_cast<std::int64_t>(divisor / common)};
}

std::optional<Growth> through(const Three& n, const BytesAt& bytes) {
  Three y{};
  for (std::size_t k = 0; k < y.size(); ++k) {
    const auto sample = bytes(n[k]);
    if (!sample) return std::nullopt;
    y[k] = *sample;
  }
  const auto found = parabola(n, y);
  return found ? std::optional(Growth{*found, {}}) : std::nullopt;
}

// Eight neighbours decide a + b*n + c*n*ceil(d/n); d is looked for up to this.
constexpr std::int64_t kMostUnits = 1 << 16;
constexpr std::size_t kNeighbours = 8;

std::int64_t dealt(std::int64_t units, std::int64_t n) {
  return n * ((units + n - 1) / n);
}

bool predicts(const Growth& growth, std::int64_t n, const BytesAt& bytes) {
  const auto expected = bytes(n);
  return !expected || growth.at(n) == expected;
}

// a, b and c for a given d, from three of the samples by second differences of what is left.
std::optional<Growth> with_units(std::int64_t units, std::int64_t start,
                                 const std::array<std::int64_t, kNeighbours>& y) {
  const auto bend = [&](auto at) { return at(0) - 2 * at(1) + at(2); };
  for (std::size_t i = 0; i + 2 < kNeighbours; ++i) {
    const auto n = [&](std::size_t k) { return start + static_cast<std::int64_t>(i + k); };
    const std::int64_t over = bend([&](std::size_t k) { return dealt(units, n(k)); });
    if (over == 0) continue;
    const std::int64_t c = bend([&](std::size_t k) { return y[i + k]; }) / over;
    if (c <= 0) return std::nullopt;
    const std::int64_t at_first = y[i] - c * dealt(units, n(0));
    const std::int64_t slope = y[i + 1] - c * dealt(units, n(1)) - at_first;
    return Growth{{at_first - slope * n(0), slope, 0, 1}, {{1, c, c * units, true}}};
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> Growth::at(std::int64_t n) const {
  const Wide sum =
      polynomial.constant + Wide(n) * (polynomial.linear + Wide(n) * polynomial.quadratic);
  if (sum % polynomial.divisor != 0) return std::nullopt;
  Wide out = sum / polynomial.divisor;
  for (const Share& share : shares) out += share_at(share, n);
  return narrowed(out);
}

std::optional<Growth> fit_polynomial(std::int64_t start, std::int64_t period, const BytesAt& bytes,
                                     const std::vector<std::int64_t>& more) {
  const std::int64_t fourth = start + 3 * period;
  if (!bytes(start) || !bytes(fourth)) return std::nullopt;
  auto out = through({start, start + period, start + 2 * period}, bytes);
  if (!out || !predicts(*out, fourth, bytes)) return std::nullopt;
  const bool holds = std::all_of(more.begin(), more.end(), [&](std::int64_t n) {
    return (n - start) % period != 0 || predicts(*out, n, bytes);
  });
  return holds ? out : std::nullopt;
}

std::optional<Growth> fit_doubling(std::int64_t here, const BytesAt& bytes,
                                   const std::vector<std::int64_t>& more) {
  if (here < 2 || here % 2 != 0 || !bytes(4 * here)) return std::nullopt;
  auto out = through({here / 2, here, 2 * here}, bytes);
  if (!out || !predicts(*out, 4 * here, bytes)) return std::nullopt;
  const bool holds = std::all_of(more.begin(), more.end(),
                                 [&](std::int64_t n) { return predicts(*out, n, bytes); });
  return holds ? out : std::nullopt;
}

std::optional<Growth> fit_dealt_out(std::int64_t start, const BytesAt& bytes,
                                    const std::vector<std::int64_t>& more) {
  std::array<std::int64_t, kNeighbours> y{};
  for (std::size_t k = 0; k < y.size(); ++k) {
    const auto sample = bytes(start + static_cast<std::int64_t>(k));
    if (!sample) return std::nullopt;
    y[k] = *sample;
  }
  for (std::int64_t units = start; units < kMostUnits; ++units) {
    auto out = with_units(units, start, y);
    if (!out) continue;
    bool holds = true;
    for (std::size_t k = 0; k < y.size() && holds; ++k)
      holds = out->at(start + static_cast<std::int64_t>(k)) == y[k];
    for (std::size_t m = 0; m < more.size() && holds; ++m) holds = predicts(*out, more[m], bytes);
    if (holds) return out;
  }
  return std::nullopt;
}

}  // namespace plimsoll::report
