# The few ways in which this project declares a target.

# A library without LLVM or MLIR: plain C++17, links nothing.
function(attn_pure_library name)
  add_library(${name} STATIC ${ARGN})
endfunction()

# A library over MLIR.  attn_library(NAME source... [DEPENDS tablegen...]
# [LINK our libraries...] [MLIR MLIR libraries for the static build...])
function(attn_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK;MLIR" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  attn_link_mlir(${name} PUBLIC ${ARG_MLIR})
endfunction()

# Links MLIR: the shared library, or in the static build the libraries named.
function(attn_link_mlir target visibility)
  if(ATTN_STATIC)
    target_link_libraries(${target} ${visibility} ${ARGN})
  else()
    target_link_libraries(${target} ${visibility} MLIR LLVM)
  endif()
endfunction()

# A command-line tool.
function(attn_tool name)
  cmake_parse_arguments(ARG "" "" "LINK;MLIR" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  if(ARG_MLIR)
    attn_link_mlir(${name} PRIVATE ${ARG_MLIR})
  endif()
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  if(ATTN_STATIC)
    target_link_options(${name} PRIVATE
      -static-libstdc++ -static-libgcc -Wl,--gc-sections)
  endif()
endfunction()

# TableGen for one dialect in include/attn/<folder>: types, attributes, ops,
# enums.  attn_dialect(DIALECT td-basename target)
