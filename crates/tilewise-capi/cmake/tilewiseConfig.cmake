# tilewise::tilewise is the shared library, tilewise::static the archive.
include(CMakeFindDependencyMacro)
find_dependency(Threads)

# lib/cmake/tilewise, or one deeper where libraries lie in lib/x86_64-linux-gnu.
get_filename_component(_tilewise_libraries "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
find_path(_tilewise_include tilewise.h NO_DEFAULT_PATH
  HINTS "${_tilewise_libraries}/../include" "${_tilewise_libraries}/../../include")

if(NOT TARGET tilewise::tilewise)
  add_library(tilewise::tilewise SHARED IMPORTED)
  set_target_properties(tilewise::tilewise PROPERTIES
    IMPORTED_LOCATION "${_tilewise_libraries}/${CMAKE_SHARED_LIBRARY_PREFIX}tilewise_capi${CMAKE_SHARED_LIBRARY_SUFFIX}"
    IMPORTED_NO_SONAME TRUE
    INTERFACE_INCLUDE_DIRECTORIES "${_tilewise_include}")
  add_library(tilewise::static STATIC IMPORTED)
  set_target_properties(tilewise::static PROPERTIES
    IMPORTED_LOCATION "${_tilewise_libraries}/${CMAKE_STATIC_LIBRARY_PREFIX}tilewise_capi${CMAKE_STATIC_LIBRARY_SUFFIX}"
    INTERFACE_INCLUDE_DIRECTORIES "${_tilewise_include}"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")
endif()
unset(_tilewise_libraries)
unset(_tilewise_include CACHE)
