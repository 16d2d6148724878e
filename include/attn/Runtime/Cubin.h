//===- Cubin.h - What a cubin says about its kernels ------------*- C++ -*-===//
//
// A cubin is an ELF file.  ptxas notes in its section `.nv.info` how many
// registers and how many bytes of stack each kernel uses; reading them needs no
// GPU and no driver, so a test can ask for "no spills" anywhere.
//
// Example: for a kernel `flash` of 168 registers without spills,
// `readCubin(image)` gives {{"flash", 168, 0}}.  A kernel that spills or keeps
// an array outside registers has a stack of more than zero bytes.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_CUBIN_H
#define ATTN_RUNTIME_CUBIN_H

#include "attn/Runtime/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attn::runtime {

struct CubinKernel {
  std::string name;
  int64_t registersPerThread = 0;
  int64_t stackBytesPerThread = 0;
};

/// The kernels of a cubin; a sentence when the bytes are not one, or not all of
/// it: every section and every segment must lie in the file.
Expected<std::vector<CubinKernel>> readCubin(std::string_view image);

} // namespace attn::runtime

#endif
