# Of some headers below include, and of all of ours that they include, those that
# are sources.
function(attn_headers_behind out)
  set(found "")
  set(open ${ARGN})
  while(open)
    list(POP_FRONT open header)
    set(path "${PROJECT_SOURCE_DIR}/include/${header}")
    if(header IN_LIST found OR NOT EXISTS "${path}")
      continue() # a generated one is installed with its folder
    endif()
    list(APPEND found "${header}")
    # Another include is another list.
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
    file(STRINGS "${path}" includes REGEX "^#include \"attn")
    foreach(line IN LISTS includes)
      string(REGEX REPLACE "^#include \"(.*)\"$" "\\1" included "${line}")
      list(APPEND open "${included}")
    endforeach()
  endwhile()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()
