#include "plimsoll/base/log.h"

#include <cstdlib>
#include <string>

#include <spdlog/sinks/stdout_sinks.h>

namespace plimsoll::log {

void start(std::string_view level) {
  auto logger = std::make_shared<spdlog::logger>("plimsoll",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("plimsoll: %l: %v");
  const char* from_environment = std::getenv("PLIMSOLL_LOG");
  const std::string chosen(!level.empty() ? level : from_environment ? from_environment : "warn");
  logger->set_level(spdlog::level::from_str(chosen));
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace plimsoll::log
