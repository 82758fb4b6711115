// How bytes grow with one size: what a law is made of, and how it is found.
//
//   bytes(n) = (constant + linear*n + quadratic*n^2) / divisor        whole for every n it is for
//            + for each share: tensors * granule * ceil(whole / (granule * n)) * (n or 1)
//
// A polynomial is what batches, lengths, widths and numbers of layers give. Strides round: an image
// of 225 pixels has as many rows in the last stage as one of 224, so bytes are a polynomial only
// along every 32nd size, and the law says of which (`period`, from `start`).
//
// A share is one part of `whole` bytes that are divided by n, rounded up to granules: the moments
// of one of n ranks, the rows of one of n experts. `each` counts the parts of all n.
//
//   whole 640, granule 1, each:   n = 3: 3 * 214 = 642   n = 5: 5 * 128 = 640
//
// Everything is found from samples and kept only where it gives samples back that it was not made
// from. Exact: arithmetic is in 128 bits, and what does not fit 64 is no law.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace plimsoll::report {

struct Polynomial {
  std::int64_t constant = 0;
  std::int64_t linear = 0;
  std::int64_t quadratic = 0;
  std::int64_t divisor = 1;

  bool operator==(const Polynomial&) const = default;
};

struct Share {
  std::int64_t tensors = 1;
  std::int64_t granule = 1;  // bytes
  std::int64_t whole = 0;    // bytes
  bool each = false;
  bool operator==(const Share&) const = default;
};

struct Growth {
  Polynomial polynomial;
  std::vector<Share> shares;

  // Nothing where it is no whole number, or too large.
  std::optional<std::int64_t> at(std::int64_t n) const;
  bool operator==(const Growth&) const = default;
};

// Bytes at a size, or nothing where there is no such model.
using BytesAt = std::function<std::optional<std::int64_t>(std::int64_t n)>;

// Through start, start + period and start + 2 * period, if it also gives what lies at
// start + 3 * period and at every size of `more` that is so many periods away and has bytes.
std::optional<Growth> fit_polynomial(std::int64_t start, std::int64_t period, const BytesAt& bytes,
                                     const std::vector<std::int64_t>& more);

// The same through here / 2, here and 2 * here, for sizes that are not next to each other; `more`
// and 4 * here are checked.
std::optional<Growth> fit_doubling(std::int64_t here, const BytesAt& bytes,
                                   const std::vector<std::int64_t>& more);

// a + b*n + c*n*ceil(d/n): d units of c bytes dealt out to n. From eight neighbours.
std::optional<Growth> fit_dealt_out(std::int64_t start, const BytesAt& bytes,
                                    const std::vector<std::int64_t>& more);

}  // namespace plimsoll::report
