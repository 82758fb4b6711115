// Which ways of a library a kernel takes, said by name: chosen once, and taken again.
//
// cuDNN has tens of engines for one convolution and cuBLASLt hundreds of algorithms for one
// product. Which one it lists first follows its version and the card; another one gives other bits
// and wants other scratch. So what a kernel took on the card is text, which profiles keep by
// signature (schedule/device_profile.h) and plans carry (plan/plan.h), and a kernel that is made
// for a plan takes what the plan names, or is refused in words.
//
//   conv      "cudnn:38/2=11/9=0"                            engine 38 with two of its knobs set
//   linear    "cublaslt:42.14.1.0.0.0.1c.0.5"                the algorithm's configuration
//   linear    "cublaslt:42.14... cublaslt:15.14..."          in two pieces (split_product.h)
//   conv      "direct"                                       cuDNN has none: a kernel of our own
//
// A trail holds the choices of one kernel in the order in which it makes them. Made empty, it takes
// down what is chosen; made from text, it says for each choice what is wanted.
//
//   EngineTrail trail(wanted);
//   ... if (auto name = trail.next()) find it, else choose; trail.took(name of it); ...
//   trail.text()                       // goes into the plan
//
// Invariant: text() of a kernel that was made from text is that text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"

namespace plimsoll::kernels::cuda {

class EngineTrail {
 public:
  EngineTrail() = default;
  explicit EngineTrail(std::string_view wanted);

  // What the next choice has to be; nothing where it is free.
  std::optional<std::string> next();
  void took(const std::string& engine);
  // Everything that was wanted was asked for, and nothing else.
  Status finish() const;
  // Empty where one of them has no name: the kernel can only be left to choose.
  std::string text() const;

 private:
  bool free_ = true;
  std::vector<std::string> wanted_;
  std::size_t asked_ = 0;
  std::vector<std::string> taken_;
};

// An engine of cuDNN: its number, and the knobs that are set, by type.
struct DnnEngine {
  struct Knob {
    std::int64_t type = 0;
    std::int64_t value = 0;
    bool operator==(const Knob&) const = default;
  };
  std::int64_t index = 0;
  std::vector<Knob> knobs;
  bool operator==(const DnnEngine&) const = default;
};
std::string to_string(const DnnEngine& engine);
// Nothing for text that is none.
std::optional<DnnEngine> parse_dnn_engine(std::string_view text);

// An algorithm of cuBLASLt: the values of CUBLASLT_ALGO_CONFIG_ID and the attributes behind it, in
// their order. Not the bytes of cublasLtMatmulAlgo_t: some of those are never written.
using BlasAlgorithm = std::array<std::uint32_t, 9>;
std::string to_string(const BlasAlgorithm& algorithm);
std::optional<BlasAlgorithm> parse_blas_algorithm(std::string_view text);

inline constexpr std::string_view kDirectEngine = "direct";

// The sentence for a library that does not have what a plan names.
tl::unexpected<Error> no_such_engine(std::string_view library, std::string_view engine);

}  // namespace plimsoll::kernels::cuda
