// multiply() of a codec whose rows have no code between values: blocks one behind the other, or
// plain floats (weight_codec.h).
#pragma once

#include <algorithm>
#include <cstddef>

#include "plimsoll/codec/weights/chunk_rows.h"
#include "plimsoll/codec/weights/product_loops.h"

namespace plimsoll::codec {

// `values` of each row lie in `bytes` of a block; false where a row does not begin with one.
inline bool multiply_blocks(RowForm form, std::size_t values, std::size_t bytes,
                            std::span<const std::uint8_t> blocks, const ChunkShape& shape,
                            std::size_t count, Product product, const float* in, float* out) {
  const std::size_t columns = shape.columns;
  if (columns % values != 0 || shape.begin % values != 0 || count % values != 0 ||
      blocks.size() != count / values * bytes)
    return false;
  const std::size_t first_row = shape.begin / columns;
  const auto at = [&](std::size_t place) { return blocks.data() + place / values * bytes; };
  for (std::size_t place = 0; place < count;) {
    const std::size_t row = (shape.begin + place) / columns;
    const std::size_t column = (shape.begin + place) % columns;
    const std::size_t length = std::min(columns - column, count - place);
    if (product == Product::kRows) {
      out[row - first_row] += vector_dot(form, at(place), length, in + column);
    } else if (column == 0 && count - place >= 4 * columns) {
      const std::uint8_t* rows[4] = {at(place), at(place + columns), at(place + 2 * columns),
                                     at(place + 3 * columns)};
      vector_axpy4(form, rows, columns, in + row, out);
      place += 4 * columns;
      continue;
    } else {
      vector_axpy(form, at(place), length, in[row], out + column);
    }
    place += length;
  }
  return true;
}

// The decoded chunk times a vector.
inline void multiply_floats(const float* values, const ChunkShape& shape, std::size_t count,
                            Product product, const float* in, float* out) {
  const std::size_t first_row = shape.begin / shape.columns;
  for (std::size_t place = 0; place < count;) {
    const std::size_t row = (shape.begin + place) / shape.columns;
    const std::size_t column = (shape.begin + place) % shape.columns;
    const std::size_t length = std::min(shape.columns - column, count - place);
    const auto* at = reinterpret_cast<const std::uint8_t*>(values + place);
    if (product == Product::kRows) {
      out[row - first_row] += vector_dot(RowForm::kFloat, at, length, in + column);
    } else {
      vector_axpy(RowForm::kFloat, at, length, in[row], out + column);
    }
    place += length;
  }
}

// A value that is not zero, met in order or not: its share of the product.
class SparseSums {
 public:
  SparseSums(const ChunkShape& shape, Product product, const float* in, float* out)
      : shape_(shape),
        product_(product),
        in_(in),
        out_(out),
        first_row_(shape.begin / shape.columns) {
    move_to(0);
  }
  SparseSums(const SparseSums&) = delete;
  SparseSums& operator=(const SparseSums&) = delete;
  ~SparseSums() { end_row(); }
  void add(std::size_t place, float value) {
    if (place - row_begin_ >= row_length_) {
      end_row();
      move_to(place);
    }
    const std::size_t column = column_ + (place - row_begin_);
    if (product_ == Product::kRows) {
      sum_ += value * in_[column];
    } else {
      out_[column] += value * in_[row_];
    }
  }

 private:
  void end_row() {
    if (product_ == Product::kRows) out_[row_ - first_row_] += sum_;
    sum_ = 0;
  }
  // To the row of a place; places of the chunk, of which the first may lie in the middle of a row.
  void move_to(std::size_t place) {
    row_ = (shape_.begin + place) / shape_.columns;
    const std::size_t begin = row_ * shape_.columns;
    column_ = begin < shape_.begin ? shape_.begin - begin : 0;
    row_begin_ = begin < shape_.begin ? 0 : begin - shape_.begin;
    row_length_ = shape_.columns - column_;
  }

  const ChunkShape& shape_;
  Product product_;
  const float* in_;
  float* out_;
  std::size_t first_row_;
  float sum_ = 0;  // of the row so far
  std::size_t row_ = 0;
  std::size_t row_begin_ = 0;   // its first place in the chunk
  std::size_t row_length_ = 0;  // from there on
  std::size_t column_ = 0;      // of that place
};

}  // namespace plimsoll::codec
