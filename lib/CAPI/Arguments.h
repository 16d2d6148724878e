//===- Arguments.h - What a function asks of its arrays ---------*- C++ -*-===//

#ifndef ATTN_LIB_CAPI_ARGUMENTS_H
#define ATTN_LIB_CAPI_ARGUMENTS_H

#include "attn/CAPI/Binding.h"
#include "attn/Host/Host.h"
#include "attn/IR/CaptureShapes.h"
#include "attn/Schedule/Problem.h"

#include <optional>
#include <string>
#include <vector>

namespace attn {

/// An array of a caller: an address and a shape, in elements.
struct CallerArray {
  uint64_t address = 0;
  llvm::SmallVector<int64_t> sizes, strides;
};

/// What a function asks of an argument besides what the type says.
struct Demand {
  /// What must divide the address of the element with index zero, in bytes.
  int64_t base = kMaxAlignment;
  /// Likewise every stride that the type leaves open.
  int64_t strides = 1;
  /// Whether it is an array of an attn op, and whether that writes it.
  bool isOfAttention = false, isWritten = false;
  /// Whether it is one that clauses name.
  bool isOfClauses = false;
};

/// For each argument of a function with attn ops: what their alignment promises
/// and, without a promise, what the compiler takes for granted.
std::vector<Demand> demandsOf(mlir::func::FuncOp function);

/// Arguments that an attn op writes, with each of its other arguments.
std::vector<Binding::Apart> argumentsApart(mlir::func::FuncOp function);

/// Where the elements of an array lie, by its sizes and strides.
Layout layoutOf(const CallerArray &array, int64_t elementBytes);

/// Places (an argument and a dimension of it) whose sizes must be equal, as one
/// attn op of the function has them.
using EqualSizes = std::vector<std::vector<std::pair<size_t, size_t>>>;
EqualSizes equalSizesOf(mlir::func::FuncOp function);

/// A dimension of a captured array that types leave open, which is not smaller
/// than a size of the op: that of an argument, or one that is known.
struct LeastSize {
  ReadDimension read;
  Extent extent;
  size_t position; ///< of the array
  std::optional<std::pair<size_t, size_t>> place;
  int64_t size = 0;
};
std::vector<LeastSize> leastSizesOf(mlir::func::FuncOp function);
std::optional<std::string> checkSizes(llvm::ArrayRef<CallerArray> arrays,
                                      const std::vector<LeastSize> &least);

/// What is wrong with sizes that types leave open; each array has its rank.
std::optional<std::string> checkSizes(llvm::ArrayRef<CallerArray> arrays,
                                      const EqualSizes &equal);

/// Checks an array against the type of an argument; describes it for the host
/// function, or says what is wrong.
std::optional<std::string> checkArray(const CallerArray &array,
                                      mlir::MemRefType type,
                                      const Demand &demand,
                                      HostArray &argument);

/// "[2, 8, 100, 64]".
std::string show(llvm::ArrayRef<int64_t> numbers);

} // namespace attn

#endif
