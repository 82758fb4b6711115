// Protocol buffers' wire format, written field by field; the counterpart of wire.h.
//
//   std::string node = WireWriter().bytes(1, "x").bytes(2, "y").bytes(4, "Relu").take();
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plimsoll::model::onnx {

class WireWriter {
 public:
  WireWriter& integer(std::uint32_t field, std::int64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(static_cast<std::uint64_t>(value));
    return *this;
  }
  WireWriter& real(std::uint32_t field, float value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 5);
    out_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  // A string, or a message written by another writer.
  WireWriter& bytes(std::uint32_t field, std::string_view content) {
    varint(static_cast<std::uint64_t>(field) << 3 | 2);
    varint(content.size());
    out_ += content;
    return *this;
  }
  std::string take() { return std::move(out_); }

 private:
  void varint(std::uint64_t value) {
    while (value >= 0x80) {
      out_ += static_cast<char>(value | 0x80);
      value >>= 7;
    }
    out_ += static_cast<char>(value);
  }
  std::string out_;
};

}  // namespace plimsoll::model::onnx
