# `cmake --install` and find_package(plimsoll): the parts of the library that others build on.
#
#   find_package(plimsoll REQUIRED)
#   target_link_libraries(app PRIVATE plimsoll::plan)      # or pack, schedule, memory, trace, ...
#
# or, without CMake: c++ -std=c++20 app.cpp $(pkg-config --cflags --libs plimsoll)
# and in C, against libplimsoll.so: cc app.c $(pkg-config --cflags --libs plimsoll-c)
#
# tests/consumer builds programs against the installed package in each of these ways; docs/library.md tells people.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(PLIMSOLL_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/plimsoll)
# Each links only those before it.
set(PLIMSOLL_INSTALLED base ir codec pack memory ops trace schedule plan)
set(PLIMSOLL_ARCHIVES)
foreach(module ${PLIMSOLL_INSTALLED})
  set_target_properties(plimsoll_${module} PROPERTIES EXPORT_NAME ${module})
  target_compile_features(plimsoll_${module} INTERFACE cxx_std_20)
  install(TARGETS plimsoll_${module} EXPORT plimsoll ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/plimsoll/${module}
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/plimsoll COMPONENT library
          FILES_MATCHING PATTERN "*.h" PATTERN "testing" EXCLUDE PATTERN "testdata" EXCLUDE)
  list(PREPEND PLIMSOLL_ARCHIVES -lplimsoll_${module})
endforeach()
string(JOIN " " PLIMSOLL_ARCHIVES ${PLIMSOLL_ARCHIVES})
install(TARGETS plimsoll_shared EXPORT plimsoll LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
        NAMELINK_COMPONENT library)
install(FILES ${PROJECT_SOURCE_DIR}/src/plimsoll/plimsoll.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/plimsoll COMPONENT library)
install(EXPORT plimsoll NAMESPACE plimsoll:: DESTINATION ${PLIMSOLL_PACKAGE_DIR} COMPONENT library
        FILE plimsollTargets.cmake)

file(WRITE ${CMAKE_BINARY_DIR}/plimsollConfig.cmake
"include(CMakeFindDependencyMacro)
find_dependency(fmt)
find_dependency(spdlog)
find_dependency(nlohmann_json)
find_dependency(Threads)
find_dependency(ZLIB)
find_dependency(PkgConfig)
foreach(library HWY ZSTD)
  string(TOLOWER lib\${library} package)
  if(NOT TARGET PkgConfig::\${library})
    pkg_check_modules(\${library} QUIET IMPORTED_TARGET \${package})
    if(NOT \${library}_FOUND)
      set(plimsoll_FOUND FALSE)
      set(plimsoll_NOT_FOUND_MESSAGE \"plimsoll: \${package} is missing; install \${package}-dev\")
      return()
    endif()
  endif()
endforeach()
include(\${CMAKE_CURRENT_LIST_DIR}/plimsollTargets.cmake)
")
set(head
"prefix=\${pcfiledir}/../..
libdir=\${prefix}/${CMAKE_INSTALL_LIBDIR}
includedir=\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}

Version: ${PROJECT_VERSION}
Cflags: -I\${includedir}
")
file(WRITE ${CMAKE_BINARY_DIR}/plimsoll.pc "${head}Name: plimsoll
Description: ${PROJECT_DESCRIPTION}: the library in C++
Requires: fmt spdlog libhwy zlib libzstd
Libs: -L\${libdir} ${PLIMSOLL_ARCHIVES} -pthread
")
file(WRITE ${CMAKE_BINARY_DIR}/plimsoll-c.pc "${head}Name: plimsoll-c
Description: ${PROJECT_DESCRIPTION}: packing and planning in C
Libs: -L\${libdir} -lplimsoll
")
install(FILES ${CMAKE_BINARY_DIR}/plimsoll.pc ${CMAKE_BINARY_DIR}/plimsoll-c.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/plimsollConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/plimsollConfig.cmake ${CMAKE_BINARY_DIR}/plimsollConfigVersion.cmake
        DESTINATION ${PLIMSOLL_PACKAGE_DIR} COMPONENT library)
