#include "plimsoll/trace/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <climits>

#include "plimsoll/base/check.h"

namespace plimsoll::trace {
namespace {

constexpr int kGzipWindow = 15 + 16;  // 32 KiB window, gzip header
constexpr std::size_t kPiece = 1 << 20;

}  // namespace

bool is_gzip(std::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

struct GzipSource::State {
  z_stream stream{};
  std::string_view rest;
  bool finished = false;

  ~State() { inflateEnd(&stream); }
};

GzipSource::GzipSource(std::string_view compressed) : state_(std::make_unique<State>()) {
  state_->rest = compressed;
  PLIMSOLL_CHECK(inflateInit2(&state_->stream, kGzipWindow) == Z_OK);
}
GzipSource::~GzipSource() = default;
GzipSource::GzipSource(GzipSource&&) noexcept = default;
GzipSource& GzipSource::operator=(GzipSource&&) noexcept = default;

Result<std::size_t> GzipSource::fill(std::span<char> out) {
  State& state = *state_;
  std::size_t made = 0;
  while (made == 0 && !state.finished) {
    const std::size_t take = std::min<std::size_t>(state.rest.size(), UINT_MAX);
    const std::size_t room = std::min<std::size_t>(out.size(), UINT_MAX);
    state.stream.next_in =
        reinterpret_cast<Bytef*>(const_cast<char*>(state.rest.data()));  // zlib only reads it
    state.stream.avail_in = static_cast<uInt>(take);
    state.stream.next_out = reinterpret_cast<Bytef*>(out.data());
    state.stream.avail_out = static_cast<uInt>(room);
    const int code = ::inflate(&state.stream, Z_NO_FLUSH);
    state.rest.remove_prefix(take - state.stream.avail_in);
    made = room - state.stream.avail_out;
    if (code == Z_STREAM_END) {
      state.finished = !is_gzip(state.rest);
      if (!state.finished) inflateReset(&state.stream);
    } else if (code != Z_OK) {
      return bad_input("gzip data is damaged or cut off");
    }
  }
  return made;
}

Result<std::string> inflate(std::string_view compressed, Bytes most) {
  GzipSource source(compressed);
  std::string out;
  std::string piece(kPiece, '\0');
  while (true) {
    PLIMSOLL_TRY(const std::size_t made, source.fill(piece));
    if (made == 0) return out;
    if (out.size() + made > static_cast<std::size_t>(most.value)) {
      return bad_input("gzip data inflates to more than {} bytes", most);
    }
    out.append(piece, 0, made);
  }
}

std::string gzip(std::string_view plain) {
  z_stream stream{};
  PLIMSOLL_CHECK(deflateInit2(&stream, 6, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out;
  std::string piece(kPiece, '\0');
  int code = Z_OK;
  while (code != Z_STREAM_END) {
    const std::size_t take = std::min<std::size_t>(plain.size(), kPiece);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
    stream.avail_in = static_cast<uInt>(take);
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    code = deflate(&stream, take == plain.size() ? Z_FINISH : Z_NO_FLUSH);
    PLIMSOLL_CHECK(code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR);
    plain.remove_prefix(take - stream.avail_in);
    out.append(piece, 0, piece.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return out;
}

}  // namespace plimsoll::trace
