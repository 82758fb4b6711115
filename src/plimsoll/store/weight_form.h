// The form in which a tensor's chunks are stored: raw, or one of codec/weights/weight_codecs.h.
//
// Forms have numbers, which .plim files hold: 0 is raw, and n the n-th codec of that table. A chunk
// that a codec refuses, or that it would not make smaller, is stored raw: each chunk says which it
// is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/store/element.h"

namespace plimsoll::store {

enum class Form : std::uint8_t { kRaw = 0 };

std::vector<Form> all_forms();  // raw first
std::string_view name(Form form);
Result<Form> parse_form(std::string_view name);
bool is_lossless(Form form);
// Whether weights may stay in memory in this form (codec/weights/encoded_matrix.h).
bool stays_in_memory(Form form);
// Whether a tensor has this form. What loses something is for matrices of floats only: vectors
// (biases, scales of norms) are small and need every bit.
bool takes(Form form, Element element, std::span<const std::uint64_t> dims);

// Of a tensor of so many bytes.
std::uint64_t chunks_of(std::uint64_t bytes);
std::size_t chunk_bytes(std::uint64_t bytes, std::uint64_t chunk);

struct Chunk {
  Form form = Form::kRaw;
  std::vector<std::byte> bytes;
};
// `values` are those of chunk number `chunk` of the tensor.
Chunk encode_chunk(Form form, Element element, std::span<const std::uint64_t> dims,
                   std::uint64_t chunk, std::span<const std::byte> values);
// False: damaged. `values` has chunk_bytes() bytes, aligned to 8.
bool decode_chunk(Form form, Element element, std::span<const std::uint64_t> dims,
                  std::uint64_t chunk, std::span<const std::byte> bytes,
                  std::span<std::byte> values);

// Magnitude pruning: the sizes of values, appended, and values of at most some size set to zero. Of
// elements that are no floats nothing is pruned.
void add_sizes(Element element, std::span<const std::byte> values, std::vector<float>& out);
void prune(Element element, float most, std::span<std::byte> values);

// How far values are from what they were. Not for elements that are no floats: those are equal.
struct FormError {
  double largest = 0;      // difference
  double largest_was = 0;  // value
  double squares = 0;      // of differences
  double squares_was = 0;
  double squares_is = 0;
  double products = 0;
  double values = 0;        // how many, all finite
  bool not_finite = false;  // a value that is no number became another, or the other way round

  void add(Element element, std::span<const std::byte> was, std::span<const std::byte> is);
  void add(double was, double is);
  void add(const FormError& other);
  double max_error() const;  // largest difference / largest value
  double rms_error() const;  // root of mean square of differences / of values
  double cosine() const;     // of the angle between all values before and after
};

struct PlaneCounts {
  std::uint64_t counts[8][256] = {};
};
// Bits of information in an element, if the bytes of each of its planes were all there is to know:
// what an entropy coder of bytes could reach. For fp32 and bf16 the exponent is a plane.
class Entropy {
 public:
  void add(Element element, std::span<const std::byte> values);
  double bytes() const;  // for all that was added

 private:
  std::optional<PlaneCounts> of_width_[9][2];  // by bytes of an element, and whether it was turned
};

}  // namespace plimsoll::store
