# The installed package: find_package(attn) gives the targets attn::..., and
# docs/in-your-stack.md shows a project that uses it.
include(AttnHeaders)
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# Headers that others may include; they stay stable.
set(ATTN_PUBLIC_HEADERS
  attn/Conversion/Passes.h
  attn/IR/Attn.h
  attn/InitAll.h
  attn/Pipelines/Pipelines.h
  attn/Schedule/Plan.h
  attn/Schedule/Problem.h
  attn/Transforms/Passes.h
  attn-c/Attn.h
  attn-c/Dialect.h)

attn_headers_behind(headers ${ATTN_PUBLIC_HEADERS})
foreach(header IN LISTS headers)
  get_filename_component(folder "${header}" DIRECTORY)
  install(FILES "${PROJECT_SOURCE_DIR}/include/${header}"
          DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/${folder}")
endforeach()
foreach(folder IN ITEMS Conversion IR Tile Transforms)
  install(DIRECTORY "${PROJECT_BINARY_DIR}/include/attn/${folder}"
          DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/attn"
          FILES_MATCHING PATTERN "*.h.inc" PATTERN CMakeFiles EXCLUDE)
endforeach()
# What another dialect's TableGen may include.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/attn/IR"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/attn"
        FILES_MATCHING PATTERN "*.td")

get_property(libraries GLOBAL PROPERTY ATTN_LIBRARIES)
get_property(programs GLOBAL PROPERTY ATTN_PROGRAMS)
install(TARGETS ${libraries} attn attn_runtime EXPORT attnTargets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(TARGETS ${programs} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(TARGETS attn-plugin LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")

set(place "${CMAKE_INSTALL_LIBDIR}/cmake/attn")
install(EXPORT attnTargets NAMESPACE attn:: DESTINATION "${place}")
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/tools/cmake/attnConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/attnConfig.cmake" INSTALL_DESTINATION "${place}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/attnConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/attnConfig.cmake"
              "${PROJECT_BINARY_DIR}/attnConfigVersion.cmake"
        DESTINATION "${place}")
