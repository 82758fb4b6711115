// ternary: weights as -s, 0 or +s, runs of them as words of 16 bits. Less than one bit a weight
// where nine in ten are zero, as in the experts of large mixtures.
//
// A row's scale s is the mean size of the values that are not rounded to zero; zero are those below
// 0.7 of the mean size of all (Li and Liu's rule). A row whose values are -s, 0 and +s already is
// kept exactly.
//
// The runs are words of Tunstall's code, the opposite of Huffman's: where that has words of
// variable length for fixed pieces, here each word has 16 bits and stands for a run of variable
// length, so that decoding is one look-up a word and can begin anywhere. The dictionary is not
// stored. It follows from the share of zeros, in 64ths: begin with the three runs of one weight,
// and replace the likeliest run by its three continuations until 65,535 runs are there.
//
//   zeros 90 %   entropy 0.569 bits a weight, this code about 0.60
//   zeros 33 %   entropy 1.585, this code about 1.63
//
//   chunk   a byte: zeros in 64ths, 1..63; 4 bytes: number of words; for each row an fp32 scale;
//           the words. The last run may reach beyond the last weight: with zeros.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "plimsoll/codec/weights/weight_codec.h"

namespace plimsoll::codec {

extern const WeightCodec kTernaryWeights;

// The share of zeros, in 64ths, that a chunk of this form was written for; 0: it is none.
unsigned zeros_of_ternary(std::span<const std::uint8_t> chunk);

// A run: its length, and where its weights that are not zero stand.
class RunDictionary {
 public:
  struct Nonzero {
    std::uint8_t place;
    std::int8_t sign;
  };
  struct Run {
    std::uint8_t length;
    std::uint8_t nonzeros;
    std::uint32_t first;  // in nonzeros()
  };
  // The first four of a run, for products: behind the last, places 0 that count for nothing.
  // One word, so that it is one load:
  //   length | number of nonzeros << 8 | places << 16, 24, 32, 40 | signs << 48, two bits each:
  //   0 nothing, 1 plus, 2 minus
  using FirstFour = std::uint64_t;
  // 64ths of zeros, 1..63. Made once for each, for all threads.
  static const RunDictionary& of(unsigned zeros);

  // What it takes in memory, as long as the process lives.
  std::size_t bytes() const;

  const std::vector<Run>& runs() const { return runs_; }
  const std::vector<FirstFour>& first_four() const { return first_four_; }
  const Nonzero* nonzeros(const Run& run) const { return nonzeros_.data() + run.first; }
  // The longest run that begins with these weights, continued with zeros where they end.
  std::uint16_t word_for(const std::int8_t* weights, std::size_t count) const;

 private:
  explicit RunDictionary(unsigned zeros);
  // Inner nodes of the tree of runs: below each, by its next weight (0, +1, -1), another node or
  // the word ~index.
  std::vector<std::array<std::int32_t, 3>> nodes_;
  std::vector<Run> runs_;
  std::vector<FirstFour> first_four_;
  std::vector<Nonzero> nonzeros_;
};

}  // namespace plimsoll::codec
