//===- DeviceMemory.cpp - Memory of the GPU in host code ------------------===//

#include "attn/Conversion/DeviceMemory.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace attn;

StreamOps::StreamOps(ImplicitLocOpBuilder &b) : b(b) {
  token = gpu::WaitOp::create(b, b.getType<gpu::AsyncTokenType>(), ValueRange())
              .getAsyncToken();
}

Value StreamOps::allocate(MemRefType type, ValueRange dynamicSizes) {
  auto op = gpu::AllocOp::create(b, contiguous(type), token.getType(), token,
                                 dynamicSizes,
                                 /*symbolOperands=*/ValueRange());
  token = op.getAsyncToken();
  return op.getMemref();
}

void StreamOps::fill(Value array, Value value) {
  token = gpu::MemsetOp::create(b, token.getType(), token, array, value)
              .getAsyncToken();
}

void StreamOps::copy(Value to, Value from) {
  token = gpu::MemcpyOp::create(b, token.getType(), token, to, from)
              .getAsyncToken();
}

void StreamOps::free(Value array) {
  token =
      gpu::DeallocOp::create(b, token.getType(), token, array).getAsyncToken();
}

void StreamOps::wait() {
  gpu::WaitOp::create(b, /*asyncToken=*/Type(), token);
  token = {};
}

MemRefType attn::contiguous(MemRefType type) {
  return MemRefType::get(type.getShape(), type.getElementType());
}

SmallVector<Value> attn::dynamicSizes(ImplicitLocOpBuilder &b, Value array) {
  SmallVector<Value> sizes;
  for (auto [dim, size] :
       llvm::enumerate(cast<MemRefType>(array.getType()).getShape()))
    if (ShapedType::isDynamic(size))
      sizes.push_back(memref::DimOp::create(b, array, dim));
  return sizes;
}
