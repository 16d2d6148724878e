//===- FunctionReader.h - Collects the parts of a function ------*- C++ -*-===//

#ifndef ATTN_TOOLS_RUN_FUNCTIONREADER_H
#define ATTN_TOOLS_RUN_FUNCTIONREADER_H

#include "Function.h"

#include "llvm/ADT/SmallBitVector.h"

#include <set>

namespace attn::run {

/// Collects the parts of a Function.
class FunctionReader {
public:
  FunctionReader(mlir::func::FuncOp function, const Extents &extents)
      : function(function), extents(extents) {
    result.op = function;
  }

  mlir::FailureOr<Function> read();

private:
  mlir::LogicalResult readArguments();
  mlir::LogicalResult readAttention(AttentionOpInterface op);
  mlir::LogicalResult readInputs(Attention &attention);
  mlir::LogicalResult readSizes(Attention &attention);
  mlir::LogicalResult readSequences(Attention &attention);
  mlir::LogicalResult readPool(Attention &attention);
  mlir::LogicalResult readClauses(Attention &attention);
  mlir::LogicalResult setClauseSizes(const Attention &attention,
                                     ClauseGroup group, unsigned number,
                                     unsigned position);
  mlir::LogicalResult readMerge(MergeOpInterface op);
  mlir::LogicalResult readListing(mlir::Operation *op, mlir::ValueRange inputs,
                                  mlir::ValueRange outs);
  /// A size that is known where the function is.
  mlir::FailureOr<int64_t> sizeOf(mlir::Operation *op, mlir::Value size);
  mlir::LogicalResult checkSizes(mlir::Operation *op, llvm::StringRef role,
                                 unsigned argument,
                                 llvm::ArrayRef<int64_t> expected,
                                 llvm::StringRef from);
  /// A destination on memrefs.
  mlir::LogicalResult readOut(mlir::Operation *op, mlir::Value target,
                              Output output);
  mlir::LogicalResult readReturn(mlir::func::ReturnOp op);
  Output outputOf(size_t number, Output::Of of, llvm::StringRef role);
  Output outputOfListing(size_t number, unsigned result);
  void addOutput(Output output, unsigned position, mlir::Type type);
  mlir::LogicalResult
  checkUnwritten(mlir::Operation *op,
                 const std::map<std::string, unsigned> &inputs);
  /// The position of an operand among the arguments.
  mlir::FailureOr<unsigned> argumentOf(mlir::Operation *op, mlir::Value value,
                                       llvm::StringRef operand);
  /// The same of what may be a list that an op before makes.
  mlir::FailureOr<ArraySource> sourceOf(mlir::Operation *op, mlir::Value value,
                                        llvm::StringRef operand);
  /// Whether a value is O or LSE of a forward op before.
  bool isGiven(mlir::Value value, llvm::StringRef role);
  /// An option that gives a size, whether one is open, and what others are.
  struct SizeOption {
    Extent extent;
    llvm::StringRef name;
    std::optional<int64_t> given;
    bool isUsed = false;
    std::set<int64_t> known;
  };
  SizeOption *optionOf(Extent extent);
  /// A size that is given and is not that of any array.
  mlir::LogicalResult checkOptions();

  /// Enters sizes for the open ones of an argument.
  mlir::LogicalResult setSizes(unsigned argument, llvm::StringRef role,
                               mlir::Operation *op);

  mlir::func::FuncOp function;
  const Extents &extents;
  Function result;
  llvm::SmallBitVector written;
  SizeOption sizeOptions[3] = {
      {Extent::batch, "--batch", extents.batch, false, {}},
      {Extent::queries, "--queries", extents.queries, false, {}},
      {Extent::keys, "--keys", extents.keys, false, {}}};
};

} // namespace attn::run

#endif
