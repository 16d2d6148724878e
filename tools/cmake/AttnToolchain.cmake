# Finds LLVM and MLIR (tools/versions pins them) and sets the flags that all
# our targets share.
file(STRINGS "${PROJECT_SOURCE_DIR}/tools/versions" attn_versions
     REGEX "^[A-Z_]+=")
foreach(line IN LISTS attn_versions)
  string(REGEX MATCH "^([A-Z_]+)=(.*)$" _ "${line}")
  set(ATTN_${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
endforeach()
set(ATTN_LLVM_PREFIX "/usr/lib/llvm-${ATTN_LLVM_MAJOR}")

find_package(MLIR ${ATTN_LLVM_VERSION} REQUIRED CONFIG
             PATHS "${ATTN_LLVM_PREFIX}/lib/cmake/mlir")
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")

# The package sets the dylib on; a static tool must switch it off before any
# LLVM macro links something.
if(ATTN_STATIC)
  set(LLVM_LINK_LLVM_DYLIB OFF)
  set(MLIR_LINK_MLIR_DYLIB OFF)
else()
  set(LLVM_LINK_LLVM_DYLIB ON)
  set(MLIR_LINK_MLIR_DYLIB ON)
endif()

include(TableGen)
include(AddLLVM)
include(AddMLIR)

include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
add_definitions(${LLVM_DEFINITIONS})

# LLVM's package is built without assertions and with RTTI; our own code keeps
# its assertions in every build but the release.
add_compile_options(-Wall -Wextra -Wno-unused-parameter -fno-exceptions)
add_link_options(-fuse-ld=lld)
if(ATTN_STATIC)
  add_compile_options(-ffunction-sections -fdata-sections)
  include(AttnStatic)
else()
  add_compile_options(-UNDEBUG)
endif()
if(ATTN_SANITIZE)
  # vptr needs the run-time types of classes inside the shared MLIR library,
  # which does not export all of them.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=vptr
                      -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()

# Nearly all of the time to build goes into parsing the headers of MLIR and of
# our own dialects.  A precompiled header cuts it, but hides an include that a
# source forgot; so it is for clean builds from nothing, as in continuous
# integration.
option(ATTN_PRECOMPILED "Precompile headers of MLIR, GoogleTest and our own" OFF)

# Objects are the same in every checkout, but for what a precompiled header
# holds: the paths of its parts.  Without the time at which it was made, objects
# made with it are found again as well.
find_program(ATTN_CCACHE ccache)
if(ATTN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(attn_slack pch_defines,time_macros,include_file_mtime,include_file_ctime)
  set(attn_places CCACHE_HASHDIR=1)
  if(NOT ATTN_PRECOMPILED)
    set(attn_places CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${PROJECT_SOURCE_DIR})
  endif()
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
      CCACHE_SLOPPINESS=${attn_slack} ${attn_places} "${ATTN_CCACHE}")
endif()

if(ATTN_PRECOMPILED)
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
  add_library(AttnPrecompiled OBJECT
    "${PROJECT_SOURCE_DIR}/tools/cmake/precompiled.cpp")
  target_precompile_headers(AttnPrecompiled PRIVATE
    <random> <attn/Tile/Tile.h> <gtest/gtest.h>
    <mlir/Dialect/Arith/IR/Arith.h> <mlir/Dialect/Func/IR/FuncOps.h>
    <mlir/Dialect/GPU/IR/GPUDialect.h> <mlir/Dialect/LLVMIR/LLVMDialect.h>
    <mlir/Dialect/LLVMIR/NVVMDialect.h> <mlir/Dialect/Linalg/IR/Linalg.h>
    <mlir/Dialect/Math/IR/Math.h> <mlir/Dialect/MemRef/IR/MemRef.h>
    <mlir/Dialect/SCF/IR/SCF.h> <mlir/Dialect/Tensor/IR/Tensor.h>
    <mlir/IR/Builders.h> <mlir/IR/BuiltinOps.h>
    <mlir/IR/DialectImplementation.h> <mlir/IR/PatternMatch.h>
    <mlir/Parser/Parser.h> <mlir/Pass/Pass.h> <mlir/Pass/PassManager.h>
    <mlir/Transforms/DialectConversion.h>)
  find_package(GTest REQUIRED)
  target_link_libraries(AttnPrecompiled PRIVATE GTest::gtest)
  add_dependencies(AttnPrecompiled AttnTileIncGen AttnOpsIncGen)
endif()
