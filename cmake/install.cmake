# `cmake --install` and find_package(plimsoll): the packer as a library of its own.
#
#   find_package(plimsoll REQUIRED)
#   target_link_libraries(app PRIVATE plimsoll::pack)
#
# or, without CMake: c++ -std=c++20 app.cpp $(pkg-config --cflags --libs plimsoll)
#
# tests/consumer builds a program against the installed package both ways.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(PLIMSOLL_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/plimsoll)
foreach(room base pack)
  set_target_properties(plimsoll_${room} PROPERTIES EXPORT_NAME ${room})
  install(TARGETS plimsoll_${room} EXPORT plimsoll ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/plimsoll/${room}
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/plimsoll COMPONENT library
          FILES_MATCHING PATTERN "*.h" PATTERN "testing" EXCLUDE)
endforeach()
install(EXPORT plimsoll NAMESPACE plimsoll:: DESTINATION ${PLIMSOLL_PACKAGE_DIR} COMPONENT library
        FILE plimsollTargets.cmake)

file(WRITE ${CMAKE_BINARY_DIR}/plimsollConfig.cmake
"include(CMakeFindDependencyMacro)
find_dependency(fmt)
find_dependency(spdlog)
find_dependency(nlohmann_json)
find_dependency(Threads)
include(\${CMAKE_CURRENT_LIST_DIR}/plimsollTargets.cmake)
")
file(WRITE ${CMAKE_BINARY_DIR}/plimsoll.pc
"prefix=\${pcfiledir}/../..
libdir=\${prefix}/${CMAKE_INSTALL_LIBDIR}
includedir=\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}

Name: plimsoll
Description: ${PROJECT_DESCRIPTION}: the packer
Version: ${PROJECT_VERSION}
Requires: fmt spdlog
Cflags: -I\${includedir}
Libs: -L\${libdir} -lplimsoll_pack -lplimsoll_base -pthread
")
install(FILES ${CMAKE_BINARY_DIR}/plimsoll.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/plimsollConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/plimsollConfig.cmake ${CMAKE_BINARY_DIR}/plimsollConfigVersion.cmake
        DESTINATION ${PLIMSOLL_PACKAGE_DIR} COMPONENT library)
