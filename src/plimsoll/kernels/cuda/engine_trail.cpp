#include "plimsoll/kernels/cuda/engine_trail.h"

#include <charconv>

#include <fmt/format.h>

namespace plimsoll::kernels::cuda {
namespace {

constexpr std::string_view kDnn = "cudnn:";
constexpr std::string_view kBlas = "cublaslt:";
constexpr std::size_t kMostKnobs = 64;

// Splits off what stands before `mark`, or everything.
std::string_view take_word(std::string_view& text, char mark) {
  const std::size_t end = text.find(mark);
  const std::string_view out = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return out;
}

template <typename Number>
bool parse_number(std::string_view text, Number& out, int base = 10) {
  const char* const end = text.data() + text.size();
  const auto [stopped, code] = std::from_chars(text.data(), end, out, base);
  return code == std::errc() && stopped == end;
}

}  // namespace

EngineTrail::EngineTrail(std::string_view wanted) : free_(false) {
  while (!wanted.empty()) wanted_.emplace_back(take_word(wanted, ' '));
}

std::optional<std::string> EngineTrail::next() {
  if (free_) return std::nullopt;
  const std::size_t at = asked_++;
  // One choice too many is nobody's engine; finish() says so.
  return at < wanted_.size() ? wanted_[at] : std::string();
}

void EngineTrail::took(const std::string& engine) {
  taken_.push_back(engine);
}

Status EngineTrail::finish() const {
  if (free_ || asked_ == wanted_.size()) return {};
  return bad_input("the plan names {} engines, its kernel has {} here; plan again on this machine",
                   wanted_.size(), asked_);
}

std::string EngineTrail::text() const {
  std::string out;
  for (const std::string& engine : taken_) {
    if (engine.empty()) return {};
    out += (out.empty() ? "" : " ") + engine;
  }
  return out;
}

std::string to_string(const DnnEngine& engine) {
  std::string out = fmt::format("{}{}", kDnn, engine.index);
  for (const DnnEngine::Knob& knob : engine.knobs)
    out += fmt::format("/{}={}", knob.type, knob.value);
  return out;
}

std::optional<DnnEngine> parse_dnn_engine(std::string_view text) {
  if (!text.starts_with(kDnn)) return std::nullopt;
  text.remove_prefix(kDnn.size());
  DnnEngine out;
  if (!parse_number(take_word(text, '/'), out.index) || out.index < 0) return std::nullopt;
  while (!text.empty()) {
    std::string_view knob = take_word(text, '/');
    const std::string_view type = take_word(knob, '=');
    DnnEngine::Knob& one = out.knobs.emplace_back();
    if (!parse_number(type, one.type) || !parse_number(knob, one.value)) return std::nullopt;
    if (out.knobs.size() > kMostKnobs) return std::nullopt;
  }
  return out;
}

std::string to_string(const BlasAlgorithm& algorithm) {
  std::string out(kBlas);
  for (std::size_t i = 0; i < algorithm.size(); ++i)
    out += fmt::format("{}{:x}", i == 0 ? "" : ".", algorithm[i]);
  return out;
}

std::optional<BlasAlgorithm> parse_blas_algorithm(std::string_view text) {
  if (!text.starts_with(kBlas)) return std::nullopt;
  text.remove_prefix(kBlas.size());
  BlasAlgorithm out{};
  for (std::uint32_t& word : out) {
    if (!parse_number(take_word(text, '.'), word, 16)) return std::nullopt;
  }
  return text.empty() ? std::optional(out) : std::nullopt;
}

tl::unexpected<Error> no_such_engine(std::string_view library, std::string_view engine) {
  constexpr std::size_t kMostShown = 160;
  return bad_input("{} has no engine '{}', which the plan names; plan again on this machine",
                   library, engine.substr(0, kMostShown));
}

}  // namespace plimsoll::kernels::cuda
