//===- Bufferization.cpp - attn ops in one-shot bufferization -------------===//
//
// Inputs are read, a destination is written and never read, and a result
// without destination becomes a new buffer.
//
// The ops demand an innermost stride of 1 (C4), but bufferization across
// functions gives arguments layouts of which nothing is known.  Such a buffer
// is copied, which is correct for every stride, and the copy is reported.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "attn/IR/Attn.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace mlir::bufferization;

/// Whether the innermost stride is known to be 1.
static bool isContiguous(Value buffer) {
  return cast<MemRefType>(buffer.getType()).isLastDimUnitStride();
}

/// Allocates a contiguous buffer of the shape of `like`.
static FailureOr<Value> allocateLike(RewriterBase &rewriter, Location loc,
                                     Value like,
                                     const BufferizationOptions &options) {
  auto type = cast<MemRefType>(like.getType());
  SmallVector<Value> sizes;
  for (auto [index, size] : llvm::enumerate(type.getShape()))
    if (ShapedType::isDynamic(size))
      sizes.push_back(memref::DimOp::create(rewriter, loc, like, index));
  return options.createAlloc(
      rewriter, loc,
      MemRefType::get(type.getShape(), type.getElementType(),
                      MemRefLayoutAttrInterface{}, type.getMemorySpace()),
      sizes);
}

namespace {

/// One model for all ops: inputs, then destinations, and a result for each of
/// these.  Regions get the buffers of what they capture.
template <typename OpTy>
struct AttentionModel
    : BufferizableOpInterface::ExternalModel<AttentionModel<OpTy>, OpTy> {
  bool bufferizesToAllocation(Operation *op, Value) const {
    return cast<OpTy>(op).getOuts().empty();
  }

  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const AnalysisState &) const {
    return !isDestination(op, operand);
  }

  bool bufferizesToMemoryWrite(Operation *op, OpOperand &operand,
                               const AnalysisState &) const {
    return isDestination(op, operand);
  }

  AliasingValueList getAliasingValues(Operation *op, OpOperand &operand,
                                      const AnalysisState &) const {
    if (!isDestination(op, operand))
      return {};
    unsigned inputs = cast<OpTy>(op).inputs().size();
    return {{op->getResult(operand.getOperandNumber() - inputs),
             BufferRelation::Equivalent}};
  }

  FailureOr<BufferLikeType>
  getBufferType(Operation *op, Value value, const BufferizationOptions &options,
                const BufferizationState &state,
                SmallVector<Value> &invocationStack) const {
    OperandRange outs = cast<OpTy>(op).getOuts();
    if (!outs.empty()) {
      unsigned index = cast<OpResult>(value).getResultNumber();
      return bufferization::getBufferType(outs[index], options, state,
                                          invocationStack);
    }
    auto type = cast<TensorType>(value.getType());
    std::optional<Attribute> memorySpace = options.defaultMemorySpaceFn(type);
    if (!memorySpace)
      return op->emitError("expects a memory space for its results, but the "
                           "bufferization has no default");
    return cast<BufferLikeType>(
        getMemRefTypeWithStaticIdentityLayout(type, *memorySpace));
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto attention = cast<OpTy>(op);
    SmallVector<Value> operands;
    unsigned copies = 0;
    llvm::SmallDenseMap<Value, Value> buffers; // of each tensor, once
    for (Value input : attention.inputs()) {
      if (!isa<TensorType>(input.getType())) {
        operands.push_back(input); // a number
        continue;
      }
      Value &buffer = buffers[input];
      if (!buffer) {
        FailureOr<Value> found = getBuffer(rewriter, input, options, state);
        if (failed(found))
          return failure();
        buffer = *found;
        if (!isContiguous(buffer)) {
          FailureOr<Value> copy =
              allocateLike(rewriter, op->getLoc(), buffer, options);
          if (failed(copy) || failed(options.createMemCpy(
                                  rewriter, op->getLoc(), buffer, *copy)))
            return failure();
          buffer = *copy;
          ++copies;
        }
      }
      operands.push_back(buffer);
    }

    FailureOr<SmallVector<Value>> outs =
        outputBuffers(attention, rewriter, options, state);
    if (failed(outs))
      return failure();
    SmallVector<std::pair<Value, Value>> copiesOut;
    for (Value out : *outs) {
      FailureOr<Value> written = out;
      if (!isContiguous(out)) {
        written = allocateLike(rewriter, op->getLoc(), out, options);
        if (failed(written))
          return failure();
        copiesOut.push_back({*written, out});
        ++copies;
      }
      operands.push_back(*written);
    }

    attn::cloneWith(rewriter, op, operands, TypeRange(),
                    attn::attributesWithOuts(attention, outs->size()));
    for (auto [from, to] : copiesOut)
      if (failed(options.createMemCpy(rewriter, op->getLoc(), from, to)))
        return failure();
    if (copies)
      warnOfCopies(op, copies);
    replaceOpWithBufferizedValues(rewriter, op, *outs);
    return success();
  }

private:
  static bool isDestination(Operation *op, OpOperand &operand) {
    return operand.getOperandNumber() >= cast<OpTy>(op).inputs().size();
  }

  static void warnOfCopies(Operation *op, unsigned count) {
    InFlightDiagnostic warning = op->emitWarning("copies ");
    warning << count << (count == 1 ? " buffer" : " buffers")
            << ", because an innermost stride is not known to be 1";
    warning.attachNote() << "function arguments keep it with "
                            "function-boundary-type-conversion="
                            "identity-layout-map";
  }

  /// The buffers of the destinations, or new ones of the results' shapes.
  static FailureOr<SmallVector<Value>>
  outputBuffers(OpTy op, RewriterBase &rewriter,
                const BufferizationOptions &options,
                BufferizationState &state) {
    SmallVector<Value> buffers;
    for (Value out : op.getOuts()) {
      FailureOr<Value> buffer = getBuffer(rewriter, out, options, state);
      if (failed(buffer))
        return failure();
      buffers.push_back(*buffer);
    }
    if (!buffers.empty())
      return buffers;

    ReifiedRankedShapedTypeDims shapes;
    if (failed(op.reifyResultShapes(rewriter, shapes)))
      return failure();
    for (auto [result, shape] : llvm::zip_equal(op->getResults(), shapes)) {
      FailureOr<BufferLikeType> type =
          bufferization::getBufferType(result, options, state);
      if (failed(type))
        return failure();
      // The type says which sizes an allocation takes; one of them may be
      // known all the same.
      SmallVector<Value> sizes;
      auto memref = cast<MemRefType>(*type);
      for (auto [dim, size] : llvm::enumerate(shape))
        if (memref.isDynamicDim(dim))
          sizes.push_back(
              getValueOrCreateConstantIndexOp(rewriter, op->getLoc(), size));
      FailureOr<Value> buffer =
          options.createAlloc(rewriter, op->getLoc(), memref, sizes);
      if (failed(buffer))
        return failure();
      buffers.push_back(*buffer);
    }
    return buffers;
  }
};

} // namespace

template <typename... OpTys> static void attachModels(MLIRContext &context) {
  (OpTys::template attachInterface<AttentionModel<OpTys>>(context), ...);
}

void attn::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, AttnDialect *) {
    attachModels<ForwardOp, BackwardOp, MergeOp, MergeBackwardOp, BlockListsOp,
                 TransposeBlocksOp>(*context);
    context->loadDialect<BufferizationDialect, memref::MemRefDialect>();
  });
}
