//===- TransformOps.h - Scripts that decide about attention -----*- C++ -*-===//
//
// The extension of upstream's transform dialect: upstream's own ops match,
// tile, fuse and split attention (IR/Tiling.cpp); what is added here decides
// how it is computed.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TRANSFORMOPS_TRANSFORMOPS_H
#define ATTN_TRANSFORMOPS_TRANSFORMOPS_H

#include "attn/IR/Attn.h"

#include "mlir/Dialect/Transform/IR/TransformDialect.h"
#include "mlir/Dialect/Transform/IR/TransformTypes.h"
#include "mlir/Dialect/Transform/Interfaces/TransformInterfaces.h"

#define GET_OP_CLASSES
#include "attn/TransformOps/AttnTransformOps.h.inc"

namespace attn {

void registerTransformDialectExtension(mlir::DialectRegistry &registry);

} // namespace attn

#endif
