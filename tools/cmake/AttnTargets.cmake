# The few ways in which this project declares a target.

# What others see of a library: its headers, and the target attn::Name of AttnName.
function(attn_show name)
  target_include_directories(${name} INTERFACE
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
    "$<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_compile_features(${name} INTERFACE cxx_std_17)
  string(REGEX REPLACE "^Attn" "" short "${name}")
  set_target_properties(${name} PROPERTIES EXPORT_NAME "${short}")
  add_library(attn::${short} ALIAS ${name})
  set_property(GLOBAL APPEND PROPERTY ATTN_LIBRARIES ${name})
endfunction()

# A library without LLVM or MLIR: plain C++17, links nothing.
function(attn_pure_library name)
  add_library(${name} STATIC ${ARGN})
  attn_show(${name})
endfunction()

# A library over MLIR.  attn_library(NAME source... [DEPENDS tablegen...]
# [LINK our libraries...])
function(attn_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  attn_link_mlir(${name} PUBLIC)
  attn_precompile(${name})
  attn_show(${name})
endfunction()

# Takes the headers of MLIR and GoogleTest from the precompiled one, if there is
# one; sources of the target must be built with the usual options.  Others name
# the headers of one of their own: attn_precompile(TARGET [header...]).
function(attn_precompile target)
  if(ATTN_PRECOMPILED AND ARGN)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  elseif(ATTN_PRECOMPILED)
    target_precompile_headers(${target} REUSE_FROM AttnPrecompiled)
    # As the header is; of an executable's objects -fPIE is the default.
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
endfunction()

# Compiles six sources of a target as one where headers are precompiled: where they
# share a harness, that takes two fifths of the time.  Names of all of them differ.
function(attn_compile_together target)
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD "${ATTN_PRECOMPILED}" UNITY_BUILD_BATCH_SIZE 6)
endfunction()

# Links MLIR: the shared library, or all static ones (AttnStatic.cmake).  Who uses
# the target elsewhere gets the headers of MLIR with it, and does not compile
# against those of another.
function(attn_link_mlir target visibility)
  if(NOT visibility STREQUAL PRIVATE)
    target_include_directories(${target} SYSTEM INTERFACE
      ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  endif()
  if(ATTN_STATIC)
    target_link_libraries(${target} ${visibility} AttnStaticMLIR)
  else()
    target_link_libraries(${target} ${visibility} MLIR LLVM)
  endif()
endfunction()

# Makes a linked file self-contained, in the release build.
function(attn_release_link target)
  if(ATTN_STATIC)
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc
      LINKER:--gc-sections,--as-needed,--strip-all,--exclude-libs=ALL)
  endif()
endfunction()

# A command-line tool: attn_tool(NAME source... [LINK our libraries...]).
function(attn_tool name)
  cmake_parse_arguments(ARG "" "" "LINK;MLIR" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  if(ARG_MLIR)
    attn_link_mlir(${name} PRIVATE)
  endif()
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  attn_release_link(${name})
  set_property(GLOBAL APPEND PROPERTY ATTN_PROGRAMS ${name})
  set_property(GLOBAL APPEND PROPERTY ATTN_TEST_DEPENDS ${name})
endfunction()

# A command: a program, and objects from which libattn has it too
# (tools/commands).  attn_command(NAME FUNCTION source... [LINK our
# libraries...])
function(attn_command name function)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name}-command OBJECT ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name}-command PUBLIC ${ARG_LINK})
  attn_tool(${name} "${PROJECT_SOURCE_DIR}/tools/commands/main.cpp"
    LINK ${name}-command)
  target_compile_definitions(${name} PRIVATE ATTN_COMMAND=${function})
endfunction()

# A GoogleTest program: attn_unit_test(NAME source... [LINK our libraries...]).
# lit finds it by the end of its name.
function(attn_unit_test name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  if(NOT name MATCHES "Tests$")
    message(FATAL_ERROR "expects a name that ends in Tests, but got ${name}")
  endif()
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest_main)
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/test/Unit")
  set_property(GLOBAL APPEND PROPERTY ATTN_TEST_DEPENDS ${name})
endfunction()
