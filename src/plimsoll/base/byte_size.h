// Sizes as people write and read them.
//
// parse_byte_size takes `1.5GiB`, `800MB`, `64k`, `123456`; with `whole` given, also `40%` of it.
// MB is 10^6 and MiB is 2^20, as the standards say; a bare K, M, G or T is binary, as people who
// type one mean. Fractions are fine as long as the result is at least one byte.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/base/units.h"

namespace plimsoll {

Result<Bytes> parse_byte_size(std::string_view text, std::optional<Bytes> whole = std::nullopt);

// `5%` as 0.05; at least 0 %.
Result<double> parse_percentage(std::string_view text);

// True for `40%`: the size can only be known once the whole is.
bool is_percentage(std::string_view text);

// "1.50 GiB", "812.3 MiB", "17 B": at most four significant digits, binary units.
std::string human(Bytes bytes);

// "1,610,612,736": for tables where the last byte matters.
std::string grouped(std::int64_t number);

// "layer1/conv2d (96.0 MiB), layer1/relu (96.0 MiB) and 4 more": as many sizes as names.
std::string named_bytes(const std::vector<std::string>& names, const std::vector<Bytes>& bytes);

// ", beside 133.8 MiB of weights, state and scratch": what the named ones leave of the whole.
std::string beside(Bytes whole, const std::vector<Bytes>& named);

// "4.78 s", "320 ms", "12.3 µs": three significant digits and never an exponent. From 1e7 on
// grouped digits without a unit: no step takes months, a DAG may be weighed by another cost.
std::string human_seconds(double seconds);

// "10s", "250ms", "2m", "1.5" (seconds) as seconds.
Result<double> parse_seconds(std::string_view text);

}  // namespace plimsoll
