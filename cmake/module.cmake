# plimsoll_module(NAME [LINK targets...] [PRIVATE_LINK targets...] [EXCLUDE regex...] [TESTING modules...] [SEPARATE_TESTS])
#
# A module is every .cpp below its folder: sources make the library plimsoll::NAME, *_test.cpp make the
# program NAME_test, *_bench.cpp make NAME_bench. So a new file needs no line anywhere. EXCLUDE is compared with
# paths below the folder.
#
# Sources in folders called `testing` are support for tests (examples, generators, comparisons): they make the
# library plimsoll_NAME_testing, which NAME_test links and nothing that is shipped does. TESTING names the modules
# whose support these tests use besides.
#
# The release preset compiles eight files as one (CMAKE_UNITY_BUILD), which takes a third of the time: names in
# anonymous namespaces of neighbouring files must differ. SEPARATE_TESTS excuses a module's tests. The preset
# `separate` compiles every file by itself, so that each includes what it uses.
#
# Tests whose suite begins with "Slow" run under the label `slow` (make test-all), those beginning
# with "Cuda" under `cuda` (on a machine that has a GPU); all others under `unit` (make test).
function(plimsoll_module name)
  cmake_parse_arguments(arg "SEPARATE_TESTS" "" "LINK;PRIVATE_LINK;EXCLUDE;TESTING" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.cpp)
  foreach(pattern ${arg_EXCLUDE})
    list(FILTER sources EXCLUDE REGEX ${pattern})
  endforeach()
  set(tests ${sources})
  set(benches ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER benches INCLUDE REGEX "_bench\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "_(test|bench|main)\\.cpp$")
  set(support ${sources})
  list(FILTER support INCLUDE REGEX "(^|/)testing/")
  list(FILTER sources EXCLUDE REGEX "(^|/)testing/")

  set(target plimsoll_${name})
  add_library(${target} STATIC ${sources})
  add_library(plimsoll::${name} ALIAS ${target})
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<INSTALL_INTERFACE:include>)
  target_link_libraries(${target} PUBLIC ${arg_LINK} PRIVATE ${arg_PRIVATE_LINK})

  set(testing)
  foreach(other ${arg_TESTING})
    list(APPEND testing plimsoll_${other}_testing)
  endforeach()
  if(support)
    add_library(${target}_testing STATIC EXCLUDE_FROM_ALL ${support})
    target_link_libraries(${target}_testing PUBLIC ${target} ${testing} PRIVATE ${arg_PRIVATE_LINK})
    list(PREPEND testing ${target}_testing)
  endif()

  if(PLIMSOLL_TESTS AND tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE ${testing} ${target} plimsoll_test_paths ${arg_PRIVATE_LINK}
                          GTest::gtest_main GTest::gmock)
    if(arg_SEPARATE_TESTS)
      set_target_properties(${name}_test PROPERTIES UNITY_BUILD OFF)
    endif()
    # The code under test keeps its optimisation; tests spend their time in it, and compile faster without.
    target_compile_options(${name}_test PRIVATE $<$<CONFIG:Release>:-O1>)
    plimsoll_test_labels(${name} ${name}_test)
  endif()
  if(PLIMSOLL_BENCHES AND benches)
    add_executable(${name}_bench ${benches})
    target_link_libraries(${name}_bench PRIVATE ${target} ${arg_PRIVATE_LINK} benchmark::benchmark_main)
  endif()
  plimsoll_tests_end()
endfunction()

function(plimsoll_test_labels name program)
  add_dependencies(unit_tests ${program})
  add_test(NAME ${name} COMMAND ${program} --gtest_filter=-Slow*:*/Slow*:Cuda*:*/Cuda* --gtest_brief=1)
  set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 600)
  add_test(NAME ${name}.slow COMMAND ${program} --gtest_filter=Slow*:*/Slow* --gtest_brief=1)
  set_tests_properties(${name}.slow PROPERTIES LABELS slow TIMEOUT 3600)
  # As the program sets it for itself (cli/bounded_spinning.h): tests share their cores.
  set_tests_properties(${name} ${name}.slow PROPERTIES ENVIRONMENT GOMP_SPINCOUNT=1000)
  if(PLIMSOLL_CUDA)
    add_test(NAME ${name}.cuda COMMAND ${program} --gtest_filter=Cuda*:*/Cuda* --gtest_brief=1)
    set_tests_properties(${name}.cuda PROPERTIES LABELS cuda TIMEOUT 600)
  endif()
endfunction()

# At the end of a folder that has tests: what they have in common. Under ThreadSanitizer they run with one OpenMP thread, and so do the programs
# that they start: libgomp is built without it.
function(plimsoll_tests_end)
  get_property(tests DIRECTORY PROPERTY TESTS)
  if(tests)  # rates of the machine are not kept in the user's folder
    set_property(TEST ${tests} APPEND PROPERTY ENVIRONMENT XDG_CACHE_HOME=${CMAKE_BINARY_DIR}/test_cache)
  endif()
  if(tests AND PLIMSOLL_SANITIZE MATCHES thread)
    set_property(TEST ${tests} APPEND PROPERTY ENVIRONMENT
      OMP_THREAD_LIMIT=1 "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tools/tsan.supp")
  endif()
endfunction()

# plimsoll_fuzzer(NAME source LINK targets...): a libFuzzer program, only under the fuzz preset.
function(plimsoll_fuzzer name source)
  cmake_parse_arguments(arg "" "" "LINK" ${ARGN})
  if(PLIMSOLL_FUZZ)
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE ${arg_LINK})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzzers ${name})
  endif()
endfunction()
