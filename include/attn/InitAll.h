//===- InitAll.h - The only list of dialects and passes ---------*- C++ -*-===//
//
// attn-opt has all of upstream that we use (`registerAll...`).  A tool of
// others has upstream's already, and takes only what is ours.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_INITALL_H
#define ATTN_INITALL_H

#include "mlir/IR/DialectRegistry.h"

namespace attn {

/// Our dialects, with what is known of them elsewhere.
void registerDialects(mlir::DialectRegistry &registry);

/// Our passes and pipelines; again it does nothing.
void registerPasses();

/// Our dialects, the upstream ones that our IR and pipelines use, and the
/// interfaces that bufferization and translation look for.
void registerAllDialects(mlir::DialectRegistry &registry);

/// Our passes and pipelines, and the upstream passes that go with them;
/// likewise.
void registerAllPasses();

} // namespace attn

#endif
