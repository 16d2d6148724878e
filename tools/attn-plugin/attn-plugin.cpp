//===- attn-plugin.cpp - attn for the stock tools of MLIR -----------------===//
//
// Tools of the same MLIR that take plugins load this library:
//
//   mlir-opt --load-dialect-plugin=attn-plugin.so \
//     --load-pass-plugin=attn-plugin.so -attn-to-binary file.mlir
//
// It brings our dialects, passes and pipelines, and nothing of upstream's,
// which the tool has.
//
//===----------------------------------------------------------------------===//

#include "attn/InitAll.h"

#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/Config/llvm-config.h"

#define ATTN_EXPORTED                                                          \
  extern "C" LLVM_ATTRIBUTE_WEAK __attribute__((visibility("default")))

// LLVM's version says which MLIR this is built for; a tool of another one does
// not find the shared library that it needs.
static constexpr const char *kVersion =
    ATTN_VERSION "-llvm" LLVM_VERSION_STRING;

ATTN_EXPORTED mlir::DialectPluginLibraryInfo mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "attn", kVersion,
          [](mlir::DialectRegistry *registry) {
            attn::registerDialects(*registry);
          }};
}

ATTN_EXPORTED mlir::PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "attn", kVersion,
          [] { attn::registerPasses(); }};
}
