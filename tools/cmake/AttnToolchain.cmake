# Finds LLVM and MLIR (version pinned here and nowhere else) and sets the flags
# that all our targets share.
set(ATTN_LLVM_VERSION 22.1)

find_package(MLIR ${ATTN_LLVM_VERSION} REQUIRED CONFIG
             PATHS /usr/lib/llvm-22/lib/cmake/mlir)
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
set(LLVM_ENABLE_LLD ON)

include(TableGen)
include(AddLLVM)
include(AddMLIR)

include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
add_definitions(${LLVM_DEFINITIONS})

# LLVM's package is built without assertions and with RTTI; our own code keeps
# its assertions in every build but the release.
add_compile_options(-Wall -Wextra -Wno-unused-parameter -fno-exceptions)
if(NOT ATTN_STATIC)
  add_compile_options(-UNDEBUG)
endif()
if(ATTN_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=vptr
                      -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
