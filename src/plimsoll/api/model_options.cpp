#include "plimsoll/api/model_options.h"

#include <charconv>

namespace plimsoll::api {

std::optional<std::int64_t>& size_option(model::ModelOptions& sizes, std::string_view name) {
  return name == "batch" ? sizes.batch : sizes.seq;
}

Result<std::map<std::string, std::int64_t>> parse_dims(const std::vector<std::string>& dims) {
  std::map<std::string, std::int64_t> out;
  for (const std::string& text : dims) {
    const std::size_t equals = text.rfind('=');
    std::int64_t size = 0;
    const char* end = text.data() + text.size();
    const char* begin = equals == std::string::npos ? end : text.data() + equals + 1;
    const auto [stop, error] = std::from_chars(begin, end, size);
    if (equals == 0 || error != std::errc() || stop != end || size < 0) {
      return fail(ErrorCode::kUsage, "--dim {}: expects NAME=SIZE", text);
    }
    out.insert_or_assign(text.substr(0, equals), size);
  }
  return out;
}

}  // namespace plimsoll::api
