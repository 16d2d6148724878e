# Static LLVM and MLIR for the release build, as one target: AttnStaticMLIR.
#
# The archives are given by file, not by CMake target: Debian's exported targets
# name the shared LLVM, z3 and zstd in their link interfaces, and one such
# name makes the binary depend on it.  lld searches archives in any order and
# takes only the members that something refers to, so naming all of them costs
# nothing.  Of the LLVM targets only NVPTX is here; a call that needs another
# one (say InitializeAllTargets) fails to link instead of doubling the binary.
file(GLOB attn_archives "${ATTN_LLVM_PREFIX}/lib/libMLIR*.a"
                        "${ATTN_LLVM_PREFIX}/lib/libLLVM*.a")
set(attn_targets ${LLVM_TARGETS_TO_BUILD})
list(REMOVE_ITEM attn_targets NVPTX)
list(JOIN attn_targets "|" attn_targets)
list(FILTER attn_archives EXCLUDE REGEX "/libLLVM(${attn_targets})")
list(FILTER attn_archives EXCLUDE REGEX "/lib(MLIRCAPI|LLVMBOLT|LLVMExegesis)")

find_library(ATTN_ZLIB NAMES libz.a REQUIRED)
find_library(ATTN_ZSTD NAMES libzstd.a REQUIRED)

add_library(AttnStaticMLIR INTERFACE)
target_link_libraries(AttnStaticMLIR INTERFACE
  ${attn_archives} "${ATTN_ZSTD}" "${ATTN_ZLIB}" m ${CMAKE_DL_LIBS})
