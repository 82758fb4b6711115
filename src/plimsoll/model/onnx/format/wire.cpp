#include "plimsoll/model/onnx/format/wire.h"

#include <bit>
#include <cstring>

namespace plimsoll::model::onnx {

bool take_varint(WireBytes& bytes, std::uint64_t& value) {
  value = 0;
  for (std::size_t i = 0; i < 10 && i < bytes.size(); ++i) {
    const auto byte = std::to_integer<std::uint64_t>(bytes[i]);
    value |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      bytes = bytes.subspan(i + 1);
      return true;
    }
  }
  return false;
}

bool Wire::stop(const char* problem) {
  if (problem_ == nullptr) problem_ = problem;
  rest_ = {};
  return false;
}

bool Wire::next() {
  if (rest_.empty() || broken()) return false;
  std::uint64_t tag = 0;
  if (!take_varint(rest_, tag)) return stop("a field's tag is cut off");
  field_ = static_cast<std::uint32_t>(tag >> 3);
  if (field_ == 0 || (tag >> 3) > 0x1fffffff) return stop("a field has an impossible number");
  number_ = 0;
  content_ = {};
  const auto fixed = [&](std::size_t size) {
    if (rest_.size() < size) return stop("a number is cut off");
    std::memcpy(&number_, rest_.data(), size);
    rest_ = rest_.subspan(size);
    return true;
  };
  switch (tag & 7) {
    case 0:
      type_ = Type::kVarint;
      return take_varint(rest_, number_) || stop("a number is cut off");
    case 1:
      type_ = Type::kFixed64;
      return fixed(8);
    case 2: {
      type_ = Type::kBytes;
      std::uint64_t length = 0;
      if (!take_varint(rest_, length)) return stop("a length is cut off");
      if (length > rest_.size()) return stop("a field is longer than what is left of the file");
      content_ = rest_.first(static_cast<std::size_t>(length));
      rest_ = rest_.subspan(static_cast<std::size_t>(length));
      return true;
    }
    case 5:
      type_ = Type::kFixed32;
      return fixed(4);
    default:
      return stop("a field has an unknown wire type");
  }
}

bool Wire::expect(Type type) {
  return type_ == type || stop("a field has the wrong wire type");
}

std::int64_t Wire::integer() {
  return expect(Type::kVarint) ? static_cast<std::int64_t>(number_) : 0;
}

float Wire::real() {
  return expect(Type::kFixed32) ? std::bit_cast<float>(static_cast<std::uint32_t>(number_)) : 0.0F;
}

std::uint64_t Wire::fixed() {
  if (type_ != Type::kFixed32 && type_ != Type::kFixed64) stop("a field has the wrong wire type");
  return number_;
}

WireBytes Wire::bytes() {
  return expect(Type::kBytes) ? content_ : WireBytes();
}

std::string_view Wire::text() {
  const WireBytes content = bytes();
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

void Wire::append_integers(std::vector<std::int64_t>& out) {
  if (type_ != Type::kBytes) {
    out.push_back(integer());
    return;
  }
  WireBytes packed = content_;
  std::uint64_t value = 0;
  while (!packed.empty()) {
    if (!take_varint(packed, value)) {
      stop("a packed number is cut off");
      return;
    }
    if (out.size() >= kMostNumbers) {
      stop("a list of numbers is too long");
      return;
    }
    out.push_back(static_cast<std::int64_t>(value));
  }
}

void Wire::append_reals(std::vector<float>& out) {
  if (type_ != Type::kBytes) {
    out.push_back(real());
    return;
  }
  if (content_.size() % sizeof(float) != 0) {
    stop("a packed array of floats is cut off");
    return;
  }
  const std::size_t before = out.size();
  if (before + content_.size() / sizeof(float) > kMostNumbers) {
    stop("a list of numbers is too long");
    return;
  }
  out.resize(before + content_.size() / sizeof(float));
  if (!content_.empty()) std::memcpy(out.data() + before, content_.data(), content_.size());
}

}  // namespace plimsoll::model::onnx
