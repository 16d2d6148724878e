//===- CopyToDevice.cpp - Attention on arrays of the host -----------------===//
//
// Kernels read and write memory of the GPU.  Where arrays lie in memory of the
// host, an op gets copies: inputs before it, outputs behind it.
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/DeviceMemory.h"
#include "attn/IR/Attn.h"
#include "attn/Transforms/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace attn;

namespace attn {
#define GEN_PASS_DEF_COPYTODEVICEPASS
#include "attn/Transforms/Passes.h.inc"
} // namespace attn

namespace {

/// An array of the host, and the one on the GPU that stands for it.
struct Pair {
  Value host, device;
  /// The host's array without gaps, which alone can be copied; `host` itself if
  /// it has none.
  Value packed;
};

/// One op and the copies around it.
class Copier {
public:
  explicit Copier(AttentionOpInterface op)
      : op(op), builder(op), b(op->getLoc(), builder) {}

  void run() {
    pack();
    StreamOps before(b);
    for (Pair &pair : inputs) {
      pair.device = allocate(before, pair.host);
      before.copy(pair.device, pair.packed);
    }
    for (Pair &pair : outputs)
      pair.device = allocate(before, pair.host);
    before.wait();
    useCopies();
    b.setInsertionPointAfter(op);
    StreamOps after(b);
    for (Pair &pair : outputs)
      after.copy(pair.packed, pair.device);
    for (Pair &pair : inputs)
      after.free(pair.device);
    for (Pair &pair : outputs)
      after.free(pair.device);
    after.wait();
    unpack();
  }

private:
  static bool hasGaps(Value array) {
    return !cast<MemRefType>(array.getType()).getLayout().isIdentity();
  }

  /// Inputs that are one array have one copy.
  void pack() {
    llvm::SmallDenseSet<Value> known;
    for (Value input : op.inputs())
      if (known.insert(input).second)
        inputs.push_back({input, {}, pack(input)});
    for (Pair &pair : inputs)
      if (pair.packed != pair.host)
        memref::CopyOp::create(b, pair.host, pair.packed);
    for (Value out : op.getOuts())
      outputs.push_back({out, {}, pack(out)});
  }

  Value pack(Value host) {
    if (!hasGaps(host))
      return host;
    return memref::AllocOp::create(
        b, contiguous(cast<MemRefType>(host.getType())), dynamicSizes(b, host));
  }

  void unpack() {
    for (Pair &pair : outputs)
      if (pair.packed != pair.host)
        memref::CopyOp::create(b, pair.packed, pair.host);
    for (const SmallVector<Pair> *pairs : {&inputs, &outputs})
      for (const Pair &pair : *pairs)
        if (pair.packed != pair.host)
          memref::DeallocOp::create(b, pair.packed);
  }

  Value allocate(StreamOps &stream, Value host) {
    return stream.allocate(cast<MemRefType>(host.getType()),
                           dynamicSizes(b, host));
  }

  /// An array that is read and written may not be one: what is written is the
  /// copy of an operand that comes last.
  void useCopies() {
    unsigned outs = op->getNumOperands() - outputs.size();
    for (OpOperand &operand : op->getOpOperands()) {
      unsigned number = operand.getOperandNumber();
      if (number >= outs) {
        operand.set(outputs[number - outs].device);
        continue;
      }
      for (const Pair &pair : inputs)
        if (operand.get() == pair.host) {
          operand.set(pair.device);
          break;
        }
    }
    retypeCaptures(op);
  }

  AttentionOpInterface op;
  OpBuilder builder;
  ImplicitLocOpBuilder b;
  SmallVector<Pair> inputs, outputs;
};

struct CopyToDevicePass : attn::impl::CopyToDevicePassBase<CopyToDevicePass> {
  using CopyToDevicePassBase::CopyToDevicePassBase;

  void runOnOperation() override {
    SmallVector<AttentionOpInterface> ops;
    WalkResult walked = getOperation().walk([&](AttentionOpInterface op) {
      ops.push_back(op);
      if (!op.isOnTensors())
        return WalkResult::advance();
      op->emitOpError("expects memrefs, whose copies can be made, but got "
                      "tensors: bufferize first");
      return WalkResult::interrupt();
    });
    if (walked.wasInterrupted())
      return signalPassFailure();
    for (AttentionOpInterface op : ops)
      Copier(op).run();
  }
};

} // namespace
