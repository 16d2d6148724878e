//===- InitAll.h - The only list of dialects and passes ---------*- C++ -*-===//

#ifndef ATTN_INITALL_H
#define ATTN_INITALL_H

#include "mlir/IR/DialectRegistry.h"

namespace attn {

/// Our dialects, the upstream ones that our IR and pipelines use, and the
/// interfaces that bufferization and translation look for.
void registerAllDialects(mlir::DialectRegistry &registry);

/// Our passes and pipelines, and the upstream passes that go with them.
void registerAllPasses();

} // namespace attn

#endif
