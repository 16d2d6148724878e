// Holds nothing: CMake wants a source to hang a precompiled header on.
