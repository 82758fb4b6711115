// Protocol buffers' wire format, read field by field out of a mapped file.
//
// A message is a row of fields: a number, a wire type, and a varint, 4 bytes, 8 bytes or a length
// and that many bytes. A Wire walks over one message and hands out one field at a time; nested
// messages, strings and packed arrays come as spans into the mapping, so reading allocates nothing
// and a file of five million empty nodes costs what it looks like. (libprotobuf would build an
// object for each, and its generated code knows only the fields of the day it was made.)
//
//   Wire wire(bytes);
//   while (wire.next()) switch (wire.field()) {
//     case 1: name = wire.text(); break;
//     case 2: ids.push_back(wire.integer()); break;
//     default: break;                       // unknown fields are skipped, as the format demands
//   }
//   if (wire.broken()) return bad_input("...: {}", wire.problem());
//
// Invariants: a span handed out lies inside the message; next() returns false for ever after the
// end or the first malformed field; a field of another wire type than asked for reads as zero or
// empty and marks the message broken. Groups, which nothing has emitted since 2008, are refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace plimsoll::model::onnx {

using WireBytes = std::span<const std::byte>;

class Wire {
 public:
  explicit Wire(WireBytes message) : rest_(message) {}

  bool next();
  std::uint32_t field() const { return field_; }

  std::int64_t integer();
  float real();
  // The bits of a 4- or 8-byte number.
  std::uint64_t fixed();
  // Whether the field holds bytes: a string, a message, a packed list.
  bool is_bytes() const { return type_ == Type::kBytes; }
  WireBytes bytes();
  std::string_view text();
  // A repeated number may come packed (one field with all of them) or one field each; both append.
  // A list that grows beyond kMostNumbers marks the message broken: a varint is one byte here and
  // eight there.
  static constexpr std::size_t kMostNumbers = 1 << 18;
  void append_integers(std::vector<std::int64_t>& out);
  void append_reals(std::vector<float>& out);

  bool broken() const { return problem_ != nullptr; }
  // What is malformed; "" while nothing is.
  std::string_view problem() const { return broken() ? problem_ : ""; }

 private:
  enum class Type : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  bool stop(const char* problem);
  bool expect(Type type);

  WireBytes rest_;
  std::uint32_t field_ = 0;
  Type type_ = Type::kVarint;
  std::uint64_t number_ = 0;  // kVarint, kFixed32, kFixed64
  WireBytes content_;         // kBytes
  const char* problem_ = nullptr;
};

// Takes one varint off the front; false when it is cut off or longer than ten bytes.
bool take_varint(WireBytes& bytes, std::uint64_t& value);

}  // namespace plimsoll::model::onnx
