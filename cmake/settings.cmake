# Settings shared by every target: language, warnings, sanitizers, ccache.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

# Paths below the source folder are made relative, and neither the build folder nor the language of messages is
# hashed: so every clone hits, and a bare machine too.
find_program(CCACHE ccache)
if(CCACHE)
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=locale ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

add_compile_options(
  $<$<COMPILE_LANGUAGE:CXX>:-Wall> $<$<COMPILE_LANGUAGE:CXX>:-Wextra>
  $<$<COMPILE_LANGUAGE:CXX>:-Wshadow> $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)  # false alarms on std::string in g++ 12
endif()
option(PLIMSOLL_WERROR "Warnings are errors" ON)
if(PLIMSOLL_WERROR)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()

set(PLIMSOLL_SANITIZE "" CACHE STRING "Value for -fsanitize=")
if(PLIMSOLL_SANITIZE)
  add_compile_options(-fsanitize=${PLIMSOLL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${PLIMSOLL_SANITIZE})
  add_compile_definitions(PLIMSOLL_SANITIZED=1)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)  # false alarms under sanitizers
    if(PLIMSOLL_SANITIZE MATCHES thread)
      # ThreadSanitizer does not see fences; the address registry's stand between atomics, which it sees.
      add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-tsan>)
    endif()
  endif()
endif()

if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # clang 16 names one of fmt's functions otherwise than the g++ that built the library.
  add_compile_definitions(FMT_HEADER_ONLY=1)
endif()
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Threads REQUIRED)
if(PLIMSOLL_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
  # Where tests find their files. One object knows the folders: as a definition they would stand in every compile
  # of a test, and another clone would find none of them in the cache.
  configure_file(${PROJECT_SOURCE_DIR}/cmake/test_paths.cpp.in ${CMAKE_BINARY_DIR}/test_paths.cpp @ONLY)
  add_library(plimsoll_test_paths STATIC ${CMAKE_BINARY_DIR}/test_paths.cpp)
  target_include_directories(plimsoll_test_paths PUBLIC ${PROJECT_SOURCE_DIR}/src)
endif()
if(PLIMSOLL_BENCHES)
  find_package(benchmark REQUIRED)
endif()
